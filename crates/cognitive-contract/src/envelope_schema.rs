//! The envelope contract as a JSON Schema, for editors, gateways and other languages.
//! Built from the same constants as the check in `envelope.rs`; a test keeps them consistent.

use serde_json::{Value, json};

use crate::envelope::{FAILURE_MEMBERS, SUCCESS_MEMBERS};
use crate::insights::MAX_LIMIT;
use crate::meta::EXPLAIN_LIMIT;
use crate::risk_level::Risk;

/// Returns the Draft-07 schema of an envelope, independent of any module.
#[must_use]
pub fn json_schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Cognitive Module envelope",
        "description": "The answer of every run: a success with data, or a failure with an error.",
        "oneOf": [
            closed("A run that met its contract.", &SUCCESS_MEMBERS, &["ok", "meta", "data"], true),
            closed("A run that did not meet its contract.", &FAILURE_MEMBERS, &["ok", "meta", "error"], false),
        ],
        "definitions": {
            "meta": meta(),
            "data": data(),
            "error": error(),
        },
    })
}

fn closed(description: &str, members: &[&str], required: &[&str], ok: bool) -> Value {
    let properties: serde_json::Map<String, Value> =
        members.iter().map(|name| ((*name).to_owned(), member(name, ok))).collect();
    json!({
        "description": description,
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

fn member(name: &str, ok: bool) -> Value {
    match name {
        "ok" => json!({ "const": ok }),
        "meta" | "data" | "error" => json!({ "$ref": format!("#/definitions/{name}") }),
        "partial_data" => {
            json!({ "type": ["object", "null"], "description": "The part of the result that exists." })
        }
        "_emitted_context" => json!({ "type": "object", "description": "Context for later runs, by type." }),
        "usage" => {
            let tokens = json!({ "type": "integer", "minimum": 0 });
            json!({
                "type": "object", "description": "Tokens in the form of older runtimes and streams; prefer `meta.usage`.",
                "properties": { "input_tokens": tokens, "output_tokens": tokens, "total_tokens": tokens },
            })
        }
        "streaming" => json!({ "const": true, "description": "The failure came from a stream." }),
        "session_id" => {
            json!({ "type": "string", "minLength": 1, "description": "The id of the stream." })
        }
        _ => json!({}),
    }
}

fn meta() -> Value {
    json!({
        "description": "Control plane: enough to route on without reading the data.",
        "type": "object",
        "required": ["confidence", "risk", "explain"],
        "properties": {
            "confidence": {
                "type": "number", "minimum": 0, "maximum": 1,
                "description": "How sure the module is of having met its declared contract. Not a probability of being right.",
            },
            "calibrated_confidence": {
                "type": "number", "minimum": 0, "maximum": 1,
                "description": "The share of answers with such a confidence that people found right, once \
                     there are enough decisions.",
            },
            "risk": { "enum": Risk::WORDS, "description": "The harm that acting on the answer could do." },
            "explain": {
                "type": "string", "maxLength": EXPLAIN_LIMIT, "description": "One line for logs and review cards.",
            },
            "trace_id": { "type": "string" },
            "model": { "type": "string", "description": "provider/model" },
            "latency_ms": { "type": "number", "minimum": 0 },
            "processing_time_ms": { "type": "integer", "minimum": 0 },
            "usage": { "description": "Tokens of all calls: `input_tokens`, `output_tokens`, `total_tokens`; with a price, `cost` in `currency`." },
            "media_processed": { "type": "array" },
            "media_validation": { "type": "object" },
            "confidence_aggregation": { "enum": ["mean", "min", "weighted_mean"] },
            "generation_quality": {
                "type": "object",
                "properties": {
                    "prompt_adherence": { "type": "number" },
                    "aesthetic_score": { "type": "number" },
                    "technical_quality": { "type": "number" },
                },
            },
            "temporal_confidence": {
                "type": "object",
                "properties": {
                    "overall": { "type": "number", "minimum": 0, "maximum": 1 },
                    "segments": { "type": "array" },
                    "low_confidence_regions": { "type": "array" },
                },
            },
            "warnings": { "type": "array" },
        },
    })
}

fn data() -> Value {
    json!({
        "description": "Business payload. The module's own schema describes it.",
        "type": "object",
        "required": ["rationale"],
        "properties": {
            "rationale": {
                "type": "string", "pattern": r"\S", "description": "The reasoning in full, for audit.",
            },
            "extensions": { "properties": { "insights": {
                "type": "array", "maxItems": MAX_LIMIT,
                "items": {
                    "type": "object",
                    "required": ["text", "suggested_mapping"],
                    "properties": {
                        "text": { "type": "string" },
                        "suggested_mapping": { "type": "string" },
                        "evidence": { "type": "string" },
                    },
                },
            } } },
        },
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": { "type": "string", "description": "E1000 to E4014, E4100 and E4101 of this runtime, or the module's own. `cogn explain CODE`." },
            "message": { "type": "string" },
            "recoverable": { "type": "boolean" },
            "suggestion": { "type": "string" },
            "details": { "type": "object" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::ErrorCode;
    use crate::envelope::{Strictness, check};

    #[test]
    fn the_description_of_the_code_names_all_codes_of_the_runtime() {
        let error = error();
        let words = error["properties"]["code"]["description"].as_str().unwrap();
        let mut published: Vec<&str> = ErrorCode::all().map(ErrorCode::number).collect();
        let own = published.split_off(published.partition_point(|number| *number < "E4100"));
        let ends = [published.first().unwrap(), published.last().unwrap()];
        for number in ends.into_iter().chain(&own) {
            assert!(words.contains(number), "`code` in src/envelope_schema.rs lacks {number}: {words}");
        }
    }

    /// Schema and code agree on every single change to a full envelope.
    #[test]
    fn env_008_schema_and_check_agree_on_mutations() {
        let validator = jsonschema::draft7::new(&json_schema()).unwrap();
        let seeds = [
            json!({
                "ok": true,
                "meta": { "confidence": 0.5, "risk": "low", "explain": "e", "trace_id": "t", "latency_ms": 1,
                          "processing_time_ms": 2, "media_processed": [], "warnings": [],
                          "generation_quality": { "aesthetic_score": 3, "technical_quality": 0.5 },
                          "temporal_confidence": { "overall": 1, "segments": [], "low_confidence_regions": [] } },
                "data": { "rationale": "r", "extensions": { "insights": [{ "text": "t", "suggested_mapping": "m" }] } },
                "usage": { "input_tokens": 1 }, "_emitted_context": {},
            }),
            json!({
                "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "e" },
                "error": { "code": "E1000", "message": "m", "recoverable": true, "suggestion": "s", "details": {} },
                "partial_data": {}, "streaming": true, "session_id": "s",
            }),
        ];
        let replacements = [
            json!(null),
            json!(true),
            json!(-1),
            json!(2),
            json!(0.5),
            json!(""),
            json!("x"),
            json!([]),
            json!({}),
        ];
        let mut judged = 0;
        for seed in &seeds {
            for path in paths(seed, "") {
                for replacement in &replacements {
                    let mut value = seed.clone();
                    *value.pointer_mut(&path).unwrap() = replacement.clone();
                    // Only module schemas define a type for the `extensions` object, which may be absent.
                    if path == "/data/extensions" {
                        continue;
                    }
                    let found = check(&value, Strictness::default());
                    assert_eq!(
                        validator.is_valid(&value),
                        found.is_empty(),
                        "{path} = {replacement}: {found:?}"
                    );
                    judged += 1;
                }
            }
        }
        assert!(judged > 200, "{judged}");
    }

    fn paths(value: &Value, at: &str) -> Vec<String> {
        let mut list = vec![at.to_owned()];
        match value {
            Value::Object(members) => {
                list.extend(members.iter().flat_map(|(name, each)| paths(each, &format!("{at}/{name}"))));
            }
            Value::Array(items) => {
                list.extend(
                    items.iter().enumerate().flat_map(|(index, each)| paths(each, &format!("{at}/{index}"))),
                );
            }
            _ => {}
        }
        list
    }
}
