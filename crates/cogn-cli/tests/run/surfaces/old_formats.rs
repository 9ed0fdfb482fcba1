//! Older modules and answers still work, with a deprecation warning (GEN-004, COMPAT-014); a module whose failures are
//! thrown still prints an envelope (MAN-015).

use serde_json::{Value, json};

use super::support::Place;

const V1: &str = "---\nname: old\nversion: 1.0.0\nresponsibility: Answer a question\nexcludes: [guessing]\nconstraints:\n  no_network: true\n  require_confidence: true\n---\n# Old\n\nAnswer the question: $ARGUMENTS\n";
const V1_SCHEMA: &str = r#"{"input": {"type": "object", "required": ["question"], "properties": {"question": {"type": "string"}}},
  "output": {"type": "object", "required": ["result"], "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}, "confidence": {"type": "number"}}}}"#;

/// Returns the codes of an envelope's warnings.
fn warned(envelope: &Value) -> Vec<&str> {
    let warnings = envelope["meta"]["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    warnings.iter().filter_map(|warning| warning["code"].as_str()).collect()
}

// GEN-004, GEN-005, COMPAT-010, COMPAT-014, FMT-007: a v1 module with all v1 features, from input to envelope.
#[test]
fn gen_004_compat_014_a_v1_module_still_runs_and_warns() {
    let place = Place::new();
    place.module("old", &[("MODULE.md", V1), ("schema.json", V1_SCHEMA)]);
    let payload = json!({ "result": "42", "rationale": "Because.", "confidence": 0.8 });
    for reply in [payload.clone(), json!({ "ok": true, "data": payload })] {
        let output = place.replay("old", &reply.to_string(), &["--set", "question=why"]);
        let envelope = output.envelope();
        assert_eq!((output.exit(), &envelope["ok"]), (0, &json!(true)), "{envelope}");
        assert_eq!(envelope["data"]["result"], "42");
        assert_eq!(envelope["meta"]["confidence"], 0.8, "COMPAT-004: its own confidence");
        assert_eq!(envelope["meta"]["explain"], "Because.", "COMPAT-006");
        assert!(warned(&envelope).contains(&"DEPRECATED"), "{envelope}");
        assert!(envelope["meta"]["warnings"].to_string().contains("v1"), "it is named: {envelope}");
    }
    let output = place.replay("old", &payload.to_string(), &["--set", "answer=7"]);
    assert_eq!(output.envelope()["error"]["code"], "E1001", "its input schema counts");
    let output = place.replay("old", r#"{"confidence": 0.8}"#, &["--set", "question=why"]);
    assert_eq!(output.envelope()["error"]["code"], "E3001", "its output schema counts");
    let streamed = place.replay("old", &payload.to_string(), &["--args", "why", "--stream"]);
    let last: Value = serde_json::from_str(streamed.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["data"]["result"], "42", "{last}");
    let shown = place.run(&["prompt", "old", "--args", "why"]);
    assert!(shown.out.contains("Answer the question: why"), "{}", shown.out);
    let listed = place.run(&["list"]);
    assert!(listed.out.contains("old"), "{}", listed.out);
}

// GEN-004, COMPAT-001, COMPAT-014: a v2.1 payload of a current module that accepts them.
#[test]
fn gen_004_compat_014_a_v21_payload_is_still_taken_and_warns() {
    let place = Place::new();
    place.finder("words", "compat: {accepts_v21_payload: true, runtime_auto_wrap: true}\n");
    let payload = json!({ "rationale": "It stands there.", "word": "b", "confidence": 0.7 });
    for reply in [payload.clone(), json!({ "ok": true, "data": payload })] {
        let envelope = place.replay("words", &reply.to_string(), &["--set", "text=x"]).envelope();
        assert_eq!((&envelope["ok"], &envelope["data"]["word"]), (&json!(true), &json!("b")), "{envelope}");
        assert_eq!(envelope["meta"]["confidence"], 0.7, "{envelope}");
        assert!(warned(&envelope).contains(&"DEPRECATED"), "{envelope}");
    }
    let current = json!({ "ok": true, "meta": { "confidence": 0.7, "risk": "low", "explain": "e" }, "data": { "rationale": "r", "word": "b" } });
    let envelope = place.replay("words", &current.to_string(), &["--set", "text=x"]).envelope();
    assert_eq!(warned(&envelope), [""; 0], "nothing about a current answer is old: {envelope}");
    // A v2.1 module, which has no tier, always warns that it is old, whatever its answer.
    let v21 = "name: words\nversion: 1.0.0\nresponsibility: Find a word\nexcludes: [prose]\n";
    place.module("words", &[("module.yaml", v21)]);
    let envelope = place.replay("words", &payload.to_string(), &["--set", "text=x"]).envelope();
    assert_eq!(envelope["data"]["word"], "b", "{envelope}");
    assert!(warned(&envelope).contains(&"DEPRECATED"), "{envelope}");
}

// MAN-015: on the command line, a module whose failures are thrown prints its envelope like any other.
#[test]
fn man_015_a_module_that_throws_prints_an_envelope() {
    let place = Place::new();
    place.finder("words", "failure: {contract: throw}\n");
    let failure = json!({ "ok": false, "meta": { "confidence": 0.1, "risk": "low", "explain": "e" }, "error": { "code": "E2004", "message": "no word" } });
    for (reply, code) in [(failure.to_string(), "E2004"), ("no JSON".to_owned(), "E1000")] {
        let output = place.replay("words", &reply, &["--set", "text=x"]);
        let envelope = output.envelope();
        assert_eq!((output.exit(), &envelope["ok"]), (1, &json!(false)), "{envelope}");
        assert_eq!(envelope["error"]["code"], code, "{envelope}");
        assert!(envelope["meta"]["explain"].is_string(), "{envelope}");
    }
}
