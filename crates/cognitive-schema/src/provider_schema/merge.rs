//! Merges two schemas of one value into one schema. If plain keywords cannot express that, the first stays and the
//! second is recorded as lost. The result may accept more than both together, never less.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Losses;
use super::normal::{MAX_NODES, is_among};
use crate::text::pointer;

/// The keywords of a choice.
pub(super) const UNIONS: [&str; 2] = ["anyOf", "oneOf"];

/// Merges `b` into `a`. Both are in plain form: a boolean, a reference, a pure choice, or an object of plain keywords.
pub(super) fn merge(a: Value, b: Value, path: &str, losses: &mut Losses) -> Value {
    match (a, b) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (Value::Object(a), Value::Object(b)) => objects(a, b, path, losses),
        (Value::Object(only), _) | (_, Value::Object(only)) => Value::Object(only),
        _ => Value::Bool(true),
    }
}

/// The keyword and the branches of a pure choice.
pub(super) fn union_of(node: &Map<String, Value>) -> Option<(&'static str, &Vec<Value>)> {
    UNIONS.into_iter().find_map(|keyword| Some((keyword, node.get(keyword)?.as_array()?)))
}

/// Returns whether a node has no rules, only a description.
fn is_free(node: &Map<String, Value>) -> bool {
    node.keys().all(|keyword| keyword == "description")
}

fn with_description(mut node: Map<String, Value>, description: Option<Value>) -> Value {
    if let Some(description) = description {
        node.insert("description".to_owned(), description);
    }
    Value::Object(node)
}

fn objects(a: Map<String, Value>, mut b: Map<String, Value>, path: &str, losses: &mut Losses) -> Value {
    let description = a.get("description").or_else(|| b.get("description")).cloned();
    if is_free(&a) {
        return with_description(b, description);
    }
    if is_free(&b) || a == b {
        return with_description(a, description);
    }
    for (reference, other) in [(&a, &b), (&b, &a)] {
        if reference.contains_key("$ref") {
            losses.note_weakened(path, "$ref", "a recursive type cannot be merged with further rules");
            return with_description(other.clone(), description);
        }
    }
    b.shift_remove("description");
    match (union_of(&a), union_of(&b)) {
        // Two choices: the second is merged into every branch of the first.
        (Some((keyword, branches)), _) => {
            let joined = distribute(keyword, branches, &b, path, losses, |branch, plain| (branch, plain));
            with_description(joined.unwrap_or(a), description)
        }
        (None, Some((keyword, branches))) => {
            let mut plain = a.clone();
            plain.shift_remove("description");
            let joined = distribute(keyword, branches, &plain, path, losses, |branch, plain| (plain, branch));
            with_description(joined.unwrap_or(a), description)
        }
        (None, None) => keywords(a, b, path, losses),
    }
}

/// Merges a plain schema into every branch of a choice. `None` if the result would be too large.
fn distribute(
    keyword: &str,
    branches: &[Value],
    plain: &Map<String, Value>,
    path: &str,
    losses: &mut Losses,
    in_order: impl Fn(Value, Value) -> (Value, Value),
) -> Option<Map<String, Value>> {
    let plain = Value::Object(plain.clone());
    let leaves: usize = branches.iter().map(leaves).sum();
    if leaves.saturating_mul(size(&plain)) > MAX_NODES {
        losses.note_weakened(path, keyword, "too many branches to merge with further rules");
        return None;
    }
    let at = pointer(path, keyword);
    let joined: Vec<Value> = branches
        .iter()
        .enumerate()
        .map(|(index, branch)| {
            let (first, second) = in_order(branch.clone(), plain.clone());
            merge(first, second, &pointer(&at, &index.to_string()), losses)
        })
        .collect();
    Some(Map::from_iter([(keyword.to_owned(), Value::Array(joined))]))
}

