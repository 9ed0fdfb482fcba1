//! Tests the forms of published modules: their examples, and their names for definitions.

use serde_json::{Value, json};

use super::super::Mode;
use super::{after, check, good};

// VAL-002: every published form of examples, each with one fault.
#[test]
fn examples_of_every_published_form_are_judged() {
    let (manifest, mut schema, prompt) = good();
    schema["input"] =
        json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } });
    schema["data"]["properties"]["result"] = json!({ "type": "string" });
    let with = |files: &[(&str, &str)]| check(&manifest, &schema, prompt, files, Mode::Standard);
    let payload = r#"{"rationale": "r", "result": "x"}"#;
    let envelope = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": "r", "result": "x"}}"#;
    let failure = r#"{"ok": false, "meta": {"confidence": 0, "risk": "high", "explain": "e"}, "error": {"code": "E2007", "message": "m"}}"#;
    let shown = format!("{{\"ok\": true, \"$example\": {envelope}}}");
    let fine = [
        ("examples/input.json", r#"{"text": "t"}"#),
        ("examples/output.json", payload),
        ("examples/health-product-input.json", r#"{"text": "t"}"#),
        ("examples/health-product-output.json", envelope),
        ("examples/a.input.json", r#"{"text": "t"}"#),
        ("examples/a.output.json", failure),
        ("examples/natural-language-input.json", r#"{"query": "free text"}"#),
        ("examples/notes.md", "no JSON"),
        ("examples/settings.json", "[1]"),
        ("tests/t.input.json", r#"{"text": "t"}"#),
        ("tests/t.expected.json", shown.as_str()),
    ];
    assert_eq!(with(&fine), [""; 0]);
    let no_meta = r#"{"ok": true, "data": {"rationale": "r", "result": "x"}}"#;
    let bad_example = shown.replace("\"result\": \"x\"", "\"result\": 7");
    for (file, text, rule) in [
        ("examples/input.json", r#"{"text": 1}"#, "tests/input"),
        ("examples/input-2.json", r#"{"query": "q", "more": 1}"#, "tests/input"),
        ("examples/health-product-input.json", "{}", "tests/input"),
        ("examples/output.json", r#"{"rationale": "r", "result": 7}"#, "tests/output"),
        ("examples/output.json", "[]", "tests/output"),
        ("examples/a_output.json", no_meta, "tests/output"),
        ("examples/deep/b.output.json", r#"{"result": "x"}"#, "tests/output"),
        ("examples/output.json", "{\"rationale\": \"r\",\n}", "tests/syntax"),
        ("examples/settings.json", "{", "tests/syntax"),
        ("tests/t.expected.json", bad_example.as_str(), "tests/example"),
    ] {
        assert_eq!(with(&[(file, text)]), [format!("Error {rule}")], "{file} {text}");
    }
}

// VAL-015: insights must be described; the name of the definition does not matter.
#[test]
fn val_015_insights_may_be_described_under_any_name() {
    let described = json!({ "type": "object", "properties": { "insights": { "type": "array" } } });
    let with = |definition: &str, extensions: Value| {
        after(Mode::Strict, |manifest, schema| {
            manifest["overflow"] = json!({ "enabled": true, "max_items": 3 });
            let mut definitions = serde_json::Map::new();
            definitions.insert(definition.to_owned(), described.clone());
            definitions.insert("step".to_owned(), json!({ "$ref": format!("#/$defs/{definition}") }));
            schema["$defs"] = Value::Object(definitions);
            schema["data"]["properties"]["extensions"] = extensions;
        })
    };
    assert_eq!(with("Extensions", json!({ "$ref": "#/$defs/Extensions" })), [""; 0]);
    assert_eq!(with("Extensions", json!({ "$ref": "#/$defs/step" })), [""; 0]);
    assert_eq!(with("Extensions", described.clone()), [""; 0], "where it is needed");
    assert_eq!(with("extensions", json!({ "type": "object" })), [""; 0], "the usual name");
    assert_eq!(with("Extensions", json!({ "type": "object" })), ["Error schema/extensions"]);
}
