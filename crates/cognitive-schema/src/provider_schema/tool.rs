//! The contract of a module as the schemas of a tool for agents: the input and the resulting envelope. Many clients of
//! the Model Context Protocol drop a tool, or all tools of a server, for a choice or a reference at the root of its
//! schema. So the root is always an object. The schemas accept the same values as the contract or more; only the
//! contract validates.

use serde_json::{Map, Value, json};

use super::envelope::EnvelopeRules;
use super::sections::{PlainSections, plain_sections};
use super::{Effect, Loss};
use crate::validate::Contract;

/// The input and output schemas of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchemas {
    /// The arguments: the input of the module.
    pub input: Value,
    /// The structured content: the envelope.
    pub output: Value,
    /// The rules of the contract that the input schema does not express.
    pub losses: Vec<Loss>,
}

/// Writes the schemas of a module as a tool.
#[must_use]
pub fn tool_schemas(contract: &Contract, rules: &EnvelopeRules<'_>) -> ToolSchemas {
    let PlainSections { input, data, defs, .. } = plain_sections(contract, rules);
    let mut losses = Vec::new();
    let mut root = object_root(input, &defs, &mut losses);
    for value in root.values_mut() {
        tidy(value, Words::Kept);
    }
    add_defs(&mut root, &defs, Words::Kept);
    let mut output = match envelope_outline() {
        Value::Object(outline) => outline,
        _ => Map::new(),
    };
    let mut data = data;
    tidy(&mut data, Words::Dropped);
    if let Some(Value::Object(members)) = output.get_mut("properties") {
        members.insert("data".to_owned(), data);
    }
    add_defs(&mut output, &defs, Words::Dropped);
    ToolSchemas { input: Value::Object(root), output: Value::Object(output), losses }
}

/// The parts that every envelope has, in any module.
#[must_use]
pub fn envelope_outline() -> Value {
    json!({
        "type": "object",
        "required": ["ok", "meta"],
        "properties": {
            "ok": { "type": "boolean" },
            "meta": { "type": "object", "required": ["confidence", "risk", "explain"], "properties": {
                "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                "risk": { "description": "none, low, medium or high" },
                "explain": { "type": "string" },
            } },
            "data": { "type": "object" },
            "error": { "type": "object", "required": ["code", "message"], "properties": {
                "code": { "type": "string" }, "message": { "type": "string" },
            } },
        },
    })
}

/// The treatment of descriptions. A model reads only those of values that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Kept,
    Dropped,
}

/// Returns the schema with an object at its root. Follows a reference, and reduces a choice to the common parts of its
/// branches.
fn object_root(schema: Value, defs: &Map<String, Value>, losses: &mut Vec<Loss>) -> Map<String, Value> {
    let mut root = match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    // One step is enough, since a type is never just another name for a type.
    if let Some(named) = root.get("$ref").and_then(Value::as_str).and_then(|target| target.rsplit('/').next())
        && let Some(Value::Object(body)) = defs.get(named)
    {
        root.clone_from(body);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = root.shift_remove(word) {
            root = in_common(root, &branches);
            let what = "weakened: the tool call checks combinations of members".to_owned();
            let path = "/properties/input".to_owned();
            losses.push(Loss { path, keyword: word.to_owned(), what, effect: Effect::Validity });
        }
    }
    root.insert("type".to_owned(), Value::from("object"));
    root
}

