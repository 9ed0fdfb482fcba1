//! `cogn eval` as a process, against a service on this machine: counts, files, exit codes.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// A service that says `positive` to everything, as often as it is asked; it hands back what it was asked.
fn serve(times: usize) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let data = json!({ "rationale": "r", "sentiment": "positive", "label": "x" });
    let answer =
        json!({ "ok": true, "data": data, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" } });
    let reply = json!({
        "model": "stub-1",
        "choices": [{ "index": 0, "message": { "content": answer.to_string() }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 11, "completion_tokens": 7 },
    });
    let handle =
        std::thread::spawn(move || (0..times).map(|_| answer_one(&listener, &reply.to_string())).collect());
    (address, handle)
}

fn answer_one(listener: &TcpListener, reply: &str) -> Value {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{reply}", reply.len()).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn cogn(home: &Path, address: &str, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
        .args(["eval", "text-classifier", "--provider", "openai", "--base-url", address])
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("OPENAI_API_KEY", "k")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const CASES: &str = r#"{"id": "good", "input": {"text": "Lovely"}, "expect": {"sentiment": "positive"}}
{"id": "bad", "input": {"text": "Awful"}, "expect": {"sentiment": "negative"}}
"#;

#[test]
fn counts_are_printed_for_people_and_machines_and_cases_are_kept() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("c.jsonl"), CASES).unwrap();
    let (address, service) = serve(4);
    let (code, out, err) = cogn(home.path(), &address, &["--cases", "c.jsonl", "--json", "--out", "o.jsonl"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["accuracy"], json!({ "right": 1, "of": 2, "share": 0.5 }));
    assert_eq!(report["valid"]["right"], 2);
    assert_eq!((&report["input_tokens"], &report["models"]), (&json!(22), &json!(["openai/stub-1"])));
    assert_eq!(report["wrong"][0]["id"], "bad");
    let kept = std::fs::read_to_string(home.path().join("o.jsonl")).unwrap();
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((kept.len(), &kept[1]["envelope"]["data"]["sentiment"]), (2, &json!("positive")));

    let (code, out, _) = cogn(home.path(), &address, &["--cases", "c.jsonl", "--concurrency", "2"]);
    assert_eq!(code, 0);
    assert!(
        out.contains("accuracy") && out.contains("sentiment: expected \"negative\", got \"positive\""),
        "{out}"
    );
    // The examples of the module are turns before the input.
    let asked = service.join().unwrap();
    let roles: Vec<&str> =
        asked[0]["messages"].as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert!(
        roles.starts_with(&["system", "user", "assistant"]) && roles.ends_with(&["assistant", "user"]),
        "{roles:?}"
    );
}

#[test]
fn too_few_right_answers_are_an_error_only_on_request() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("c.jsonl"), CASES).unwrap();
    let (address, service) = serve(3);
    assert_eq!(cogn(home.path(), &address, &["--cases", "c.jsonl", "--min-accuracy", "0.6"]).0, 1);
    assert_eq!(
        cogn(home.path(), &address, &["--cases", "c.jsonl", "--limit", "1", "--min-accuracy", "1"]).0,
        0
    );
    service.join().unwrap();
}

#[test]
fn a_bad_line_is_said_before_anybody_is_asked() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("c.jsonl"), format!("{CASES}\n{{\"input\": {{}}}}\n")).unwrap();
    let (code, out, err) = cogn(home.path(), "http://127.0.0.1:9/v1", &["--cases", "c.jsonl"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("line 4: `expect` is needed"), "{err}");
}
