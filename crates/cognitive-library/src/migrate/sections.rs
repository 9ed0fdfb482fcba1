//! The sections of a v2.2 contract: new ones, and the completion of older ones. Adds missing parts; refuses
//! contradictions to v2.2, because only the author knows the intention.

use cognitive_contract::manifest::Overflow;
use cognitive_contract::meta::EXPLAIN_LIMIT;
use cognitive_schema::SectionRef;
use serde_json::{Map, Value, json};

use crate::finding::{Finding, FindingLocation};

/// Completes a data section; returns the changes.
pub(super) fn complete_data(
    section: &mut Value,
    extensions: Option<Value>,
    place: &SectionRef,
) -> Result<Vec<String>, Finding> {
    let at = |inside: &str| FindingLocation::Value(format!("{}{inside}", place.pointer));
    let members = open(section, place)?;
    if let Some(kind) = members.get("type").filter(|kind| !names_type(kind, "object")) {
        let message = format!("from v2.2 on, an answer must be an object, but the contract has: `{kind}`");
        return Err(Finding::error(&place.file, at("/type"), "migrate/data", message)
            .hint("Put the answer into a field, such as `items`, then migrate again"));
    }
    let mut steps = Vec::new();
    let properties = properties(members, place)?;
    match properties.get_mut("rationale") {
        None | Some(Value::Bool(true)) => {
            properties.insert("rationale".to_owned(), rationale_section());
            steps.push("declared `rationale` in the data section".to_owned());
        }
        Some(Value::Object(rationale)) if !rationale.contains_key("$ref") => match rationale.get("type") {
            None => {
                rationale.insert("type".to_owned(), json!("string"));
                steps.push("`rationale` is now declared as a string".to_owned());
            }
            Some(kind) if names_type(kind, "string") => {}
            Some(kind) => {
                let message =
                    format!("from v2.2 on, `rationale` must be a string, but the contract has: `{kind}`");
                return Err(Finding::error(
                    &place.file,
                    at("/properties/rationale/type"),
                    "migrate/rationale",
                    message,
                )
                .hint("Make it a string, rename its parts, then migrate again"));
            }
        },
        Some(Value::Object(_)) => {}
        Some(_) => {
            let message = "`rationale` is forbidden here, but every answer of v2.2 has one";
            return Err(Finding::error(
                &place.file,
                at("/properties/rationale"),
                "migrate/rationale",
                message,
            ));
        }
    }
    if let Some(extensions) = extensions.filter(|_| !properties.contains_key("extensions")) {
        properties.insert("extensions".to_owned(), extensions);
        steps.push("offered `extensions` for insights in the data section".to_owned());
    }
    if require(members, "rationale") {
        steps.push("`rationale` is now required in the data section".to_owned());
    }
    Ok(steps)
}

/// Completes a meta section; returns the changes.
pub(super) fn complete_meta(section: &mut Value, place: &SectionRef) -> Result<Vec<String>, Finding> {
    let members = open(section, place)?;
    let mut steps = Vec::new();
    let properties = properties(members, place)?;
    for (name, standard) in meta_members() {
        if !properties.contains_key(name) || properties.get(name) == Some(&Value::Bool(true)) {
            properties.insert(name.to_owned(), standard);
            steps.push(format!("declared `{name}` in the existing `meta` section"));
        }
    }
    if let Some(explain) = properties.get_mut("explain") {
        let explain_place =
            SectionRef { file: place.file.clone(), pointer: format!("{}/properties/explain", place.pointer) };
        let explain = open(explain, &explain_place)?;
        let limit = explain.get("maxLength").and_then(Value::as_u64);
        if limit.is_none_or(|limit| limit > EXPLAIN_LIMIT as u64) {
            let old = explain.insert("maxLength".to_owned(), json!(EXPLAIN_LIMIT));
            let was = old.map_or(String::new(), |old| format!(" instead of {old}"));
            steps.push(format!(
                "limited `explain` in `meta` to {EXPLAIN_LIMIT} characters{was}, the limit of every envelope"
            ));
        }
    }
    for (name, _) in meta_members() {
        if require(members, name) {
            steps.push(format!("`{name}` is now required in the existing `meta` section"));
        }
    }
    Ok(steps)
}

