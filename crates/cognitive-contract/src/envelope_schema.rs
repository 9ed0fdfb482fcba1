//! The envelope contract as a JSON Schema, for editors, gateways and other languages.
//! Built from the same constants as the check in `envelope.rs`; a test keeps them consistent. `/openapi.json` and the
//! client for TypeScript have the same shape through [`JsonSchema`], with the members that only this runtime writes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::envelope::{Envelope, ErrorBody, FAILURE_MEMBERS, SUCCESS_MEMBERS};
use crate::insights::MAX_LIMIT;
use crate::meta::{EXPLAIN_LIMIT, Meta, Warning};
use crate::risk_level::Risk;
use crate::stream::Recovery;
use crate::usage::Usage;

/// Returns the Draft-07 schema of an envelope, independent of any module.
#[must_use]
pub fn json_schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Cognitive Module envelope",
        "description": "The answer of every run: a success with data, or a failure with an error.",
        "oneOf": [success(), failure()],
        "definitions": {
            "meta": meta(),
            "data": data(),
            "error": error(),
        },
    })
}

fn success() -> Value {
    closed_object("A run that met its contract.", &SUCCESS_MEMBERS, &["ok", "meta", "data"], true)
}

fn failure() -> Value {
    closed_object("A run that did not meet its contract.", &FAILURE_MEMBERS, &["ok", "meta", "error"], false)
}

fn closed_object(description: &str, members: &[&str], required: &[&str], ok: bool) -> Value {
    let properties: Map<String, Value> =
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
            "risk": {
                "enum": Risk::WORDS,
                "description": "The harm that acting on the answer could do. `high` in a failure of the runtime means that \
                     nothing may act on it, and says nothing about the input.",
            },
            "explain": {
                "type": "string", "maxLength": EXPLAIN_LIMIT, "description": "One line for logs and review cards.",
            },
            "trace_id": { "type": "string", "description": "The id of the run in audit records and traces." },
            "model": { "type": "string", "description": "provider/model" },
            "latency_ms": {
                "type": "number", "minimum": 0,
                "description": "The time of the whole run in milliseconds, with checks, media, parts and waiting.",
            },
            "processing_time_ms": {
                "type": "integer", "minimum": 0,
                "description": "The part of the run's `latency_ms` that was spent in calls of models.",
            },
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

/// Returns an object schema with `members` in the place of some of its properties, or beside them.
fn with_members<const N: usize>(mut schema: Value, members: [(&str, Schema); N]) -> Schema {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.extend(members.map(|(name, member)| (name.to_owned(), member.to_value())));
    }
    Schema::try_from(schema).unwrap_or_default()
}

/// The properties of `meta` that have types of their own.
fn typed_meta(written: Value, generator: &mut SchemaGenerator) -> Schema {
    let mut receipt = generator.subschema_for::<Map<String, Value>>();
    receipt.insert("description".to_owned(), "The receipt of the run, if it was asked for".into());
    with_members(
        written,
        [
            ("usage", generator.subschema_for::<Usage>()),
            ("warnings", generator.subschema_for::<Vec<Warning>>()),
            ("provenance", receipt),
        ],
    )
}

/// Gives a type a schema that is not derived from its members.
macro_rules! named_schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
                schema(generator)
            }
        }
    };
}

/// The `meta` of the first chunk of a stream.
pub(crate) struct OpeningMeta;

/// The envelope of a success.
struct Success;

/// The envelope of a failure.
struct FailedRun;

named_schema!(Meta, "Meta", |generator| typed_meta(meta(), generator));
named_schema!(OpeningMeta, "OpeningMeta", |generator| {
    let mut written = meta();
    if let Some(kind) = written.pointer_mut("/properties/confidence/type") {
        // Null until the model has produced it (STREAM-026).
        *kind = json!(["number", "null"]);
    }
    typed_meta(written, generator)
});
named_schema!(ErrorBody, "RunError", |generator| {
    with_members(error(), [("recovery", generator.subschema_for::<Recovery>())])
});
named_schema!(Success, "Success", |generator| {
    let data = generator.subschema_for::<Map<String, Value>>();
    sent_form(success(), [("meta", generator.subschema_for::<Meta>()), ("data", data)])
});
named_schema!(FailedRun, "Failure", |generator| {
    let error = generator.subschema_for::<ErrorBody>();
    sent_form(failure(), [("meta", generator.subschema_for::<Meta>()), ("error", error)])
});

/// Returns the form of an envelope that this runtime sends: token counts are in `meta`, and later versions may add members.
fn sent_form<const N: usize>(mut written: Value, members: [(&str, Schema); N]) -> Schema {
    if let Some(written) = written.as_object_mut() {
        written.shift_remove("additionalProperties");
        if let Some(properties) = written.get_mut("properties").and_then(Value::as_object_mut) {
            properties.shift_remove("usage");
        }
    }
    with_members(written, members)
}

impl JsonSchema for Envelope {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Envelope".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = [generator.subschema_for::<Success>(), generator.subschema_for::<FailedRun>()];
        schemars::json_schema!({ "anyOf": kinds })
    }
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
