//! Determines the members of an object and their schemas: described members, and required members without a
//! description.
//! For narrowing targets, it includes members that patterns and rules about names define.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Losses;
use super::merge::{merge, values_of};
use crate::text::pointer;
use crate::validate::accepts;

/// The members of an object: first the described ones in the author's order, then undescribed required ones, then
/// possible names of a map. `path` is the location of the object.
pub(super) fn described_members(
    node: &Map<String, Value>,
    required: &[&str],
    path: &str,
    losses: &mut Losses,
) -> Vec<(String, Value)> {
    let properties = node.get("properties").and_then(Value::as_object);
    let mut members: Vec<(String, Value)> = Vec::new();
    for (name, schema) in properties.into_iter().flatten() {
        let at = pointer(&pointer(path, "properties"), name);
        let patterns = matching(node, name);
        let schema =
            patterns.into_iter().fold(schema.clone(), |schema, also| merge(schema, also, &at, losses));
        members.push((name.clone(), schema));
    }
    let others = node.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    let possible = possible_names(node);
    let mut known: HashSet<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    for name in required.iter().copied().chain(possible.iter().map(String::as_str)) {
        if !known.insert(name) {
            continue;
        }
        let mut patterns = matching(node, name).into_iter();
        let first = patterns.next().unwrap_or_else(|| others.clone());
        let schema = patterns.fold(first, |schema, also| merge(schema, also, path, losses));
        members.push((name.to_owned(), schema));
    }
    if let Some(rule) = node.get("propertyNames").filter(|rule| **rule != Value::Bool(true)) {
        for (name, schema) in &mut members {
            if !accepts(rule, &json!(name)) {
                *schema = Value::Bool(false);
            }
        }
    }
    members
}

/// The schemas of the patterns that match a name.
fn matching(node: &Map<String, Value>, name: &str) -> Vec<Value> {
    let patterns = node.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    let matches = |pattern: &str| accepts(&json!({ "pattern": pattern }), &json!(name));
    patterns.filter(|(pattern, _)| matches(pattern)).map(|(_, schema)| schema.clone()).collect()
}

/// The names of a map, if they are listed.
fn possible_names(node: &Map<String, Value>) -> Vec<String> {
    let is_map = node.get("additionalProperties").is_some_and(Value::is_object);
    let rule = node.get("propertyNames").and_then(Value::as_object).filter(|_| is_map);
    let names = rule.and_then(values_of).unwrap_or_default();
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The rules for undescribed members.
#[derive(Debug, PartialEq)]
pub(super) enum UndescribedMembers<'a> {
    /// None are allowed, or their rule cannot be expressed.
    None,
    /// Any name is allowed.
    Map(&'a Map<String, Value>),
    /// Names that match a pattern.
    Pattern(&'a str, &'a Value),
}

/// The rules for members of a plain object beyond the described ones.
pub(super) fn other_members(node: &Map<String, Value>) -> UndescribedMembers<'_> {
    let patterns = node.get("patternProperties").and_then(Value::as_object);
    let patterns: Vec<(&String, &Value)> = patterns.into_iter().flatten().collect();
    let map = node.get("additionalProperties").filter(|others| others.is_object());
    let rule = node.get("propertyNames").filter(|rule| **rule != Value::Bool(true));
    match (patterns.as_slice(), map, rule) {
        ([], Some(Value::Object(map)), None) => UndescribedMembers::Map(map),
        ([], Some(map), Some(Value::Object(rule))) => {
            let is_pattern =
                rule.keys().all(|keyword| matches!(keyword.as_str(), "pattern" | "type" | "description"));
            let pattern = rule.get("pattern").and_then(Value::as_str).filter(|_| is_pattern);
            pattern.map_or(UndescribedMembers::None, |pattern| UndescribedMembers::Pattern(pattern, map))
        }
        ([(pattern, schema)], None, None) => UndescribedMembers::Pattern(pattern, schema),
        _ => UndescribedMembers::None,
    }
}