/// The members of a section, ready for additions. Draft-07 ignores the siblings of `$ref`, so a reference is moved into
/// `allOf`. `true` accepts everything, so it becomes an open object.
fn open<'a>(section: &'a mut Value, place: &SectionRef) -> Result<&'a mut Map<String, Value>, Finding> {
    if *section == Value::Bool(true) {
        *section = json!({ "type": "object" });
    } else if section.get("$ref").is_some() {
        *section = json!({ "allOf": [section.take()] });
    }
    section.as_object_mut().ok_or_else(|| {
        let at = FindingLocation::Value(place.pointer.clone());
        Finding::error(&place.file, at, "migrate/section", "allows no value, so there is nothing to migrate")
    })
}

fn properties<'a>(
    members: &'a mut Map<String, Value>,
    place: &SectionRef,
) -> Result<&'a mut Map<String, Value>, Finding> {
    members.entry("properties").or_insert_with(|| json!({})).as_object_mut().ok_or_else(|| {
        let at = FindingLocation::Value(format!("{}/properties", place.pointer));
        Finding::error(&place.file, at, "migrate/section", "`properties` must be an object")
    })
}

/// Adds a name to `required`; returns whether it was missing.
fn require(members: &mut Map<String, Value>, name: &str) -> bool {
    let Value::Array(required) = members.entry("required").or_insert_with(|| json!([])) else { return false };
    let missing = !required.iter().any(|each| each == name);
    if missing {
        required.push(json!(name));
    }
    missing
}

/// Returns whether a `type` keyword allows a type.
fn names_type(keyword: &Value, name: &str) -> bool {
    match keyword {
        Value::String(only) => only == name,
        Value::Array(several) => several.iter().any(|each| each == name),
        _ => false,
    }
}

fn requires(section: &Value, name: &str) -> bool {
    let required = section.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|each| each == name))
}

pub(super) fn declares_rationale(section: &Value) -> bool {
    requires(section, "rationale") && section.pointer("/properties/rationale").is_some_and(Value::is_object)
}

pub(super) fn is_complete_meta(section: &Value) -> bool {
    let limit = section.pointer("/properties/explain/maxLength").and_then(Value::as_u64);
    limit.is_some_and(|limit| limit <= EXPLAIN_LIMIT as u64)
        && meta_members().iter().all(|(name, _)| requires(section, name))
}

fn meta_members() -> [(&'static str, Value); 3] {
    [
        ("confidence", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
        ("risk", json!({ "type": "string", "enum": ["none", "low", "medium", "high"] })),
        ("explain", json!({ "type": "string", "minLength": 1, "maxLength": EXPLAIN_LIMIT })),
    ]
}

pub(super) fn meta_section() -> Value {
    let members = meta_members();
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, section)| ((*name).to_owned(), section.clone())).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn rationale_section() -> Value {
    json!({ "type": "string", "minLength": 1, "description": "How the answer came about, for people who check it" })
}

pub(super) fn error_section() -> Value {
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
    })
}

pub(super) fn extensions_section(overflow: &Overflow) -> Value {
    let mut required = vec!["text"];
    if overflow.require_suggested_mapping {
        required.push("suggested_mapping");
    }
    json!({
        "type": "object",
        "properties": {
            "insights": {
                "type": "array",
                "maxItems": overflow.max_items,
                "items": {
                    "type": "object",
                    "required": required,
                    "properties": {
                        "text": { "type": "string" },
                        "suggested_mapping": { "type": "string" },
                        "evidence": { "type": "string" },
                    },
                },
            },
        },
    })
}
