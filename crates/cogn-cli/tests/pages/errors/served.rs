//! Errors and warnings that only a server reports: uploads, and resumed streams.

use std::fs;
use std::time::SystemTime;

use cognitive_testkit::{FakeModel, Home, TestServer, good_answer};
use serde_json::{Value, json};

use super::media::png;
use super::modules::{module, plain};
use crate::home;

/// A server with two modules and a service with one fixed answer.
struct Site {
    home: Home,
    server: TestServer,
}

impl Site {
    fn start() -> Self {
        let (home, service) = (home(), FakeModel::with_answer(&good_answer(&json!({ "rationale": "r" }))));
        module(&home, "words", "response: {mode: both}", &plain());
        module(&home, "viewer", "modalities: {input: [text, image]}", &plain());
        let url = service.url();
        let args = ["--provider", "openai", "--model", "stub", "--base-url", &url];
        Self { server: TestServer::start(&home, &args, &[]), home }
    }

    /// Returns the error of a run with an upload.
    fn run_on(&self, upload: &str) -> Value {
        let item = json!({ "type": "upload_ref", "upload_id": upload, "media_type": "image/png" });
        self.server.post("/api/run/viewer", &json!({ "images": [item] }))["error"].clone()
    }

    /// Returns the first warning of a stream that resumes there.
    fn resumed(&self, recovery: &Value) -> Value {
        let chunks = self.chunks(&json!({ "input": { "text": "x" }, "_recovery": recovery }));
        let mut warnings = chunks.iter().filter_map(|chunk| chunk["meta"]["warnings"].get(0));
        warnings.next().cloned().unwrap_or_else(|| panic!("{chunks:?}"))
    }

    /// Returns the chunks of a streamed run.
    fn chunks(&self, body: &Value) -> Vec<Value> {
        let lines = [("accept", "application/x-ndjson")];
        let (_, answer) = self.server.ask("POST /api/run/words", &lines, body.to_string());
        answer.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{answer}"))).collect()
    }
}

pub(crate) fn unknown_upload(_: &Value) -> Value {
    Site::start().run_on("upl_5f2c")
}

/// Writes the record of a finished but expired upload, as a server finds it on disk.
pub(crate) fn expired_upload(_: &Value) -> Value {
    let served = Site::start();
    let bytes = png(16, 16);
    let announced = json!({ "filename": "a.png", "media_type": "image/png", "size_bytes": bytes.len() });
    let announced = served.server.post("/v1/media/upload-url", &announced);
    let url = announced["upload_url"].as_str().unwrap_or_else(|| panic!("{announced}"));
    let _ = served.server.ask(&format!("PUT {url}"), &[("content-type", "image/png")], &bytes);
    let file = |id: &str, extension: &str| served.home.path(&format!(".cognitive/uploads/{id}.{extension}"));
    let (id, other) = (announced["upload_id"].as_str().unwrap(), "0".repeat(32));
    let mut record: Value = serde_json::from_slice(&fs::read(file(id, "json")).unwrap()).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    record["expires_at"] = json!(now - 5);
    fs::copy(file(id, "data"), file(&other, "data")).unwrap();
    fs::write(file(&other, "json"), record.to_string()).unwrap();
    served.run_on(&other)
}

pub(crate) fn unknown_session(_: &Value) -> Value {
    Site::start().resumed(&json!({ "session_id": "sess_4e1b", "last_seq": 42 }))
}

pub(crate) fn wrong_checkpoint(_: &Value) -> Value {
    let served = Site::start();
    let chunks = served.chunks(&json!({ "text": "x" }));
    let checkpoint = json!({ "offset": 3, "hash": "ffffff" });
    let session = &chunks[0]["session_id"];
    served.resumed(&json!({ "session_id": session, "last_seq": 1, "last_checkpoint": checkpoint }))
}
