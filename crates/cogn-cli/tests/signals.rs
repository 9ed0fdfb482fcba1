//! `cogn serve` as a process that is stopped, that keeps context between requests and restarts, and that sends traces.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tempfile::TempDir;

const MANIFEST: &str = "name: talk\nversion: 1.0.0\nresponsibility: Talk\ntier: decision\nexcludes: []\nresponse:\n  mode: both\ncontext:\n  accepts:\n    - type: session_state\n  emits:\n    - type: session_state\n      ttl: 3600\n";

/// A home with one module.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let module = home.path().join("cognitive/modules/talk");
    std::fs::create_dir_all(&module).unwrap();
    std::fs::write(module.join("module.yaml"), MANIFEST).unwrap();
    std::fs::write(module.join("prompt.md"), "Talk.").unwrap();
    let schema = json!({
        "input": { "type": "object" },
        "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
    });
    std::fs::write(module.join("schema.json"), schema.to_string()).unwrap();
    // A stream whose model waits ends by the signal, and not by a time limit.
    std::fs::create_dir(home.path().join(".cognitive")).unwrap();
    std::fs::write(home.path().join(".cognitive/config.yaml"), "timeout_seconds: 86400\n").unwrap();
    home
}

/// Reads one request, head and body.
fn read_request(stream: &mut impl Read) -> String {
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

fn event(text: &str, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "model": "stub", "choices": [choice] }))
}

/// A model service, one thread per connection. It answers with these events, then ends or waits for the client to
/// disconnect, and reports its requests.
fn service(events: String, ends: bool) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, events, tell) = (stream.unwrap(), events.clone(), tell.clone());
            std::thread::spawn(move || {
                let _ = tell.send(read_request(&mut stream));
                let length = events.len() + usize::from(!ends);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
                );
                stream.write_all((head + &events).as_bytes()).unwrap();
                while !ends && stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            });
        }
    });
    (base, asked)
}

/// A started server. It is killed when this value is dropped, if it is still running.
struct Server {
    child: Child,
    address: String,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    fn start(home: &Path, service: &str, more: &[&str]) -> Self {
        let mut child = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
            .args(["serve", "--port", "0", "--rate", "0", "--streams", "0", "--quiet"])
            .args(["--provider", "openai", "--base-url", service, "--model", "stub"])
            .args(more)
            .current_dir(home)
            .env_clear()
            .env("HOME", home)
            .env("OPENAI_API_KEY", "sk-test")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        // Warnings come before the address.
        while !said.contains("http://") && stderr.read_line(&mut said).unwrap() > 0 {}
        let address = said.split("http://").nth(1).unwrap_or_else(|| panic!("{said}"));
        let address = address.split([',', ' ', '\u{1b}']).next().unwrap().trim().to_owned();
        Self { child, address, stderr }
    }

    /// Sends a run; the response can be read from the returned stream.
    fn ask(&self, headers: &str, body: &Value) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST /api/run/talk HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Sends SIGTERM.
    fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end and returns its exit code and output.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the chunks in the rest of a response in lines.
fn chunks(stream: BufReader<TcpStream>) -> Vec<Value> {
    let lines = stream.lines().map(Result::unwrap).filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

// STREAM-004: a signal during a hundred streams; each gets exactly one terminal chunk, and the process exits cleanly.
#[test]
fn stream_004_a_signal_gives_each_of_a_hundred_streams_its_last_chunk() {
    let begun = event(r#"{"ok": true, "data": {"rationale": "It is"#, None);
    let (service, asked) = service(begun, false);
    let home = home();
    let server = Server::start(home.path(), &service, &["--drain", "0"]);
    let mut streams: Vec<_> =
        (0..100).map(|_| server.ask("accept: application/x-ndjson\r\n", &json!({ "text": "a" }))).collect();
    for stream in &mut streams {
        let mut line = String::new();
        while !line.contains("It is") {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "a stream ended before it was told to");
        }
    }
    assert_eq!(asked.try_iter().count(), 100, "each has a model call of its own");
    server.terminate();
    for stream in streams {
        let rest = chunks(stream);
        let ends: Vec<&Value> = rest
            .iter()
            .filter(|chunk| chunk.get("error").is_some() || chunk.get("final").is_some())
            .collect();
        assert_eq!(ends.len(), 1, "{rest:?}");
        assert_eq!(ends[0]["error"]["code"], "E2010");
        assert_eq!(rest.last(), Some(ends[0]));
        assert_eq!(ends[0]["partial_data"]["rationale"], "It is");
    }
    assert_eq!(server.ended(), (Some(0), "stopped\n".to_owned()));
}

/// Returns an answer that emits a state.
fn answer() -> String {
    let text = json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": { "rationale": "r" },
        "_emitted_context": { "session_state": { "note": "remember-the-milk" } },
    });
    event(&text.to_string(), None) + &event("", Some("stop")) + "data: [DONE]\n\n"
}

