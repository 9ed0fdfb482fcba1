//! The cost of checking an answer, relative to the unavoidable work: parsing the text and validating its data.
//! Baseline, in the same run: bare `serde_json` parse plus bare `jsonschema` validation of the same text.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark may panic")]

use std::hint::black_box;

use cognitive_contract::{Enforcement, Format, Manifest, Module};
use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "meta": {
            "type": "object", "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
                "explain": { "type": "string", "maxLength": 280 },
            },
        },
        "input": { "type": "object" },
        "data": {
            "type": "object", "required": ["rationale", "changes"],
            "properties": {
                "rationale": { "type": "string", "minLength": 1 },
                "changes": { "type": "array", "items": {
                    "type": "object", "required": ["type", "description", "risk"],
                    "properties": {
                        "type": { "oneOf": [
                            { "type": "string", "enum": ["remove_redundancy", "simplify_logic", "other"] },
                            { "type": "object", "required": ["custom", "reason"], "properties": {
                                "custom": { "type": "string", "minLength": 1, "maxLength": 32 }, "reason": { "type": "string" } } },
                        ] },
                        "description": { "type": "string" },
                        "risk": { "enum": ["none", "low", "medium", "high"] },
                    },
                } },
                "extensions": { "$ref": "#/$defs/extensions" },
            },
        },
        "$defs": { "extensions": { "type": "object", "properties": { "insights": { "type": "array", "maxItems": 5 } } } },
    })
}

/// A typical model answer of about 4 KB.
fn text() -> String {
    let changes: Vec<Value> = (0..18)
        .map(|n| json!({ "type": "simplify_logic", "description": format!("Step {n}: the branch was folded into one expression, because both arms returned the same value and neither had a side effect."), "risk": "low" }))
        .collect();
    let envelope = json!({
        "ok": true,
        "meta": { "confidence": 0.91, "risk": "low", "explain": "Eighteen local, mechanical changes." },
        "data": { "rationale": "Each change keeps the observable behaviour. ".repeat(20), "changes": changes,
                  "extensions": { "insights": [{ "text": "naming", "suggested_mapping": "data.naming" }] } },
    });
    serde_json::to_string_pretty(&envelope).unwrap()
}

fn module() -> Module {
    let manifest = Manifest::from_value(&json!({ "name": "m", "tier": "decision" }), Format::V22).unwrap();
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema())]);
    let contract = Contract::compile(&files, &manifest.layout()).unwrap();
    Module::new(manifest, contract, String::new(), Format::V22)
}

fn bench(criterion: &mut Criterion) {
    let (text, module) = (text(), module());
    assert!((3_500..5_500).contains(&text.len()), "{} bytes", text.len());
    let bare = {
        let root = schema();
        let mut section = root["data"].clone();
        section["$defs"] = root["$defs"].clone();
        jsonschema::draft7::new(&section).unwrap()
    };
    let mut group = criterion.benchmark_group("4 KB envelope");
    group.bench_function("baseline: bare parse and bare validation", |bencher| {
        bencher.iter(|| {
            let value: Value = serde_json::from_str(black_box(&text)).unwrap();
            bare.is_valid(&value["data"])
        });
    });
    group.bench_function("checked: parse, envelope, meta, data, rules", |bencher| {
        bencher.iter(|| {
            let value: Value = serde_json::from_str(black_box(&text)).unwrap();
            module.envelope_violations(&value, Enforcement::Full).is_empty()
                && module.rule_violations(&value).is_empty()
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
