//! `cogn run --stream` as a process: chunks line by line, text for people, and exactly one end.

use cognitive_testkit::Home;
use serde_json::{Value, json};

use crate::home;

const REPLY: &str = r#"Here it is: {"ok": true, "meta": {"confidence": 0.95, "risk": "low", "explain": "e"}, "data": {"rationale": "Six times\nseven \u001b[2J.", "answer": "42"}}"#;

fn place(mode: &str) -> Home {
    let home = home();
    let manifest =
        json!({ "name": "m", "version": "1.0.0", "tier": "decision", "response": { "mode": mode } });
    let schema = json!({
        "input": { "type": "object", "required": ["n"] },
        "data": { "type": "object", "required": ["rationale", "answer"] },
    });
    home.module("./m", &manifest.to_string(), "Answer.", &schema);
    home.write("reply", REPLY);
    home
}

fn stream(home: &Home, input: &str, more: &[&str]) -> (i32, String) {
    let args = ["run", "./m", "--input", input, "--provider", "replay", "--reply", "reply"];
    let output = home.cogn(&[&args[..], more].concat());
    (output.exit(), output.out)
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// CLI-008
#[test]
fn stream_018_every_line_is_a_chunk_and_the_log_is_legal() {
    let dir = place("streaming");
    let (code, out) = stream(&dir, r#"{"n": 1}"#, &["--stream", "--output", "e.json"]);
    let chunks = lines(&out);
    assert_eq!(code, 0);
    assert_eq!(chunks[0]["streaming"], true);
    let deltas: String = chunks
        .iter()
        .filter(|chunk| chunk["chunk"]["field"] == "data.rationale")
        .map(|chunk| chunk["chunk"]["delta"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, "Six times\nseven \u{1b}[2J.");
    assert_eq!(chunks.last().unwrap()["final"], true);
    assert_eq!(dir.run(&["check"], &[], &out).exit(), 0);
    let kept: Value = serde_json::from_str(&dir.read("e.json")).unwrap();
    assert_eq!(kept["data"], chunks.last().unwrap()["data"]);
}

#[test]
fn stream_017_a_failure_before_the_call_is_one_error_chunk() {
    let dir = place("streaming");
    for input in ["{}", "{"] {
        let (code, out) = stream(&dir, input, &["--stream"]);
        assert_eq!((code, out.lines().count()), (1, 1), "{out}");
        assert_eq!(lines(&out)[0]["ok"], false);
        assert_eq!(dir.run(&["check"], &[], &out).exit(), 0);
    }
}

// CAP-010
#[test]
fn stream_021_a_module_without_streams_gives_one_envelope_with_a_notice() {
    let (code, out) = stream(&place("sync"), r#"{"n": 1}"#, &["--stream=ndjson"]);
    let only = lines(&out);
    assert_eq!((code, only.len()), (0, 1));
    assert_eq!(only[0]["ok"], true);
    let warnings = only[0]["meta"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "E4010"), "{warnings:?}");
}

#[test]
fn people_see_the_rationale_grow_and_then_a_card_and_nothing_acts_on_their_terminal() {
    let (code, out) = stream(&place("both"), r#"{"n": 1}"#, &["--stream=text"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("Six times\nseven \u{fffd}[2J.\n\n./m"), "{out:?}");
    assert!(out.contains("42"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out:?}");
}

// CAP-013: with the flag a stream is required, or the run fails with E4010; without it, the whole answer and a warning.
#[test]
fn cap_013_a_stream_can_be_required_from_the_shell() {
    let sync = place("sync");
    let (code, out) = stream(&sync, r#"{"n": 1}"#, &["--stream", "--require-streaming"]);
    let told = lines(&out);
    assert_eq!((code, told.len(), &told[0]["error"]["code"]), (1, 1, &json!("E4010")), "{out}");
    let (code, out) = stream(&sync, r#"{"n": 1}"#, &["--stream"]);
    assert_eq!((code, &lines(&out)[0]["meta"]["warnings"][1]["code"]), (0, &json!("E4010")), "{out}");
    let (code, out) = stream(&place("both"), r#"{"n": 1}"#, &["--stream", "--require-streaming"]);
    assert_eq!((code, &lines(&out).last().unwrap()["final"]), (0, &json!(true)), "{out}");
    let (code, _) = stream(&sync, r#"{"n": 1}"#, &["--require-streaming"]);
    assert_eq!(code, 2, "without `--stream` there is nothing to require");
}
