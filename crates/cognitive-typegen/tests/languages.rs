//! Compares the types of a contract with every shape, in each language, with a file. The Rust file is compiled here and
//! reads a real envelope. `UPDATE_TYPES=1` rewrites the files.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use cognitive_contract::Module;
use cognitive_library::{Folder, load};
use cognitive_typegen::{TypeDefinition, TypeLanguage, TypeSet};
use serde_json::json;

// The generated text must not be reformatted.
#[rustfmt::skip]
#[path = "expected/types.rs"]
mod types;

fn module() -> Arc<Module> {
    let custom = json!({
        "type": "object", "required": ["custom", "reason"],
        "properties": { "custom": { "type": "string", "maxLength": 32 }, "reason": { "type": "string" } },
    });
    let schema = json!({
        "$defs": {
            "node": {
                "type": "object", "required": ["value"],
                "properties": { "value": { "type": "integer" }, "next": { "$ref": "#/$defs/node" } },
            },
        },
        "input": {
            "type": "object", "required": ["text", "first-name"],
            "properties": {
                "text": { "type": "string", "description": "Ends a comment: */ and \"\"\"" },
                "first-name": { "type": "string" },
                "class": { "type": ["string", "null"] },
                "mood": { "enum": ["it's", "\"fine\""] },
                "limits": { "type": "object", "additionalProperties": { "type": "number" } },
            },
        },
        "data": {
            "type": "object", "required": ["rationale", "kind", "level", "chain"], "additionalProperties": false,
            "properties": {
                "rationale": { "type": "string" },
                "kind": { "anyOf": [{ "enum": ["a", "b-c", "self"] }, custom] },
                "level": { "enum": [1, 2, 3] },
                "chain": { "$ref": "#/$defs/node" },
                "either": { "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "integer" } }] },
                "type": { "const": "x" },
                "places": {
                    "type": "array",
                    "items": { "type": "object", "required": ["line"], "properties": { "line": { "type": "integer" } } },
                },
                "anything": {},
            },
        },
    });
    let manifest = "name: all-shapes\nversion: 1.2.0\nresponsibility: Shows shapes\ntier: decision\n";
    let files = [
        ("module.yaml", manifest.to_owned()),
        ("prompt.md", "Do it.".to_owned()),
        ("schema.json", schema.to_string()),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.into_bytes()));
    Arc::new(load(&Folder::memory("all-shapes", BTreeMap::from(files))).unwrap())
}

#[test]
fn every_shape_is_expressed_in_every_language() {
    let set = TypeSet::new(&[module()]);
    let languages = [
        (TypeLanguage::Python, "types_dict.py"),
        (TypeLanguage::Pydantic, "types_pydantic.py"),
        (TypeLanguage::TypeScript, "types.ts"),
        (TypeLanguage::Rust, "types.rs"),
    ];
    for (language, file) in languages {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(file);
        let text = set.print(language);
        if env::var_os("UPDATE_TYPES").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "{file} is not up to date; UPDATE_TYPES=1 writes it. It should be:\n{text}");
    }
}

#[test]
fn the_order_of_modules_does_not_matter_and_names_are_unique() {
    let one = module();
    let mut other = Module::clone(&one);
    other.manifest.name = "all_shapes".to_owned();
    let other = Arc::new(other);
    let set = TypeSet::new(&[Arc::clone(&one), Arc::clone(&other)]);
    assert_eq!(set, TypeSet::new(&[other, one]));
    let mut names: Vec<&str> = set
        .modules
        .iter()
        .flat_map(|module| &module.types)
        .chain(&set.shared)
        .map(TypeDefinition::name)
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn the_types_of_rust_read_and_write_envelopes() {
    let success = json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": {
            "rationale": "r", "kind": "b-c", "level": 2, "chain": { "value": 1, "next": { "value": 2 } },
            "either": [1, 2], "type": "x", "places": [{ "line": 3 }],
        },
    });
    let envelope: types::AllShapesEnvelope = serde_json::from_value(success.clone()).unwrap();
    assert_eq!(serde_json::to_value(&envelope).unwrap(), success);
    let types::Envelope::Success(answer) = envelope else { panic!("a success") };
    assert_eq!(answer.data.chain.next.unwrap().value, 2);
    let failure = json!({
        "ok": false, "meta": { "confidence": 0.0, "risk": "high", "explain": "e" },
        "error": { "code": "E3001", "message": "m" }, "partial_data": { "rationale": "r" },
    });
    let envelope: types::AllShapesEnvelope = serde_json::from_value(failure.clone()).unwrap();
    assert!(matches!(&envelope, types::Envelope::Failure(failed) if failed.error.code == "E3001"));
    assert_eq!(serde_json::to_value(&envelope).unwrap(), failure);
    let input = json!({ "text": "t", "first-name": "n", "limits": { "a": 1.5 } });
    let read: types::AllShapesInput = serde_json::from_value(input.clone()).unwrap();
    assert_eq!((read.first_name.as_str(), &read.class), ("n", &None));
    assert_eq!(serde_json::to_value(&read).unwrap(), input);
    let custom = json!({ "custom": "d", "reason": "new" });
    let kind: types::AllShapesDataKindChoice = serde_json::from_value(custom).unwrap();
    assert!(matches!(kind, types::AllShapesDataKindChoice::Custom(custom) if custom.custom == "d"));
}
