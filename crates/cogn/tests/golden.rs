//! The golden tests of the bundled modules: each saved reply through the whole pipeline, compared with what is expected.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cognitive_contract::Envelope;
use cognitive_contract::ports::NullSink;
use cognitive_library::Library;
use cognitive_runtime::{Host, Replay, RunRequest, run};
use serde_json::{Value, json};

fn cases() -> Vec<(String, PathBuf)> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    let mut cases = Vec::new();
    for module in fs::read_dir(modules).unwrap() {
        let module = module.unwrap();
        for file in fs::read_dir(module.path().join("tests")).unwrap() {
            let path = file.unwrap().path();
            if let Some(case) = path.to_str().unwrap().strip_suffix(".input.json") {
                cases.push((module.file_name().into_string().unwrap(), PathBuf::from(case)));
            }
        }
    }
    cases.sort();
    cases
}

fn read(case: &Path, ending: &str) -> String {
    let path = PathBuf::from(format!("{}.{ending}", case.display()));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn answer(module: &str, input: Value, reply: String) -> Value {
    let host = Host::new(Arc::new(Library::default()), Arc::new(Replay::text(reply)));
    let mut sink = NullSink;
    let mut future = std::pin::pin!(run(&host, RunRequest::new(module, input), &mut sink));
    let Poll::Ready(envelope) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a saved reply waited for something");
    };
    serde_json::to_value(envelope).unwrap()
}

/// What an envelope lacks of what is expected.
fn mismatches(envelope: &Value, expected: &Value) -> Vec<String> {
    let data = envelope.get("data").or_else(|| envelope.get("partial_data")).cloned().unwrap_or(Value::Null);
    let mut wrong = Vec::new();
    for (name, wanted) in expected.as_object().unwrap() {
        match name.as_str() {
            "ok" if envelope["ok"] == *wanted => {}
            "confidence" if envelope["meta"]["confidence"] == *wanted => {}
            "error" => {
                let members = wanted.as_object().unwrap().iter();
                let differ = members.filter(|(key, value)| envelope["error"][*key] != **value);
                wrong.extend(differ.map(|(key, _)| format!("error.{key}")));
            }
            "_validate" => wrong.extend(rules(envelope, &data, wanted)),
            "_contains" => wrong.extend(contained(&data, wanted)),
            other if data[other] == *wanted => {}
            other => wrong.push(other.to_owned()),
        }
    }
    wrong
}

fn rules(envelope: &Value, data: &Value, wanted: &Value) -> Vec<String> {
    let confidence = envelope["meta"]["confidence"].as_f64().unwrap();
    let text = data.to_string();
    let words = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let holds = |rule: &str, value: &Value| match rule {
        "required" => words(value).iter().all(|name| data.get(name).is_some()),
        "confidence_min" => confidence >= value.as_f64().unwrap(),
        "confidence_max" => confidence <= value.as_f64().unwrap(),
        "rationale_min_length" => {
            data["rationale"].as_str().unwrap().chars().count() as u64 >= value.as_u64().unwrap()
        }
        "contains" => words(value).iter().all(|word| text.contains(word)),
        "not_contains" => !words(value).iter().any(|word| text.contains(word)),
        other => panic!("unknown rule {other}"),
    };
    let rules = wanted.as_object().unwrap().iter();
    rules.filter(|(rule, value)| !holds(rule, value)).map(|(rule, _)| format!("_validate.{rule}")).collect()
}

fn contained(data: &Value, wanted: &Value) -> Vec<String> {
    let holds = |path: &str, words: &Value| {
        let place =
            data.pointer(&format!("/{}", path.replace('.', "/"))).and_then(Value::as_str).unwrap_or_default();
        words.as_array().unwrap().iter().all(|word| place.contains(word.as_str().unwrap()))
    };
    let paths = wanted.as_object().unwrap().iter();
    paths.filter(|(path, words)| !holds(path, words)).map(|(path, _)| format!("_contains.{path}")).collect()
}

// GEN-002: v2.2 modules run unchanged and answer with a plain v2.2 envelope.
#[test]
fn gen_002_every_saved_reply_gives_what_is_expected() {
    let cases = cases();
    assert!(cases.len() >= 33, "every module has golden tests, found {}", cases.len());
    for (module, case) in cases {
        let input: Value = serde_json::from_str(&read(&case, "input.json")).unwrap();
        let expected: Value = serde_json::from_str(&read(&case, "expected.json")).unwrap();
        let envelope = answer(&module, input, read(&case, "reply.txt"));
        let wrong = mismatches(&envelope, &expected);
        assert!(wrong.is_empty(), "{}: {wrong:?} in {envelope:#}", case.display());
        assert!(Envelope::from_value(envelope).is_ok(), "{}", case.display());
    }
}

#[test]
fn a_golden_test_notices_a_change() {
    let reply = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"r","summary":"short"}}"#;
    let envelope =
        answer("summarizer", json!({ "text": "A long text that is to be shortened." }), reply.into());
    assert_eq!(mismatches(&envelope, &json!({ "summary": "short", "ok": true })), [""; 0], "{envelope}");
    let other = json!({ "summary": "long", "_contains": { "summary": ["x"] }, "_validate": { "confidence_min": 0.95 } });
    assert_eq!(mismatches(&envelope, &other), ["summary", "_contains.summary", "_validate.confidence_min"]);
}
