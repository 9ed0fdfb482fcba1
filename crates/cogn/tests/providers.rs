//! `cogn run` against a service on this machine that speaks the wire format of OpenAI: the envelope, the books, and no
//! key anywhere.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::JoinHandle;

use serde_json::{Value, json};

const KEY: &str = "sk-test-very-secret";

/// A service that answers each connection with the next of its replies and keeps what it was asked.
fn serve(replies: Vec<(u16, String)>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let handle = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (status, body) in replies {
            let (mut stream, _) = listener.accept().unwrap();
            asked.push(read_request(&mut stream));
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
        }
        asked
    });
    (address, handle)
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        bytes.extend(buffer.get(..read).unwrap());
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .to_lowercase()
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) || read == 0 {
                return text;
            }
        }
    }
}

/// An answer in pieces, as the service streams it.
fn streamed(answer: &Value) -> String {
    let text = answer.to_string();
    let (first, second) = text.split_at(text.len() / 2);
    let mut events = Vec::new();
    for piece in [first, second] {
        let event = json!({ "model": "stub-1", "choices": [{ "index": 0, "delta": { "content": piece }, "finish_reason": null }] });
        events.push(format!("data: {event}\n\n"));
    }
    let end = json!({ "model": "stub-1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let usage = json!({ "model": "stub-1", "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 } });
    events.concat() + &format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}

fn good() -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
            "data": { "rationale": "One topic.", "summary": "Short." } })
}

struct Output {
    code: i32,
    all: String,
    envelope: Value,
}

fn cogn(home: &std::path::Path, args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("OPENAI_API_KEY", KEY)
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let all = format!("{out}{}", String::from_utf8(output.stderr).unwrap());
    Output {
        code: output.status.code().unwrap(),
        envelope: serde_json::from_str(&out).unwrap_or_default(),
        all,
    }
}

#[test]
fn a_run_asks_the_service_keeps_the_books_and_shows_no_key() {
    let home = tempfile::tempdir().unwrap();
    let (address, service) = serve(vec![(200, streamed(&good()))]);
    let ask = [
        "run",
        "summarizer",
        "--set",
        "text=A long text.",
        "--base-url",
        &address,
        "--model",
        "stub",
        "--receipt",
    ];
    let output = cogn(home.path(), &ask);
    assert_eq!(output.code, 0, "{}", output.all);
    assert_eq!(output.envelope["data"]["summary"], "Short.");
    assert_eq!(output.envelope["meta"]["model"], "openai/stub-1");
    assert_eq!(
        output.envelope["usage"],
        json!({ "input_tokens": 11, "output_tokens": 7, "total_tokens": 18 })
    );
    let receipt = &output.envelope["meta"]["provenance"];
    assert_eq!(receipt["decode"], "native_schema");
    assert_eq!(receipt["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(receipt["sha256"]["reply"].as_str().unwrap().len(), 64);
    let asked = service.join().unwrap();
    assert!(asked[0].contains(KEY), "the service gets the key");
    assert!(asked[0].contains("A long text.") && asked[0].contains("json_schema"));
    assert!(!output.all.contains(KEY));
    let trace = output.envelope["meta"]["trace_id"].as_str().unwrap().to_owned();
    let books = cogn(home.path(), &["audit", "show", &trace]);
    assert!(books.all.contains("openai/stub-1") && !books.all.contains(KEY), "{}", books.all);
    assert!(!books.all.contains("A long text."), "payloads are kept only when asked for");
    assert!(!cogn(home.path(), &["doctor"]).all.contains(KEY));
}

#[test]
fn a_broken_answer_can_be_sent_back_once() {
    let home = tempfile::tempdir().unwrap();
    let broken = json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } });
    let (address, service) = serve(vec![(200, streamed(&broken)), (200, streamed(&good()))]);
    let ask = [
        "run",
        "summarizer",
        "--set",
        "text=x",
        "--base-url",
        &address,
        "--model",
        "stub",
        "--reask",
        "1",
        "--receipt",
    ];
    let output = cogn(home.path(), &ask);
    assert_eq!(output.code, 0, "{}", output.all);
    assert_eq!(output.envelope["meta"]["provenance"]["reasked"], 1);
    assert_eq!(output.envelope["usage"]["total_tokens"], 36, "the tokens of both calls");
    let asked = service.join().unwrap();
    assert!(asked[1].contains("/data/summary"), "the model is told what was wrong");
}

// ERR-015, PIPE-010: a refused key is E4001, said without the key.
#[test]
fn err_015_a_refused_key_is_not_repeated() {
    let home = tempfile::tempdir().unwrap();
    let complaint = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}"), "code": "invalid_api_key" } });
    let (address, service) = serve(vec![(401, complaint.to_string())]);
    let output = cogn(
        home.path(),
        &["run", "summarizer", "--set", "text=x", "--base-url", &address, "--model", "stub"],
    );
    service.join().unwrap();
    assert_eq!((output.code, output.envelope["error"]["code"].as_str()), (1, Some("E4001")));
    assert!(!output.all.contains(KEY), "{}", output.all);
}

// PIPE-009: what is transient is tried again.
#[test]
fn pipe_009_a_failure_that_passes_is_tried_again() {
    let home = tempfile::tempdir().unwrap();
    let (address, service) = serve(vec![(503, "{}".to_owned()), (200, streamed(&good()))]);
    let ask =
        ["run", "summarizer", "--set", "text=x", "--base-url", &address, "--model", "stub", "--receipt"];
    let output = cogn(home.path(), &ask);
    assert_eq!(output.code, 0, "{}", output.all);
    assert_eq!(output.envelope["meta"]["provenance"]["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(service.join().unwrap().len(), 2);
}