fn leaves(node: &Value) -> usize {
    let union = node.as_object().and_then(union_of);
    union.map_or(1, |(_, branches)| branches.iter().map(leaves).sum())
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Keywords that depend on each other, so they are merged together.
const JOINED_TOGETHER: &str = "type enum const properties additionalProperties items additionalItems";

fn keywords(mut a: Map<String, Value>, b: Map<String, Value>, path: &str, losses: &mut Losses) -> Value {
    if !join_members(&mut a, &b, path, losses) {
        return Value::Bool(false);
    }
    for (keyword, value) in b {
        if is_among(JOINED_TOGETHER, &keyword) {
            continue;
        }
        match a.shift_remove(&keyword) {
            None => {
                a.insert(keyword, value);
            }
            // Two different patterns apply together.
            Some(first) if keyword == "pattern" && first != value => {
                a.insert(keyword, first);
                let more = a.entry("allOf").or_insert_with(|| json!([]));
                *more = Value::Array(union(array(more), vec![json!({ "pattern": value })]));
            }
            Some(first) => {
                let joined = join(first, value, &keyword, path, losses);
                a.insert(keyword, joined);
            }
        }
    }
    Value::Object(a)
}

/// Merges types, values and members; `false` if nothing remains.
fn join_members(a: &mut Map<String, Value>, b: &Map<String, Value>, path: &str, losses: &mut Losses) -> bool {
    match (types_of(a), types_of(b)) {
        (_, None) => {}
        (None, Some(types)) => put_types(a, types),
        (Some(first), Some(second)) => {
            let common = common_types(&first, &second);
            if common.is_empty() {
                return false;
            }
            put_types(a, common);
        }
    }
    match (values_of(a), values_of(b)) {
        (_, None) => {}
        (None, Some(values)) => put_values(a, values),
        (Some(first), Some(second)) => {
            let common: Vec<Value> = first.into_iter().filter(|value| second.contains(value)).collect();
            if common.is_empty() {
                return false;
            }
            put_values(a, common);
        }
    }
    join_properties(a, b, path, losses);
    join_items(a, b, path, losses);
    true
}

fn join(first: Value, second: Value, keyword: &str, path: &str, losses: &mut Losses) -> Value {
    let larger = |a: &Value, b: &Value| a.as_f64() >= b.as_f64();
    match keyword {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            if larger(&first, &second) { first } else { second }
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            if larger(&first, &second) { second } else { first }
        }
        "propertyNames" => merge(first, second, &pointer(path, keyword), losses),
        "patternProperties" => join_patterns(first, second, &pointer(path, keyword), losses),
        "multipleOf" => common_multiple(&first, &second).unwrap_or_else(|| {
            losses.note_dropped(path, keyword);
            first
        }),
        "not" => {
            let values = union(excluded_values(&first), excluded_values(&second));
            let mut not = first.as_object().cloned().unwrap_or_default();
            not.insert("enum".to_owned(), Value::Array(values));
            Value::Object(not)
        }
        "required" | "allOf" => Value::Array(union(array(&first), array(&second))),
        _ => {
            if first != second {
                losses.note_dropped(path, keyword);
            }
            first
        }
    }
}