// D-04, S-23: the context of a conversation survives the process, and belongs to its key.
#[test]
fn s_23_a_server_remembers_a_conversation_of_a_key_after_a_restart() {
    let (service, asked) = service(answer(), true);
    let home = home();
    let (anna, bob) = ("anna-0123456789abcdef", "bob-0123456789abcdef");
    let keys = home.path().join("keys");
    std::fs::write(&keys, format!("anna {anna}\nbob {bob}\n")).unwrap();
    let keys = keys.to_str().unwrap();
    let turn = |server: &Server, key: &str| {
        let body = json!({ "input": { "text": "a" }, "_options": { "session": "shopping" } });
        let mut answer = String::new();
        server.ask(&format!("authorization: Bearer {key}\r\n"), &body).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        asked.recv().unwrap().contains("remember-the-milk")
    };
    let server = Server::start(home.path(), &service, &["--keys", keys]);
    assert!(!turn(&server, anna));
    assert!(turn(&server, anna));
    server.terminate();
    assert_eq!(server.ended().0, Some(0));
    let server = Server::start(home.path(), &service, &["--keys", keys]);
    assert!(!turn(&server, bob), "another key has a conversation of its own");
    assert!(turn(&server, anna));
    let kept = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
        .args(["context", "list", "--user", "anna", "--session", "shopping"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(String::from_utf8(kept.stdout).unwrap().contains("session_state"), "the operator can look");
}

// The last spans are sent before the process ends.
#[test]
fn spans_are_sent_before_a_server_ends() {
    let (service, _asked) = service(answer(), true);
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", collector.local_addr().unwrap());
    let (take, taken) = channel();
    // The server may send several batches, each on a connection of its own or on the same.
    std::thread::spawn(move || {
        for stream in collector.incoming() {
            let (mut stream, take) = (stream.unwrap(), take.clone());
            std::thread::spawn(move || {
                while stream.peek(&mut [0]).is_ok_and(|count| count > 0) {
                    take.send(read_request(&mut stream)).unwrap();
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
                }
            });
        }
    });
    let home = home();
    let server = Server::start(home.path(), &service, &["--otlp", &address]);
    let mut answer = String::new();
    server.ask("", &json!({ "text": "a" })).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    server.terminate();
    assert_eq!(server.ended().0, Some(0));
    let batches: Vec<String> = taken.try_iter().collect();
    assert!(batches.iter().all(|batch| batch.starts_with("POST /v1/traces ")), "{batches:?}");
    let has_model = |batch: &String| {
        batch.contains(r#""gen_ai.provider.name""#) && batch.contains(r#""stringValue":"openai""#)
    };
    assert!(batches.iter().any(has_model), "{batches:?}");
    let wrong = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
        .args(["serve", "--port", "0", "--provider", "ollama", "--otlp", "nonsense"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(!wrong.status.success());
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("collector"));
}
