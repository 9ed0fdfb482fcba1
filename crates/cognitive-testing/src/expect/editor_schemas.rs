//! The syntax of expectations as a JSON Schema, so that editors flag unknown rules and invalid arguments
//! while typing. Each module defines its own places, so any other name is accepted.

use serde_json::{Map, Value, json};

use super::value_rule::RULE_NAMES;

/// The schema of `tests/CASE.expected.json`.
#[must_use]
pub fn expectation_schema() -> Value {
    let mut root = expectation();
    if let Value::Object(members) = &mut root {
        members.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        members.insert("title".to_owned(), json!("The expectation of a golden test"));
        members.insert("definitions".to_owned(), definitions());
    }
    root
}

/// The schema of one line of `eval/*.jsonl`.
#[must_use]
pub fn labelled_case_schema() -> Value {
    let text = |description: &str| json!({ "type": "string", "minLength": 1, "description": description });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A labelled case",
        "type": "object",
        "required": ["input", "expect"],
        "additionalProperties": false,
        "properties": {
            "id": text("The id of the case, unique in its file"),
            "half": text("The part of the set that it belongs to, such as held-out"),
            "input": { "type": "object", "description": "The input of the run" },
            "expect": expectation(),
        },
        "definitions": definitions(),
    })
}

/// The schema of places and their expected values.
fn expectation() -> Value {
    let texts = json!({ "$ref": "#/definitions/texts" });
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": false,
        "patternProperties": { "^[^_$]": { "$ref": "#/definitions/value" } },
        "properties": {
            "ok": {
                "description": "Success or failure of the run",
                "anyOf": [{ "type": "boolean" }, { "$ref": "#/definitions/rules" }],
            },
            "error": { "type": "object", "description": "The error, such as {\"code\": \"E2004\"}" },
            "_validate": {
                "type": "object",
                "minProperties": 1,
                "description": "Rules in their older spelling; FIELD_min, FIELD_contains and the like are rules too",
                "properties": {
                    "required": texts, "contains": texts, "not_contains": texts,
                    "confidence_min": { "type": "number", "minimum": 0, "maximum": 1 },
                    "confidence_max": { "type": "number", "minimum": 0, "maximum": 1 },
                    "rationale_min_length": { "type": "integer", "minimum": 0 },
                    "risk": { "type": ["string", "array"] },
                    "risk_max": { "enum": ["none", "low", "medium", "high"] },
                },
            },
            "_contains": {
                "type": "object", "minProperties": 1, "additionalProperties": texts,
                "description": "Texts that occur at a place, in an older spelling",
            },
            "$validate": {
                "type": "object", "minProperties": 1, "additionalProperties": { "type": ["object", "boolean"] },
                "description": "A JSON Schema for each place",
            },
            "$schema": { "type": "string" },
            "$comment": true,
            "$example": true,
        },
    })
}

fn definitions() -> Value {
    let rules: Map<String, Value> =
        RULE_NAMES.iter().map(|name| ((*name).to_owned(), argument(name))).chain(notes()).collect();
    let is_rule: Vec<Value> = RULE_NAMES.iter().map(|name| json!({ "required": [name] })).collect();
    // A single member that starts with `$` is meant as a rule, even if no such rule exists.
    let lone = json!({
        "type": "object", "minProperties": 1, "maxProperties": 1,
        "additionalProperties": false, "patternProperties": { "^\\$": true },
    });
    let is_rule: Vec<Value> = is_rule.into_iter().chain([lone]).collect();
    json!({
        "texts": { "type": "array", "minItems": 1, "items": { "type": "string", "minLength": 1 } },
        "rules": { "type": "object", "minProperties": 1, "additionalProperties": false, "properties": rules },
        "value": {
            "description": "A value, or rules such as {\"$in\": [\"a\", \"b\"]}",
            "if": { "type": "object", "anyOf": is_rule },
            "then": { "$ref": "#/definitions/rules" },
            "else": {
                "items": { "$ref": "#/definitions/value" },
                "additionalProperties": { "$ref": "#/definitions/value" },
            },
        },
    })
}

fn notes() -> [(String, Value); 2] {
    ["$comment", "$example"].map(|name| (name.to_owned(), Value::Bool(true)))
}

