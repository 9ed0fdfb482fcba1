//! `$defs` of a new module's `schema.json`: media items, context and insights, each only where a section uses it.

use cognitive_contract::manifest::{InputModality, Tier};
use serde_json::{Map, Value, json};

use super::schema::words;
use super::{Feature, Template};

/// Returns the definitions that the sections of this template refer to; empty if they refer to none.
pub(super) fn definitions(template: &Template) -> Map<String, Value> {
    let mut definitions = Map::new();
    let kinds = template.media();
    if !kinds.is_empty() {
        definitions.insert("MediaInput".to_owned(), media_input(&kinds));
    }
    if template.has(Feature::Context) {
        definitions.insert("conversation_history".to_owned(), conversation_history());
        definitions.insert("session_state".to_owned(), session_state());
    }
    if let Some(limit) = insights(template.tier) {
        definitions.insert("extensions".to_owned(), extensions(limit));
    }
    definitions
}

/// The number of insights that the manifest of the tier allows.
fn insights(tier: Tier) -> Option<u64> {
    match tier {
        Tier::Exec => None,
        Tier::Decision => Some(5),
        Tier::Exploration => Some(20),
    }
}

fn extensions(limit: u64) -> Value {
    json!({
        "type": "object",
        "description": "Room for observations that fit no other field",
        "properties": {
            "insights": {
                "type": "array",
                "maxItems": limit,
                "description": "Observations worth keeping; each names the field it could become",
                "items": {
                    "type": "object",
                    "required": ["text", "suggested_mapping"],
                    "properties": {
                        "text": words(500, "The observation"),
                        "suggested_mapping": words(100, "Field or enum value the contract could gain to hold it"),
                        "evidence": words(500, "What in the input supports it"),
                    },
                },
            },
        },
    })
}

fn conversation_history() -> Value {
    json!({
        "type": "array",
        "maxItems": 10,
        "description": "The last turns of the conversation, oldest first",
        "items": {
            "type": "object",
            "required": ["role", "content"],
            "properties": {
                "role": {
                    "type": "string",
                    "enum": ["user", "assistant", "system"],
                    "description": "Who spoke",
                },
                "content": { "type": "string", "description": "What was said" },
                "timestamp": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When it was said",
                },
            },
        },
    })
}

fn session_state() -> Value {
    json!({
        "type": "object",
        "description": "What earlier runs of this session left behind",
        "properties": {
            "runs": { "type": "integer", "minimum": 0, "description": "How many runs there were" },
            "notes": {
                "type": "array",
                "maxItems": 20,
                "description": "What the next run should know",
                "items": { "type": "string", "minLength": 1, "maxLength": 300 },
            },
        },
    })
}

fn media_input(kinds: &[InputModality]) -> Value {
    json!({
        "type": "object",
        "description": "One media item: an address, inline base64, a file, or an earlier upload",
        "required": ["type"],
        "oneOf": [by_url(), by_base64(kinds), by_file(), by_upload()],
    })
}

fn by_url() -> Value {
    json!({
        "required": ["type", "url"],
        "properties": {
            "type": { "const": "url" },
            "url": { "type": "string", "format": "uri", "description": "Where the item can be fetched" },
            "media_type": {
                "type": "string",
                "description": "Its media type; read from the response when left out",
            },
        },
    })
}

fn by_base64(kinds: &[InputModality]) -> Value {
    // Wide on purpose: an unsupported kind of media is refused with its own code, E1010.
    let pattern = if kinds.contains(&InputModality::Document) {
        "^((image|audio|video)/[a-z0-9.+-]+|application/pdf)$"
    } else {
        "^(image|audio|video)/[a-z0-9.+-]+$"
    };
    json!({
        "required": ["type", "media_type", "data"],
        "properties": {
            "type": { "const": "base64" },
            "media_type": {
                "type": "string",
                "pattern": pattern,
                "description": "Its media type, such as image/png",
            },
            "data": {
                "type": "string",
                "contentEncoding": "base64",
                "description": "The bytes in base64, without a data: prefix",
            },
        },
    })
}

fn by_file() -> Value {
    json!({
        "required": ["type", "path"],
        "properties": {
            "type": { "const": "file" },
            "path": {
                "type": "string",
                "description": "Where the file is; a relative path starts at the module folder",
            },
        },
    })
}

fn by_upload() -> Value {
    json!({
        "required": ["type", "upload_id"],
        "properties": {
            "type": { "const": "upload_ref" },
            "upload_id": {
                "type": "string",
                "description": "Identifier returned when the item was uploaded",
            },
            "media_type": { "type": "string", "description": "Its media type" },
        },
    })
}
