//! What authors write: manifests, schemas, expressions, prompts and weights. Anything gets a verdict, and a verdict holds.

use std::collections::BTreeMap;

use cognitive_contract::Envelope;
use cognitive_contract::compose::calls::directives;
use cognitive_contract::compose::{Condition, Path, VersionRange};
use cognitive_library::{Folder, Mode, load, validate};
use cognitive_llama::Model;
use cognitive_schema::SchemaTarget;
use serde_json::{Value, json};

/// Any text that is a valid envelope can be written and read again, and says the same.
pub fn envelope(data: &[u8]) {
    let Ok(value) = serde_json::from_slice(data) else { return };
    let Ok(envelope) = Envelope::from_value(value) else { return };
    let written = serde_json::to_value(&envelope).expect("an envelope is JSON");
    let again = Envelope::from_value(written.clone()).expect("what was valid stays valid");
    assert_eq!(serde_json::to_value(&again).expect("an envelope is JSON"), written);
}

const SCHEMA: &[u8] = br#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["rationale"],
    "properties": {"rationale": {"type": "string"}}}}"#;
const MANIFEST: &[u8] = b"name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n";

/// Any `module.yaml`: validation gives a verdict with places, and what it calls valid loads.
pub fn manifest(data: &[u8]) {
    folder(data, SCHEMA, b"Answer in the envelope.");
}

/// Any `schema.json`: the same, and what loads can be said to every provider.
pub fn schema(data: &[u8]) {
    let Some(folder) = folder(MANIFEST, data, b"Answer in the envelope.") else { return };
    let Ok(module) = load(&folder) else { return };
    for target in [
        SchemaTarget::OpenAi,
        SchemaTarget::Anthropic,
        SchemaTarget::Gemini,
        SchemaTarget::Ollama,
        SchemaTarget::Grammar,
    ] {
        let lowered = module.provider_schema(target);
        assert!(serde_json::from_str::<Value>(lowered.text()).is_ok(), "{target:?}");
    }
}

fn folder(manifest: &[u8], schema: &[u8], prompt: &[u8]) -> Option<Folder> {
    let files = BTreeMap::from([
        ("module.yaml".to_owned(), manifest.to_vec()),
        ("schema.json".to_owned(), schema.to_vec()),
        ("prompt.md".to_owned(), prompt.to_vec()),
    ]);
    let folder = Folder::memory("m", files);
    let mut valid = false;
    for mode in [Mode::Standard, Mode::Strict] {
        let report = validate(&folder, mode);
        for finding in &report.findings {
            let _place = report.sources.locate(finding);
        }
        valid |= report.valid();
    }
    if valid {
        assert!(load(&folder).is_ok());
    }
    valid.then_some(folder)
}

/// Any path, condition, version range and prompt with calls: what parses parses again from its own text, and says the
/// same of the same value.
pub fn expressions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let value =
        json!({ "ok": true, "data": { "list": [1, { "name": "x" }], "text": "t", "n": 0.5 }, "": null });
    if let Ok(condition) = Condition::parse(text) {
        let again = Condition::parse(condition.source()).expect("its own text");
        assert_eq!(condition.holds(&value), again.holds(&value));
    }
    if let Ok(path) = Path::parse(text) {
        // A list of nothing is found and does not exist.
        assert!(!path.exists(&value) || path.find(&value).is_some());
    }
    if let Some(range) = VersionRange::parse(text) {
        let _ = range.matches("1.2.3");
    }
    let found = directives(text);
    let pieces = found.pieces(text);
    assert!(pieces.len() <= text.len() + 1);
    if text.len() < 4_096 {
        let quoted = serde_json::to_string(text).expect("text is JSON");
        let yaml = format!(
            "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\ncomposition:\n  requires: [{{name: a}}]\n  \
             dataflow: [{{from: input, to: a, condition: {quoted}, mapping: {{x: {quoted}}}}}]\n"
        );
        folder(yaml.as_bytes(), SCHEMA, data);
    }
}

/// Any file of weights: refused with a reason, or a model that has a vocabulary.
pub fn weights(data: &[u8]) {
    if let Ok(model) = Model::from_bytes(data) {
        let tokens = model.tokenizer().encode("A text, and another one.");
        assert!(
            tokens
                .iter()
                .all(|token| usize::try_from(*token).is_ok_and(|token| token < model.tokenizer().len()))
        );
    }
}