/// The schema of a rule's argument, with a description.
fn argument(rule: &str) -> Value {
    let texts = json!({ "$ref": "#/definitions/texts" });
    let pattern = json!({ "$ref": "#/definitions/value" });
    let (words, takes) = match rule {
        "$exact" => ("Equal at every level; members are values, never rules", json!({})),
        "$part" => ("An object with at least these members", json!({ "type": "object" })),
        "$in" => ("One of these values", json!({ "type": "array", "minItems": 1 })),
        "$not" => ("A value that does not match this", json!({ "allOf": [pattern] })),
        "$present" => ("Anything, also null", json!({ "const": true })),
        "$absent" => ("Nothing", json!({ "const": true })),
        "$absent_or_null" => ("Nothing, or null", json!({ "const": true })),
        "$type" => (
            "A value of this type",
            json!({ "enum": ["string", "number", "boolean", "array", "object", "null"] }),
        ),
        "$validate" => ("A value that fits this JSON Schema", json!({ "type": ["object", "boolean"] })),
        "$min" => ("A number at or above this one", json!({ "type": "number" })),
        "$max" => ("A number at or below this one", json!({ "type": "number" })),
        "$range" => (
            "A number between two bounds, both included",
            json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "number" } }),
        ),
        "$text" => ("This text, ignoring case and white space", json!({ "type": "string" })),
        "$regex" => ("A text that matches this regular expression", json!({ "type": "string" })),
        "$contains" => (
            "All of these texts occur; a list of texts means one of them",
            json!({ "type": "array", "minItems": 1, "items": { "anyOf": [{ "type": "string", "minLength": 1 }, texts] } }),
        ),
        "$len" => ("A text or list of this length", json!({ "type": "integer", "minimum": 0 })),
        "$minlen" => ("A text or list of at least this length", json!({ "type": "integer", "minimum": 0 })),
        "$maxlen" => ("A text or list of at most this length", json!({ "type": "integer", "minimum": 0 })),
        "$set" => ("A list of these items in any order", json!({ "type": "array" })),
        "$subset_of" => ("A list with no other items than these", json!({ "type": "array" })),
        "$superset_of" => ("A list that has all of these items", json!({ "type": "array" })),
        "$some" => ("A list with an item that matches", json!({ "allOf": [pattern] })),
        "$every" => ("A list whose items all match", json!({ "allOf": [pattern] })),
        "$none" => ("A list without an item that matches", json!({ "allOf": [pattern] })),
        "$code" => ("One of these error codes", json!({ "allOf": [texts] })),
        "$lacks" => ("None of these texts occurs", json!({ "allOf": [texts] })),
        "$json_contains" => ("The JSON text has all of these", json!({ "allOf": [texts] })),
        _ => ("The JSON text has none of these", json!({ "allOf": [texts] })),
    };
    let mut takes = takes;
    if let Value::Object(members) = &mut takes {
        members.insert("description".to_owned(), json!(words));
    }
    takes
}

#[cfg(test)]
mod tests {
    use cognitive_schema::Section;

    use super::super::expectation::{Expectation, ExpectationUse};
    use super::*;

    fn judged(text: &str) -> (bool, bool) {
        let value: Value = serde_json::from_str(text).unwrap();
        let section = Section::standalone(&expectation_schema()).unwrap();
        (Expectation::parse(&value, ExpectationUse::Golden).is_ok(), section.accepts(&value))
    }

    #[test]
    fn editor_and_reader_take_and_refuse_the_same() {
        for good in [
            r#"{"ok": true, "label": "a", "confidence": {"$min": 0.5}}"#,
            r#"{"issues[*].type": {"$in": ["a", "b"], "$comment": "why"}, "data.x": {"y": [{"$type": "string"}]}}"#,
            r#"{"x": {"$some": {"kind": {"$not": "a"}}}, "y": {"$contains": ["a", ["b", "c"]]}, "$schema": "s"}"#,
            r#"{"_validate": {"required": ["a"], "score_min": 3}, "_contains": {"a": ["b"]}}"#,
            r#"{"$validate": {"data.a": {"type": "string"}}, "error": {"code": "E2004"}}"#,
            r#"{"x": {"$ref": "a", "$id": "b"}, "y": {"$exact": {"$in": 1}}}"#,
        ] {
            assert_eq!(judged(good), (true, true), "{good}");
        }
        for bad in [
            "{}",
            r#"{"$comment": "nothing"}"#,
            r#"{"_validat": {"required": ["a"]}}"#,
            r#"{"label": {"$inn": ["a"]}}"#,
            r#"{"label": {"$in": ["a"], "$mim": 1}}"#,
            r#"{"label": {"$in": "a"}}"#,
            r#"{"label": {"$min": "1"}}"#,
            r#"{"label": [{"$type": "text"}]}"#,
            r#"{"ok": "yes"}"#,
            r#"{"error": "E2004"}"#,
            r#"{"x": {"$absent": false}}"#,
            r#"{"_validate": {"required": []}}"#,
        ] {
            let (read, marked) = judged(bad);
            // The schema accepts an expectation that only contains notes; the parser refuses it.
            assert!(!read && (!marked || bad.contains("nothing")), "{bad}: {read} {marked}");
        }
    }

    #[test]
    fn every_rule_says_what_it_takes() {
        for name in RULE_NAMES {
            assert!(argument(name)["description"].is_string());
            // The last arm covers a single rule.
            let is_last = name == "$json_lacks";
            assert_eq!(argument(name)["description"] == "The JSON text has none of these", is_last, "{name}");
        }
    }

    #[test]
    fn every_bundled_expectation_and_labelled_case_fits() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let section = Section::standalone(&expectation_schema()).unwrap();
        let mut count = 0;
        for module in std::fs::read_dir(format!("{root}/modules")).unwrap() {
            for file in std::fs::read_dir(module.unwrap().path().join("tests")).into_iter().flatten() {
                let path = file.unwrap().path();
                if path.to_string_lossy().ends_with(".expected.json") {
                    let value: Value =
                        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
                    assert!(section.accepts(&value), "{}: {:?}", path.display(), section.violations(&value));
                    count += 1;
                }
            }
        }
        assert!(count > 40, "{count}");
        let section = Section::standalone(&labelled_case_schema()).unwrap();
        for file in std::fs::read_dir(format!("{root}/eval")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for line in text.lines() {
                let value: Value = serde_json::from_str(line).unwrap();
                assert!(section.accepts(&value), "{line}: {:?}", section.violations(&value));
            }
        }
        assert!(
            !section.accepts(&json!({ "input": {} }))
                && !section.accepts(&json!({ "input": {}, "expect": { "a": 1 }, "hlaf": "x" }))
        );
    }
}
