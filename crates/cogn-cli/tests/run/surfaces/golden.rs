//! Golden tests as documented (TEST-003), and a module without any (FMT-002).

use serde_json::{Value, json};

use super::support::{PROMPT, Place, manifest};

const SCHEMA: &str = r#"{
  "meta": {"type": "object", "required": ["confidence", "risk", "explain"]},
  "input": {"type": "object"},
  "data": {"type": "object", "required": ["rationale", "issues"], "properties": {
    "rationale": {"type": "string"}, "summary": {"type": "string"}, "score": {"type": "number"}, "approved": {"type": "boolean"},
    "issues": {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}, "risk": {"type": "string"}}}}}}
}"#;

fn place() -> Place {
    let place = Place::new();
    let manifest = manifest("review", "");
    place.module("review", &[("module.yaml", &manifest), ("prompt.md", PROMPT), ("schema.json", SCHEMA)]);
    place
}

fn reply() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.85, "risk": "high", "explain": "One issue" },
        "data": {
            "rationale": "The f-string is an open door for SQL injection, which is a security matter.",
            "summary": "x = 6", "score": 7, "approved": false,
            "issues": [{ "type": "style", "risk": "low" }, { "type": "security", "risk": "medium" }],
        },
    })
}

/// Returns the result of the only case of the module.
fn judged(place: &Place, expected: &Value) -> (i32, Value) {
    place.module(
        "review",
        &[
            ("tests/case.input.json", r#"{"code": "x"}"#),
            ("tests/case.expected.json", &expected.to_string()),
            ("tests/case.reply.txt", &reply().to_string()),
        ],
    );
    let output = place.run(&["test", "review", "--json"]);
    let report = output.envelope();
    (output.exit(), report["modules"][0]["cases"][0].clone())
}

// TEST-003: every documented rule can pass and can fail.
#[test]
fn every_documented_rule_holds_and_fails_where_it_should() {
    let place = place();
    let printed = json!({
        "_validate": { "required": ["issues", "confidence", "rationale"], "confidence_min": 0.8 },
        "_contains": { "issues[*].type": ["security"], "rationale": ["SQL injection", "f-string"] },
    });
    assert_eq!(judged(&place, &printed).0, 0, "the complete example of the guide");
    let validate = |rule: &str, argument: Value| {
        let rules: serde_json::Map<String, Value> = [(rule.to_owned(), argument)].into_iter().collect();
        json!({ "_validate": rules })
    };
    for (rule, holds, fails, path) in [
        ("required", json!(["confidence"]), json!(["confidence", "nothing"]), "data.nothing"),
        ("required", json!(["risk", "explain", "summary"]), json!(["error"]), "error"),
        ("confidence_min", json!(0.85), json!(0.9), "meta.confidence"),
        ("confidence_max", json!(1.0), json!(0.8), "meta.confidence"),
        ("rationale_min_length", json!(50), json!(500), "data.rationale"),
        ("contains", json!(["security"]), json!(["XSS"]), "data"),
        ("not_contains", json!(["XSS"]), json!(["SQL"]), "data"),
        ("approved", json!(false), json!(true), "data.approved"),
        ("score_min", json!(7), json!(8), "data.score"),
        ("score_max", json!(7), json!(6), "data.score"),
        ("rationale_contains", json!("open door"), json!("constant"), "data.rationale"),
        ("summary_matches", json!("^x\\s*="), json!("^y"), "data.summary"),
        ("issues[0].risk_not", json!("high"), json!("low"), "data.issues[0].risk"),
    ] {
        assert_eq!(judged(&place, &validate(rule, holds)).0, 0, "{rule}");
        let (code, case) = judged(&place, &validate(rule, fails));
        assert_eq!((code, &case["differences"][0]["path"]), (1, &json!(path)), "{rule} {case}");
        assert_eq!(case["differences"].as_array().unwrap().len(), 1, "{case}");
    }
    let (code, case) =
        judged(&place, &json!({ "_contains": { "issues[*].type": ["security", "performance"] } }));
    assert_eq!((code, &case["differences"][0]["path"]), (1, &json!("issues[*].type")), "{case}");
    assert_eq!(
        judged(&place, &json!({ "approved": false, "confidence": 0.85 })).0,
        0,
        "TEST-002: exact mode"
    );
}

// FMT-002: `tests/` may be missing, and that is never an error.
#[test]
fn fmt_002_a_module_without_tests_is_no_failure() {
    let place = place();
    for command in [&["test", "review"][..], &["test", "review", "--coverage", "--junit", "out.xml"]] {
        let output = place.run(command);
        assert_eq!(output.exit(), 0, "{}", output.out);
        assert!(
            output.out.contains("review no tests") && output.out.contains("0 failed, 1 skipped"),
            "{}",
            output.out
        );
    }
    assert!(std::fs::read_to_string(place.path("out.xml")).unwrap().contains("skipped=\"1\""));
    assert_eq!(place.run(&["validate", "review"]).exit(), 0);
    assert_eq!(place.run(&["test", "no-such-module"]).exit(), 1, "what cannot be tested is still a failure");
}
