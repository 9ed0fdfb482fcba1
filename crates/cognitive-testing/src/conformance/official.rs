//! Loads the official vectors of the specification: one file is one case that a runtime has to accept or
//! reject.
//! They become ordinary cases with two separate operations. No rule is duplicated here: envelopes go to the
//! envelope check, and chunks to the stream check. Input goes to a module with the `MediaInput` definition
//! that the specification prints.

use cognitive_contract::envelope::{self, Strictness};
use cognitive_contract::module::output_code;
use cognitive_contract::violation::Side;
use cognitive_contract::{Violation, stream};
use cognitive_schema::{Contract, Layout, SCHEMA_FILE, SchemaFiles};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::case::{Strength, Vector, check_level};
use super::ops::{Arguments, Outcome, VectorStop, broken_vector};

/// The operation that judges an envelope or a stream chunk.
pub(super) const ENVELOPE: &str = "official_envelope";
/// The operation that judges the input of a module that accepts images.
pub(super) const INPUT: &str = "official_input";

#[derive(Deserialize)]
struct Header {
    name: String,
    description: String,
    expects: OfficialVerdict,
    conformance_level: u8,
    #[serde(default)]
    error_codes: Vec<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum OfficialVerdict {
    Accept,
    Reject,
}

/// The case of an official file; `file` is its path below the loaded directory.
pub(super) fn case(file: &str, document: &Value) -> Result<Vector, String> {
    let header = document.get("$test").cloned().unwrap_or_default();
    let header: Header = serde_json::from_value(header).map_err(|error| format!("`$test`: {error}"))?;
    check_level(header.conformance_level)?;
    let (op, name) = match (document.get("envelope"), document.get("input")) {
        (Some(_), None) => (ENVELOPE, "envelope"),
        (None, Some(_)) => (INPUT, "input"),
        _ => return Err("expected either `envelope` or `input` beside `$test`".to_owned()),
    };
    let subject = document.get(name).cloned().unwrap_or_default();
    let path = file.strip_suffix(".json").unwrap_or(file);
    Ok(Vector {
        group: path.rsplit_once('/').map_or("official", |(folder, _)| folder).to_owned(),
        id: path.to_owned(),
        title: format!("{}: {}", header.name, header.description),
        requirements: Vec::new(),
        level: header.conformance_level,
        strength: Strength::Must,
        op: op.to_owned(),
        expect: expectation(&header, &subject),
        given: json!({ name: subject }),
    })
}

/// The expected verdict, and the code if one is published. A single chunk is rejected without a code: it is
/// not an answer, and the code in the official file (E1002) is for input.
fn expectation(header: &Header, subject: &Value) -> Value {
    let mut expect = Map::new();
    expect.insert("accepted".to_owned(), Value::Bool(header.expects == OfficialVerdict::Accept));
    if header.expects == OfficialVerdict::Reject && !header.error_codes.is_empty() && !is_chunk(subject) {
        expect.insert("code".to_owned(), json!({ "$code": header.error_codes }));
    }
    Value::Object(expect)
}

fn is_chunk(value: &Value) -> bool {
    ["chunk", "streaming", "progress", "final"].iter().any(|name| value.get(name).is_some())
}

/// Accepts or rejects an envelope or a single chunk.
pub(super) fn judge_envelope(given: Arguments<'_>) -> Outcome {
    let value = given.value("envelope")?;
    if is_chunk(value) {
        return Ok(json!({ "accepted": stream::check_chunk(value).is_empty() }));
    }
    let found = envelope::check(value, Strictness::default());
    Ok(verdict(&found, &json!(output_code(&found))))
}

/// Accepts or rejects the input of a module with a list of images.
pub(super) fn judge_input(given: Arguments<'_>) -> Outcome {
    let contract = picture_contract()?;
    let found = Violation::find(contract.input(), given.value("input")?, Side::Input);
    Ok(verdict(&found, &json!(found.first().map(|violation| violation.code))))
}

fn verdict(found: &[Violation], code: &Value) -> Value {
    if found.is_empty() { json!({ "accepted": true }) } else { json!({ "accepted": false, "code": code }) }
}

/// The contract of the smallest module that accepts images.
fn picture_contract() -> Result<Contract, VectorStop> {
    let schema = json!({
        "input": {
            "type": "object",
            "required": ["images"],
            "properties": {
                "prompt": { "type": "string" },
                "images": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/MediaInput" } },
            },
        },
        "data": {},
        "$defs": { "MediaInput": media_input() },
    });
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
    Contract::compile(&files, &Layout::default()).map_err(|problems| {
        broken_vector(format!("the schema of media input does not compile: {problems:?}"))
    })
}

/// A media item as printed in v2.5: a kind, and the members that this kind requires.
fn media_input() -> Value {
    json!({
        "type": "object",
        "required": ["type"],
        "oneOf": [
            {
                "properties": {
                    "type": { "const": "url" }, "url": { "type": "string" }, "media_type": { "type": "string" },
                },
                "required": ["type", "url"],
            },
            {
                "properties": {
                    "type": { "const": "base64" },
                    "media_type": { "type": "string", "pattern": "^(image|audio|video)/[a-z0-9.+-]+$" },
                    "data": { "type": "string" },
                },
                "required": ["type", "media_type", "data"],
            },
            {
                "properties": { "type": { "const": "file" }, "path": { "type": "string" } },
                "required": ["type", "path"],
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::super::report::VectorStatus;
    use super::super::run_case;
    use super::*;

    fn status(document: Value) -> VectorStatus {
        run_case(&case("folder/name.json", &document).unwrap()).status
    }

    fn header(expects: &str, codes: Value) -> Value {
        json!({
            "name": "n", "description": "d", "expects": expects, "conformance_level": 1, "error_codes": codes,
        })
    }

    #[test]
    fn a_file_becomes_a_case_named_by_its_path() {
        let document = json!({ "$test": header("reject", json!(["E3001"])), "envelope": {} });
        let case = case("v25/a-b.json", &document).unwrap();
        assert_eq!((case.group.as_str(), case.id.as_str(), case.level), ("v25", "v25/a-b", 1));
        assert_eq!(case.expect, json!({ "accepted": false, "code": { "$code": ["E3001"] } }));
    }

    #[test]
    fn verdicts_and_codes_both_count() {
        let input = json!({ "images": [{ "type": "base64", "data": "AA==" }] });
        let judged =
            |expects, codes| status(json!({ "$test": header(expects, codes), "input": input.clone() }));
        assert_eq!(judged("reject", json!(["E1002"])), VectorStatus::Passed);
        assert!(matches!(judged("reject", json!(["E1001"])), VectorStatus::Failed(_)));
        assert!(matches!(judged("accept", json!([])), VectorStatus::Failed(_)));
    }

    #[test]
    fn chunks_are_judged_as_chunks() {
        let chunk = json!({ "chunk": { "seq": 1, "type": "delta", "field": "data.a", "delta": "x" } });
        assert_eq!(
            status(json!({ "$test": header("accept", json!([])), "envelope": chunk })),
            VectorStatus::Passed
        );
        let nameless = json!({ "ok": true, "streaming": true, "meta": { "risk": "low", "explain": "e" } });
        let document = json!({ "$test": header("reject", json!(["E1002"])), "envelope": nameless });
        assert_eq!(status(document), VectorStatus::Passed);
    }

    #[test]
    fn a_file_that_says_nothing_to_judge_is_refused() {
        assert!(case("a.json", &json!({ "$test": header("accept", json!([])) })).is_err());
        assert!(case("a.json", &json!({ "$test": header("maybe", json!([])), "input": {} })).is_err());
        assert!(case("a.json", &json!({ "$test": {}, "input": {} })).is_err());
    }
}
