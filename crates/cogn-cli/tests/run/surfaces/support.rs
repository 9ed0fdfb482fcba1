//! A temporary project and home, isolated from this machine, and a model service on loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The working place of a test.
pub(crate) struct Place {
    dir: TempDir,
}

/// The exit code and the output of a process.
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Output {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("project")).unwrap();
        fs::create_dir_all(dir.path().join("home")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<str>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.as_ref()).unwrap();
        self
    }

    /// Writes a module of the project: `cognitive/modules/NAME`.
    pub(crate) fn module(&self, name: &str, files: &[(&str, &str)]) -> &Self {
        for (file, text) in files {
            self.write(&format!("cognitive/modules/{name}/{file}"), text);
        }
        self
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
        command
            .args(args)
            .current_dir(self.dir.path().join("project"))
            .env_clear()
            .env("HOME", self.dir.path().join("home"))
            .env("COGN_OFFLINE", "1")
            .env("OPENAI_API_KEY", "sk-test")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let mut child = self.command(args).spawn().unwrap();
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        Output {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a module with a saved reply.
    pub(crate) fn replay(&self, module: &str, reply: &str, more: &[&str]) -> Output {
        self.write("reply.txt", reply);
        let args = ["run", module, "--provider", "replay", "--reply", "reply.txt"];
        self.run(&args.into_iter().chain(more.iter().copied()).collect::<Vec<_>>())
    }
}

/// The prompt of a two-file module, which explains the envelope.
pub(crate) const PROMPT: &str = "Answer with an envelope: `ok`, `meta`, `data`.\n";

/// A contract with a text as input and a word as output.
pub(crate) const SCHEMA: &str = r#"{
  "meta": {"type": "object", "required": ["confidence", "risk", "explain"],
           "properties": {"confidence": {"type": "number"}, "risk": {"type": "string"}, "explain": {"type": "string", "maxLength": 280}}},
  "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale", "word"],
           "properties": {"rationale": {"type": "string"}, "word": {"enum": ["a", "b"]}}},
  "error": {"type": "object", "required": ["code", "message"]}
}"#;

/// Returns a manifest with this name and more lines.
pub(crate) fn manifest(name: &str, more: &str) -> String {
    format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: Find a word\nexcludes: [prose]\ntier: decision\noverflow: {{enabled: false}}\nenums: {{strategy: strict}}\n{more}"
    )
}

/// Returns a good answer of such a module.
pub(crate) fn answer() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "Found it" },
        "data": { "rationale": "It stands there.", "word": "a" },
    })
}

/// Starts a service that always gives the same answer.
pub(crate) fn answering_service(answer: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let choice = |delta, finish| json!({ "model": "stub", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    let (said, end) = (choice(json!({ "content": answer }), json!(null)), choice(json!({}), json!("stop")));
    let events = format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n";
            let _ = stream
                .write_all(format!("{head}content-length: {}\r\n\r\n{events}", events.len()).as_bytes());
        }
    });
    base
}

/// Starts a service that begins an answer and then waits for its client to disconnect. Returns its address.
pub(crate) fn endless_service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            let begun = r#"{"ok": true, "data": {"rationale": "It is"#;
            let choice = json!({ "index": 0, "delta": { "content": begun }, "finish_reason": null });
            let event = format!("data: {}\n\n", json!({ "model": "stub", "choices": [choice] }));
            let length = event.len() + 1;
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all((head + &event).as_bytes()).unwrap();
            while stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        }
    });
    base
}

/// Reads one request to its end.
pub(crate) fn read_request(stream: &mut impl Read) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        let line = head[start..].to_lowercase();
        length = line.strip_prefix("content-length: ").map_or(length, |text| text.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

/// A process that is killed when this value is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
