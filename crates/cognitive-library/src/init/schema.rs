//! `schema.json` of a new module, built as JSON. Everything has a description, every list and text of the answer has a
//! limit, and no `$ref` has siblings, which Draft-07 would ignore.

use cognitive_contract::manifest::{InputModality, Tier};
use serde_json::{Map, Value, json};

use super::definitions::definitions;
use super::{Feature, Template};

/// The input member that holds media. It is named after the kind if the module accepts only one.
pub(super) fn media_property(kinds: &[InputModality]) -> &'static str {
    match kinds {
        [InputModality::Image] => "images",
        [InputModality::Audio] => "recordings",
        [InputModality::Video] => "videos",
        [InputModality::Document] => "documents",
        _ => "media",
    }
}

/// The whole file: four sections and the definitions that they share.
pub(super) fn contract(template: &Template) -> Value {
    let mut root = Map::new();
    let mut add = |name: &str, section: Value| root.insert(name.to_owned(), section);
    add("$schema", json!("http://json-schema.org/draft-07/schema#"));
    add("meta", meta());
    add("input", input(template));
    add("data", data(template.tier));
    add("error", error(template.tier));
    let definitions = definitions(template);
    if !definitions.is_empty() {
        add("$defs", Value::Object(definitions));
    }
    Value::Object(root)
}

fn meta() -> Value {
    json!({
        "type": "object",
        "required": ["confidence", "risk", "explain"],
        "properties": {
            "confidence": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "How sure the module is of having met its declared contract, from 0 to 1",
            },
            "risk": risk("How much harm acting on a wrong answer could do"),
            "explain": {
                "type": "string",
                "minLength": 1,
                "maxLength": 280,
                "description": "One or two sentences for logs and routing",
            },
        },
    })
}

fn input(template: &Template) -> Value {
    let mut required = vec!["text"];
    let mut properties = Map::new();
    let text = match template.tier {
        Tier::Exec => "The text to sort",
        Tier::Decision => "The text to judge",
        Tier::Exploration => "The question or topic to think about",
    };
    properties.insert("text".to_owned(), words(16_000, text));
    let kinds = template.media();
    if !kinds.is_empty() {
        let name = media_property(&kinds);
        required.push(name);
        properties.insert(name.to_owned(), media_list(&kinds));
    }
    if template.has(Feature::Context) {
        properties.insert("_context".to_owned(), context());
    }
    json!({ "type": "object", "required": required, "properties": properties })
}

fn media_list(kinds: &[InputModality]) -> Value {
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
    json!({
        "type": "array",
        "minItems": 1,
        "maxItems": 10,
        "description": format!("What belongs to the text ({})", kinds.join(", ")),
        "items": { "$ref": "#/$defs/MediaInput" },
    })
}

fn context() -> Value {
    json!({
        "type": "object",
        "description": "What the caller hands over from earlier runs; may be empty",
        "properties": {
            "conversation_history": { "$ref": "#/$defs/conversation_history" },
            "session_state": { "$ref": "#/$defs/session_state" },
        },
    })
}

/// The payload. `rationale` comes first: a model that gives its reasons first decides better, and a stream starts with
/// text.
fn data(tier: Tier) -> Value {
    match tier {
        Tier::Exec => sorted(),
        Tier::Decision => judged(),
        Tier::Exploration => explored(),
    }
}

fn sorted() -> Value {
    json!({
        "type": "object",
        "required": ["rationale", "category", "urgent"],
        "additionalProperties": false,
        "properties": {
            "rationale": words(1000, "Why the text belongs to the category, in one or two sentences"),
            "category": {
                "type": "string",
                "enum": ["question", "request", "complaint", "other"],
                "description": "What kind of text it is",
            },
            "urgent": { "type": "boolean", "description": "Whether waiting for a day would do harm" },
        },
    })
}

fn judged() -> Value {
    json!({
        "type": "object",
        "required": ["rationale", "verdict", "issues"],
        "properties": {
            "rationale": words(2000, "How the text was read and why it is judged so"),
            "verdict": {
                "type": "string",
                "enum": ["accept", "revise", "reject"],
                "description": "What to do with the text",
            },
            "issues": {
                "type": "array",
                "maxItems": 10,
                "description": "What is wrong with it, the most serious first",
                "items": {
                    "type": "object",
                    "required": ["kind", "description", "risk"],
                    "properties": {
                        "kind": extensible(
                            &["mistake", "gap", "contradiction", "ambiguity"],
                            "What kind of problem it is",
                            "A kind of problem that is not listed",
                        ),
                        "description": words(300, "The problem and what it would lead to"),
                        "risk": risk("How much harm this problem could do"),
                    },
                },
            },
            "suggestion": words(500, "The one change that would help most"),
            "extensions": { "$ref": "#/$defs/extensions" },
        },
    })
}

fn explored() -> Value {
    json!({
        "type": "object",
        "required": ["rationale", "ideas"],
        "properties": {
            "rationale": words(2000, "How the ideas were found and what was left out"),
            "ideas": {
                "type": "array",
                "minItems": 1,
                "maxItems": 10,
                "description": "Ideas, the most promising first",
                "items": {
                    "type": "object",
                    "required": ["title", "description"],
                    "properties": {
                        "title": words(80, "The idea in a few words"),
                        "description": words(500, "The idea in one or two sentences"),
                        "kind": extensible(
                            &["quick_win", "project", "experiment"],
                            "What it would take",
                            "A kind of idea that is not listed",
                        ),
                    },
                },
            },
            "open_questions": {
                "type": "array",
                "maxItems": 10,
                "description": "What one would have to know to say more",
                "items": { "type": "string", "minLength": 1, "maxLength": 300 },
            },
            "extensions": { "$ref": "#/$defs/extensions" },
        },
    })
}

/// A non-empty text with a length limit.
pub(super) fn words(longest: u64, description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": longest, "description": description })
}

fn risk(description: &str) -> Value {
    json!({ "type": "string", "enum": ["none", "low", "medium", "high"], "description": description })
}

/// A list of values, or a custom value with a reason.
fn extensible(values: &[&str], description: &str, custom: &str) -> Value {
    json!({
        "description": description,
        "oneOf": [
            { "type": "string", "enum": values },
            {
                "type": "object",
                "required": ["custom", "reason"],
                "additionalProperties": false,
                "properties": {
                    "custom": words(32, custom),
                    "reason": words(300, "Why none of the listed values fits"),
                },
            },
        ],
    })
}

fn error(tier: Tier) -> Value {
    let codes = match tier {
        Tier::Exec => "E2004 nothing to sort, E2006 two categories fit, E2007 not enough text",
        Tier::Decision => "E2004 nothing to judge, E2006 several readings, E2007 more information is needed",
        Tier::Exploration => {
            "E2004 nothing to think about, E2006 several readings, E2007 more information is needed"
        }
    };
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": { "type": "string", "enum": ["E2004", "E2006", "E2007"], "description": codes },
            "message": words(300, "What went wrong, for a person to read"),
            "recoverable": { "type": "boolean", "description": "True when a changed request could succeed" },
            "suggestion": words(300, "What the caller could change"),
        },
    })
}