fn array(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// The values that a plain `not` excludes.
pub(super) fn excluded_values(not: &Value) -> Vec<Value> {
    not.get("enum").map(array).unwrap_or_default()
}

fn union(mut list: Vec<Value>, more: Vec<Value>) -> Vec<Value> {
    let known: HashSet<&Value> = list.iter().collect();
    let new: Vec<Value> = more.into_iter().filter(|value| !known.contains(value)).collect();
    list.extend(new);
    list
}

/// The least common multiple; `None` if it cannot be computed exactly.
fn common_multiple(first: &Value, second: &Value) -> Option<Value> {
    if let (Some(a), Some(b)) = (first.as_u64(), second.as_u64()) {
        let (mut divisor, mut rest) = (a, b);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        return Some(json!(a.checked_div(divisor)?.checked_mul(b)?));
    }
    let (a, b) = (first.as_f64()?, second.as_f64()?);
    if a % b == 0.0 {
        return Some(first.clone());
    }
    (b % a == 0.0).then(|| second.clone())
}

fn join_patterns(first: Value, second: Value, path: &str, losses: &mut Losses) -> Value {
    let (Value::Object(mut patterns), Value::Object(more)) = (first, second) else {
        return Value::Bool(true);
    };
    for (pattern, schema) in more {
        let joined = match patterns.shift_remove(&pattern) {
            Some(first) => merge(first, schema, &pointer(path, &pattern), losses),
            None => schema,
        };
        patterns.insert(pattern, joined);
    }
    Value::Object(patterns)
}

/// Merges the items of arrays, index by index.
fn join_items(a: &mut Map<String, Value>, b: &Map<String, Value>, path: &str, losses: &mut Losses) {
    if !b.contains_key("items") {
        return;
    }
    if !a.contains_key("items") {
        for keyword in ["items", "additionalItems"] {
            if let Some(value) = b.get(keyword) {
                a.insert(keyword.to_owned(), value.clone());
            }
        }
        return;
    }
    let ((first, first_others), (second, second_others)) = (places(a), places(b));
    let at = pointer(path, "items");
    let longest = first.len().max(second.len());
    let joined: Vec<Value> = (0..longest)
        .map(|index| {
            let one = first.get(index).unwrap_or(&first_others).clone();
            let other = second.get(index).unwrap_or(&second_others).clone();
            merge(one, other, &pointer(&at, &index.to_string()), losses)
        })
        .collect();
    let others = merge(first_others, second_others, &at, losses);
    if joined.is_empty() {
        a.insert("items".to_owned(), others);
    } else {
        a.insert("items".to_owned(), Value::Array(joined));
        a.insert("additionalItems".to_owned(), others);
    }
}

/// The schemas of the first items by index, and the schema of all others.
pub(super) fn places(node: &Map<String, Value>) -> (Vec<Value>, Value) {
    match node.get("items") {
        Some(Value::Array(places)) => {
            (places.clone(), node.get("additionalItems").cloned().unwrap_or(Value::Bool(true)))
        }
        items => (Vec::new(), items.cloned().unwrap_or(Value::Bool(true))),
    }
}

fn join_properties(a: &mut Map<String, Value>, b: &Map<String, Value>, path: &str, losses: &mut Losses) {
    let touches = |node: &Map<String, Value>| {
        node.contains_key("properties") || node.contains_key("additionalProperties")
    };
    if !touches(b) {
        return;
    }
    let listed = |node: &Map<String, Value>| {
        node.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let others =
        |node: &Map<String, Value>| node.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    let (first, second) = (listed(a), listed(b));
    let (first_others, second_others) = (others(a), others(b));
    let mut joined = Map::new();
    let at = pointer(path, "properties");
    for (name, schema) in &first {
        let also = second.get(name).unwrap_or(&second_others).clone();
        joined.insert(name.clone(), merge(schema.clone(), also, &pointer(&at, name), losses));
    }
    for (name, schema) in second.iter().filter(|(name, _)| !first.contains_key(*name)) {
        let also = merge(first_others.clone(), schema.clone(), &pointer(&at, name), losses);
        joined.insert(name.clone(), also);
    }
    if !joined.is_empty() {
        a.insert("properties".to_owned(), Value::Object(joined));
    }
    match merge(first_others, second_others, &pointer(path, "additionalProperties"), losses) {
        Value::Bool(true) => {
            a.shift_remove("additionalProperties");
        }
        others => {
            a.insert("additionalProperties".to_owned(), others);
        }
    }
}

/// The declared types; `None` if any type is allowed.
pub(super) fn types_of(node: &Map<String, Value>) -> Option<Vec<String>> {
    match node.get("type")? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(many) => Some(many.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => None,
    }
}

fn common_types(first: &[String], second: &[String]) -> Vec<String> {
    let has = |types: &[String], name: &str| types.iter().any(|each| each == name);
    let mut common: Vec<String> = first.iter().filter(|name| has(second, name)).cloned().collect();
    // Every integer is a number, so integers are common to both.
    let mixed =
        (has(first, "integer") && has(second, "number")) || (has(first, "number") && has(second, "integer"));
    if mixed && !has(&common, "integer") && !has(&common, "number") {
        common.push("integer".to_owned());
    }
    common
}

fn put_types(node: &mut Map<String, Value>, types: Vec<String>) {
    let value = if let [one] = types.as_slice() { json!(one) } else { json!(types) };
    node.insert("type".to_owned(), value);
}

/// The allowed values; `None` if no list exists.
pub(super) fn values_of(node: &Map<String, Value>) -> Option<Vec<Value>> {
    match (node.get("enum").and_then(Value::as_array), node.get("const")) {
        (Some(list), Some(one)) => Some(list.iter().filter(|value| *value == one).cloned().collect()),
        (Some(list), None) => Some(list.clone()),
        (None, Some(one)) => Some(vec![one.clone()]),
        (None, None) => None,
    }
}

fn put_values(node: &mut Map<String, Value>, values: Vec<Value>) {
    node.shift_remove("const");
    node.insert("enum".to_owned(), Value::Array(values));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(a: Value, b: Value) -> (Value, usize) {
        let mut losses = Losses::default();
        let value = merge(a, b, "", &mut losses);
        (value, losses.list.len())
    }

    #[test]
    fn d_05_plain_keywords_join_exactly() {
        let a = json!({ "type": "object", "properties": { "a": { "type": "number", "minimum": 0 } }, "required": ["a"] });
        let b = json!({ "properties": { "a": { "type": "integer", "minimum": 5, "maximum": 9 }, "b": true }, "required": ["b"] });
        let expected = json!({
            "properties": { "a": { "type": "integer", "minimum": 5, "maximum": 9 }, "b": true },
            "required": ["a", "b"], "type": "object",
        });
        assert_eq!(merged(a, b), (expected, 0));
        assert_eq!(merged(json!({ "enum": [1, 2] }), json!({ "const": 2 })).0, json!({ "enum": [2] }));
        assert_eq!(merged(json!({ "maxLength": 9 }), json!({ "maxLength": 3 })).0, json!({ "maxLength": 3 }));
    }

    #[test]
    fn d_05_contradictions_leave_nothing() {
        assert_eq!(merged(json!({ "type": "string" }), json!({ "type": "object" })).0, json!(false));
        assert_eq!(merged(json!({ "enum": ["a"] }), json!({ "enum": ["b"] })).0, json!(false));
        let closed = json!({ "additionalProperties": false, "properties": { "a": true } });
        let (value, _) = merged(closed, json!({ "properties": { "b": true } }));
        assert_eq!(value["properties"], json!({ "a": true, "b": false }));
    }

    #[test]
    fn d_05_a_choice_takes_further_rules_into_its_branches() {
        let choice = json!({ "oneOf": [{ "required": ["a"] }, { "type": "string" }], "description": "d" });
        let (value, lost) = merged(json!({ "type": "object" }), choice);
        assert_eq!(
            value,
            json!({ "oneOf": [{ "required": ["a"], "type": "object" }, false], "description": "d" })
        );
        assert_eq!(lost, 0);
    }

    #[test]
    fn d_05_patterns_steps_places_and_choices_join_exactly() {
        let (value, lost) = merged(json!({ "pattern": "a" }), json!({ "pattern": "b" }));
        assert_eq!((value, lost), (json!({ "pattern": "a", "allOf": [{ "pattern": "b" }] }), 0));
        let step = |step: Value| json!({ "multipleOf": step });
        assert_eq!(merged(step(json!(4)), step(json!(6))).0, step(json!(12)));
        assert_eq!(merged(step(json!(0.5)), step(json!(2))).0, step(json!(2)));
        let pair = json!({ "items": [{ "const": 1 }, true], "additionalItems": false });
        let (value, _) = merged(pair, json!({ "items": { "type": "integer" } }));
        assert_eq!(value["items"], json!([{ "const": 1, "type": "integer" }, { "type": "integer" }]));
        assert_eq!(value["additionalItems"], json!(false));
        let choice = |names: [&str; 2]| json!({ "anyOf": names.map(|name| json!({ "const": name })) });
        let (value, lost) = merged(choice(["a", "b"]), choice(["b", "c"]));
        let expected =
            json!({ "anyOf": [{ "anyOf": [false, false] }, { "anyOf": [{ "const": "b" }, false] }] });
        assert_eq!((value, lost), (expected, 0));
    }

    #[test]
    fn d_05_what_cannot_be_joined_is_noted() {
        assert_eq!(
            merged(json!({ "multipleOf": 0.3 }), json!({ "multipleOf": 0.25 })),
            (json!({ "multipleOf": 0.3 }), 1)
        );
        assert_eq!(merged(json!({ "$ref": "#/$defs/a" }), json!({ "type": "object" })).1, 1);
    }
}