/// Merges all members of all branches. A member is required if every branch requires it.
fn in_common(mut root: Map<String, Value>, branches: &[Value]) -> Map<String, Value> {
    let mut properties = match root.shift_remove("properties") {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    for (name, schema) in branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten()
    {
        match properties.get(name) {
            None => {
                properties.insert(name.clone(), schema.clone());
            }
            // If two branches describe a member differently, it stays open.
            Some(there) if there != schema => {
                properties.insert(name.clone(), json!({}));
            }
            Some(_) => {}
        }
    }
    let required =
        |branch: &Value| branch.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut shared = branches.first().map(required).unwrap_or_default();
    shared.retain(|name| branches.iter().all(|branch| required(branch).contains(name)));
    let own = root.shift_remove("required").and_then(|own| own.as_array().cloned()).unwrap_or_default();
    let all: Vec<Value> =
        own.iter().cloned().chain(shared.into_iter().filter(|name| !own.contains(name))).collect();
    root.insert("properties".to_owned(), Value::Object(properties));
    if !all.is_empty() {
        root.insert("required".to_owned(), Value::Array(all));
    }
    // A branch may be closed, but the merged object is open.
    root.shift_remove("additionalProperties");
    root
}

/// Removes keywords that no client reads, and `format` of answers, which some clients validate although the contract
/// does not.
fn tidy(schema: &mut Value, words: Words) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, value| {
                let is_text = value.is_string();
                let is_word = name == "description" && is_text && words == Words::Dropped;
                let is_format = name == "format" && is_text && words == Words::Dropped;
                !(is_word
                    || is_format
                    || name.starts_with("x-")
                    || name == "default" && words == Words::Dropped)
            });
            for (name, value) in members.iter_mut() {
                // Values are not schemas.
                if !matches!(name.as_str(), "enum" | "const" | "default" | "examples" | "required") {
                    tidy(value, words);
                }
            }
        }
        Value::Array(branches) => branches.iter_mut().for_each(|branch| tidy(branch, words)),
        _ => {}
    }
}

/// Adds the recursive types, if the schema refers to one.
fn add_defs(root: &mut Map<String, Value>, defs: &Map<String, Value>, words: Words) {
    if defs.is_empty() || !leads_to_defs(&Value::Object(root.clone())) {
        return;
    }
    let mut defs = Value::Object(defs.clone());
    tidy(&mut defs, words);
    root.insert("$defs".to_owned(), defs);
}

fn leads_to_defs(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("$ref") || members.values().any(leads_to_defs),
        Value::Array(items) => items.iter().any(leads_to_defs),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_schema::tests::rules;
    use crate::validate::{Layout, SCHEMA_FILE, SchemaFiles};

    fn schemas(input: Value) -> ToolSchemas {
        let schema = json!({
            "input": input,
            "data": { "type": "object", "required": ["at"], "properties": {
                "at": { "type": "string", "format": "date", "description": "When" },
                "below": { "$ref": "#/$defs/tree" },
            } },
            "$defs": { "tree": { "type": "object", "properties": {
                "below": { "type": "array", "items": { "$ref": "#/$defs/tree" } } } } },
        });
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
        let contract = Contract::compile(&files, &Layout::default()).unwrap();
        let rules = rules(&json!({}));
        tool_schemas(&contract, &rules)
    }

    #[test]
    fn a_choice_at_the_root_becomes_one_object() {
        let written = schemas(json!({ "oneOf": [
            { "type": "object", "required": ["text", "lang"], "properties": { "text": { "type": "string" }, "lang": { "type": "string" } } },
            { "type": "object", "required": ["url", "lang"], "properties": { "url": { "type": "string" }, "lang": { "type": "integer" } } },
        ] }));
        assert_eq!(
            written.input,
            json!({ "type": "object", "required": ["lang"], "properties": {
                "text": { "type": "string" }, "lang": {}, "url": { "type": "string" } } })
        );
        assert_eq!(written.losses.len(), 1);
    }

    #[test]
    fn a_type_that_contains_itself_is_followed_at_the_root_and_kept_below() {
        let written = schemas(json!({ "$ref": "#/$defs/tree" }));
        assert_eq!(written.input["type"], "object");
        assert!(written.input.get("$ref").is_none());
        assert_eq!(written.input["properties"]["below"]["items"]["$ref"], "#/$defs/tree");
        assert!(written.input["$defs"]["tree"].is_object());
        assert!(written.losses.is_empty());
    }

    #[test]
    fn the_format_of_an_answer_is_judged_by_nobody() {
        let data = schemas(json!({ "type": "object" })).output["properties"]["data"].clone();
        assert_eq!(data["properties"]["at"], json!({ "type": "string" }));
        assert!(data["required"].as_array().is_some_and(|names| names.contains(&json!("at"))));
    }

    #[test]
    fn what_is_no_object_becomes_one() {
        assert_eq!(schemas(json!(true)).input, json!({ "type": "object" }));
    }
}
