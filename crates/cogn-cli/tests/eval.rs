//! `cogn eval` as a process, against a stub service: counts, files, exit codes.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// A service that answers every request with `positive`, this many times; it returns the requests.
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
    let output = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
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
    // The examples of the module are conversation turns before the input.
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

/// One half of the cases selects prompts and constants, the other measures: each can run alone. The figures include the
/// position of the right label in its list, and the calibration of confidence.
#[test]
fn d1_a_half_is_run_alone_and_the_place_of_the_right_label_is_told() {
    let home = tempfile::tempdir().unwrap();
    let case = |half: &str, labels: Value| {
        let input = json!({ "text": format!("t {labels}"), "labels": labels });
        json!({ "half": half, "input": input, "expect": { "label": "x" } }).to_string()
    };
    let lines = [
        case("tuning", json!(["x", "y"])),
        case("held-out", json!(["x", "y"])),
        case("held-out", json!(["y", "x"])),
        case("held-out", json!(["y", "x"]))
            .replace("{\"label\":\"x\"}", "{\"label\":\"y\"}")
            .replace("t [", "u ["),
    ];
    std::fs::write(home.path().join("cases.jsonl"), lines.join("\n")).unwrap();
    let (address, asked) = serve(3);
    let (code, out, _) =
        cogn(home.path(), &address, &["--cases", "cases.jsonl", "--half", "held-out", "--json"]);
    assert_eq!((code, asked.join().unwrap().len()), (0, 3));
    let report: Value = serde_json::from_str(&out).unwrap();
    let share = |at: &str| report.pointer(&format!("/positions/label/{at}/right")).cloned();
    assert_eq!((share("first"), share("last")), (Some(json!(1)), Some(json!(1))), "{report}");
    assert_eq!(report["positions"]["label"]["first"]["of"], 2);
    assert_eq!(report["auc"], 0.5, "always as sure, so no help");
    let error = report["calibration_error"].as_f64().unwrap();
    assert!((error - (0.9 - 2.0 / 3.0)).abs() < 1e-6, "{error}");
    let (code, _, err) =
        cogn(home.path(), "http://127.0.0.1:9/v1", &["--cases", "cases.jsonl", "--half", "other"]);
    assert!(code != 0 && err.contains("`other`"), "{err}");
}

/// The schema has a default; a caller who omits the member gets exactly that value. The receipt has the hash of the
/// sent input.
#[test]
fn d3_a_default_of_the_input_schema_reaches_the_model() {
    let home = tempfile::tempdir().unwrap();
    let run = |input: &str| {
        let (address, asked) = serve(1);
        let output = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
            .args(["run", "entity-extractor", "--provider", "openai", "--base-url", &address, "--receipt"])
            .args(["--input", input])
            .current_dir(home.path())
            .env_clear()
            .env("HOME", home.path())
            .env("OPENAI_API_KEY", "k")
            .output()
            .unwrap();
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        let asked = asked.join().unwrap().pop().unwrap();
        let last = asked["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        (last, envelope["meta"]["provenance"]["sha256"]["input"].clone())
    };
    let (turn, hash) = run(r#"{"text": "Ada went home."}"#);
    let expected = r#"{"text":"Ada went home.","want":["person","organisation","place","date"]}"#;
    assert_eq!(turn, expected);
    let (turn, other) = run(r#"{"text": "Ada went home.", "want": ["place"]}"#);
    assert_eq!(turn, r#"{"text":"Ada went home.","want":["place"]}"#);
    let (_, again) = run(r#"{"text": "Ada went home."}"#);
    assert_eq!(hash, again);
    assert_ne!(hash, other);
    let spelled_out = run(expected).1;
    assert_ne!(hash, spelled_out, "the hash is that of what the caller sent");
}

/// The embedded model refuses unsupported tasks before any call. Any file will do as weights: they are never opened.
#[test]
fn d5_the_embedded_model_refuses_to_review_and_to_rank() {
    let home = tempfile::tempdir().unwrap();
    let weights = home.path().join("weights.gguf");
    std::fs::write(&weights, "none").unwrap();
    for (module, input) in [
        ("code-reviewer", "code=x = 1 / 0"),
        ("task-prioritizer", r#"tasks=["sleep", "eat"]"#),
        ("code-review-pipeline", "code=x = 1 / 0"),
        ("multi-reviewer", "text=A long day."),
        ("smart-processor", "text=A long day."),
        ("summarizer", "text=A long day."),
    ] {
        let output = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
            .args(["run", module, "--set", input, "--provider", "embedded"])
            .current_dir(home.path())
            .env_clear()
            .env("HOME", home.path())
            .env("COGN_MODEL", &weights)
            .output()
            .unwrap();
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &envelope["error"];
        assert_eq!(error["code"], "E4001", "{module}: {envelope}");
        assert_eq!((&error["details"]["kind"], &error["recoverable"]), (&json!("unsuitable"), &json!(false)));
        assert_eq!(error["details"]["missing"], json!(["reasoning"]));
        assert!(error["suggestion"].as_str().unwrap().contains("OPENAI_API_KEY"), "{envelope}");
    }
}
