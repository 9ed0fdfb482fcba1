//! `cogn verify`: the levels of the published certification that a program can check (TEST-005).

use serde_json::{Value, json};

use super::support::{Place, answer};

fn level(place: &Place, module: &str) -> (i32, Value) {
    let output = place.run(&["verify", module, "--output", "report.json"]);
    let report = output.envelope();
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("report.json")).unwrap()).unwrap();
    assert_eq!(written, report, "the file says the same");
    (output.exit(), report)
}

// TEST-005, CLI-002: the report has the published format, and each level requires what it documents.
#[test]
fn test_005_a_module_is_graded_step_by_step() {
    let place = Place::new();
    place.finder("words", "");
    let (code, report) = level(&place, "words");
    assert_eq!((code, &report["level"]), (1, &json!(null)), "it was never run: {report}");
    let case = |name: &str, reply: &Value, expected: &Value| {
        place.module(
            "words",
            &[
                (&format!("tests/{name}.input.json"), r#"{"text": "t"}"#),
                (&format!("tests/{name}.expected.json"), &expected.to_string()),
                (&format!("tests/{name}.reply.txt"), &reply.to_string()),
            ],
        );
    };
    case("good", &answer(), &json!({ "word": "a" }));
    assert_eq!(level(&place, "words").1["checks"]["documented"], false);
    place.module("words", &[("README.md", "# Words\n\nFinds a word.\n")]);
    let (code, report) = level(&place, "words");
    assert_eq!(
        (code, &report["level"], &report["module"], &report["version"]),
        (0, &json!("bronze"), &json!("words"), &json!("1.0.0")),
        "{report}"
    );
    for check in ["schema_valid", "runs_successfully", "envelope_valid"] {
        assert_eq!(report["checks"][check], true, "{report}");
    }
    assert!(report["timestamp"].as_str().unwrap().ends_with('Z'), "{report}");
    assert!(report["verification_hash"].as_str().unwrap().starts_with("sha256:"), "{report}");
    let mut other = answer();
    other["data"]["word"] = json!("b");
    case("other", &other, &json!({ "word": "b" }));
    let refusal = json!({ "ok": false, "meta": { "confidence": 0.1, "risk": "low", "explain": "e" }, "error": { "code": "E2004", "message": "no word" } });
    case("refusal", &refusal, &json!({ "ok": false }));
    assert_eq!(level(&place, "words").1["level"], "bronze", "examples are missing");
    place.module(
        "words",
        &[("examples/input.json", r#"{"text": "t"}"#), ("examples/output.json", &answer().to_string())],
    );
    let (_, silver) = level(&place, "words");
    assert_eq!(silver["level"], "silver", "{silver}");
    assert_ne!(silver["module_digest"], json!(null));
    case("good", &answer(), &json!({ "word": "z" }));
    assert_eq!(level(&place, "words").1["level"], "bronze", "a test fails");
    place.module("words", &[("examples/output.json", "{")]);
    let (code, broken) = level(&place, "words");
    assert_eq!(
        (code, &broken["checks"]["schema_valid"]),
        (1, &json!(false)),
        "an example is broken: {broken}"
    );
    assert_eq!(place.run(&["verify", "no-such-module"]).exit(), 1);
}
