//! Errors and warnings that only a server reports: uploads, and resumed streams.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::media::png;
use crate::modules::{module, plain};
use crate::stub::{Act, Stub, good, streamed};
use crate::support::{Place, Running};

/// A server with two modules and a service with one fixed answer.
struct Served {
    place: Place,
    address: String,
    _service: Stub,
    _server: Running,
}

impl Served {
    fn start() -> Self {
        let (place, service) = (Place::new(), Stub::start(vec![Act::stream(streamed(&good()))]));
        module(&place, "words", "response: {mode: both}", &plain());
        module(&place, "viewer", "modalities: {input: [text, image]}", &plain());
        let url = service.url();
        let args = [
            "serve",
            "--port",
            "0",
            "--quiet",
            "--provider",
            "openai",
            "--model",
            "stub",
            "--base-url",
            &url,
        ];
        let mut server = Running(place.command(&args).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.split("http://").nth(1).unwrap_or_else(|| panic!("{said}"));
        let address = address.split([',', ' ', '\u{1b}']).next().unwrap().trim().to_owned();
        Self { place, address, _service: service, _server: server }
    }

    /// Sends a request and returns the JSON lines of the response.
    fn send(&self, line: &str, headers: &str, body: &[u8]) -> Vec<Value> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let lines = answer.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{answer}"))).collect()
    }

    fn post(&self, path: &str, accept: &str, body: &Value) -> Vec<Value> {
        let headers = format!("content-type: application/json\r\naccept: {accept}\r\n");
        self.send(&format!("POST {path}"), &headers, body.to_string().as_bytes())
    }

    /// Returns the error of a run with an upload.
    fn run_on(&self, upload: &str) -> Value {
        let item = json!({ "type": "upload_ref", "upload_id": upload, "media_type": "image/png" });
        let body = json!({ "images": [item] });
        self.post("/api/run/viewer", "application/json", &body)[0]["error"].clone()
    }

    /// Returns the first warning of a stream that resumes there.
    fn resumed(&self, recovery: &Value) -> Value {
        let body = json!({ "input": { "text": "x" }, "_recovery": recovery });
        let chunks = self.post("/api/run/words", "application/x-ndjson", &body);
        let mut warnings = chunks.iter().filter_map(|chunk| chunk["meta"]["warnings"].get(0));
        warnings.next().cloned().unwrap_or_else(|| panic!("{chunks:?}"))
    }
}

pub(crate) fn unknown_upload(_: &Value) -> Value {
    Served::start().run_on("upl_5f2c")
}

/// Writes the record of a finished but expired upload, as a server finds it on disk.
pub(crate) fn expired_upload(_: &Value) -> Value {
    let served = Served::start();
    let bytes = png(16, 16);
    let announced = json!({ "filename": "a.png", "media_type": "image/png", "size_bytes": bytes.len() });
    let announced = served.post("/v1/media/upload-url", "application/json", &announced)[0].clone();
    let url = announced["upload_url"].as_str().unwrap_or_else(|| panic!("{announced}"));
    served.send(&format!("PUT {url}"), "content-type: image/png\r\n", &bytes);
    let file = |id: &str, extension: &str| {
        served.place.path(&format!("../home/.cognitive/uploads/{id}.{extension}"))
    };
    let (id, other) = (announced["upload_id"].as_str().unwrap(), "0".repeat(32));
    let mut record: Value = serde_json::from_slice(&fs::read(file(id, "json")).unwrap()).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    record["expires_at"] = json!(now - 5);
    fs::copy(file(id, "data"), file(&other, "data")).unwrap();
    fs::write(file(&other, "json"), record.to_string()).unwrap();
    served.run_on(&other)
}

pub(crate) fn unknown_session(_: &Value) -> Value {
    Served::start().resumed(&json!({ "session_id": "sess_4e1b", "last_seq": 42 }))
}

pub(crate) fn wrong_checkpoint(_: &Value) -> Value {
    let served = Served::start();
    let chunks = served.post("/api/run/words", "application/x-ndjson", &json!({ "text": "x" }));
    let checkpoint = json!({ "offset": 3, "hash": "ffffff" });
    let session = &chunks[0]["session_id"];
    served.resumed(&json!({ "session_id": session, "last_seq": 1, "last_checkpoint": checkpoint }))
}
