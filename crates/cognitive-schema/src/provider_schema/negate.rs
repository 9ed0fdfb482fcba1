//! Builds the opposite of a schema. If no keyword can express it exactly, the result is narrower than the opposite,
//! never wider. If nothing can be expressed, there is no result. Works on schemas as authors write them.

use serde_json::{Map, Value, json};

use super::except::ALL_TYPES;

/// The maximum depth of inspection. Each level adds a branch to the opposite.
const MAX_DEPTH: usize = 8;

/// Returns a schema that accepts only values that `schema` refuses; `None` if none can be found.
pub(super) fn opposite(schema: &Value) -> Option<Value> {
    at_depth(schema, 0)
}

fn at_depth(schema: &Value, depth: usize) -> Option<Value> {
    let members = match schema {
        Value::Bool(holds) => return Some(Value::Bool(!holds)),
        Value::Object(members) if depth <= MAX_DEPTH && !members.contains_key("$ref") => members,
        _ => return None,
    };
    if members.keys().all(|keyword| is_silent(keyword)) {
        return Some(Value::Bool(false));
    }
    // Breaking one keyword breaks the schema. A keyword without an opposite is one alternative fewer.
    let ways: Vec<Value> = members
        .iter()
        .filter_map(|(keyword, value)| negate_keyword(keyword, value, members, depth))
        .collect();
    match ways.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(json!({ "anyOf": ways })),
    }
}

/// Returns whether a keyword validates nothing.
fn is_silent(keyword: &str) -> bool {
    matches!(keyword, "title" | "description" | "default" | "examples" | "$comment" | "format")
        || keyword.starts_with("x-")
}

fn negate_keyword(keyword: &str, value: &Value, beside: &Map<String, Value>, depth: usize) -> Option<Value> {
    match keyword {
        "type" => negate_types(value),
        "const" => Some(json!({ "not": { "enum": [value] } })),
        "enum" => Some(json!({ "not": { "enum": value } })),
        "minimum" => Some(json!({ "type": "number", "exclusiveMaximum": value })),
        "exclusiveMinimum" => Some(json!({ "type": "number", "maximum": value })),
        "maximum" => Some(json!({ "type": "number", "exclusiveMinimum": value })),
        "exclusiveMaximum" => Some(json!({ "type": "number", "minimum": value })),
        "minLength" => with_fewer("string", "maxLength", value),
        "minItems" => with_fewer("array", "maxItems", value),
        "minProperties" => with_fewer("object", "maxProperties", value),
        "maxLength" => with_more("string", "minLength", value),
        "maxItems" => with_more("array", "minItems", value),
        "maxProperties" => with_more("object", "minProperties", value),
        "required" => negate_required(value),
        "properties" => negate_properties(value, depth),
        "items" if value.is_object() => negate_items(value, depth),
        "not" => Some(value.clone()),
        "allOf" => Some(json!({ "anyOf": opposites(value, depth, false)? })),
        "anyOf" => Some(json!({ "allOf": opposites(value, depth, true)? })),
        "oneOf" if value.as_array()?.len() == 1 => opposites(value, depth, true)?.pop(),
        "then" | "else" if beside.contains_key("if") => None,
        _ => None,
    }
}

/// The remaining types. Numbers are excluded along with integers, since no type means "only fractions".
fn negate_types(types: &Value) -> Option<Value> {
    let named = |name: &str| match types {
        Value::String(one) => one == name,
        Value::Array(many) => many.iter().any(|each| each == name),
        _ => false,
    };
    let is_left = |name: &&str| match *name {
        "number" => !named("number") && !named("integer"),
        name => !named(name),
    };
    let left: Vec<&str> = ALL_TYPES.into_iter().filter(is_left).collect();
    (!left.is_empty()).then(|| json!({ "type": left }))
}

fn with_fewer(kind: &str, keyword: &str, least: &Value) -> Option<Value> {
    Some(match least.as_u64()?.checked_sub(1) {
        Some(most) => json!({ "type": kind, keyword: most }),
        None => Value::Bool(false),
    })
}

fn with_more(kind: &str, keyword: &str, most: &Value) -> Option<Value> {
    Some(json!({ "type": kind, keyword: most.as_u64()?.checked_add(1)? }))
}

/// One of the members is missing.
fn negate_required(names: &Value) -> Option<Value> {
    let ways = names.as_array()?.iter().filter_map(Value::as_str);
    let ways = ways.map(|name| json!({ "type": "object", "properties": { name: false } }));
    Some(json!({ "anyOf": ways.collect::<Vec<Value>>() }))
}

/// One of the members exists and breaks its schema.
fn negate_properties(properties: &Value, depth: usize) -> Option<Value> {
    let ways = properties.as_object()?.iter().filter_map(|(name, schema)| {
        let opposite = at_depth(schema, depth + 1)?;
        Some(json!({ "type": "object", "required": [name], "properties": { name: opposite } }))
    });
    let ways: Vec<Value> = ways.collect();
    (!ways.is_empty()).then(|| json!({ "anyOf": ways }))
}

/// The first item exists and breaks the schema of items.
fn negate_items(schema: &Value, depth: usize) -> Option<Value> {
    Some(json!({ "type": "array", "minItems": 1, "items": [at_depth(schema, depth + 1)?] }))
}

/// The opposites of a list of schemas: all of them, or only those that exist.
fn opposites(schemas: &Value, depth: usize, all: bool) -> Option<Vec<Value>> {
    let schemas = schemas.as_array()?;
    let found: Vec<Value> = schemas.iter().filter_map(|schema| at_depth(schema, depth + 1)).collect();
    let is_enough = if all { found.len() == schemas.len() } else { !found.is_empty() };
    is_enough.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::accepts;

    /// No value matches both, and an exact opposite matches every other value.
    #[test]
    fn d_05_an_opposite_accepts_only_what_the_schema_refuses() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(7),
            json!(2.5),
            json!(""),
            json!("abc"),
            json!([]),
            json!([1, "a"]),
            json!({}),
            json!({ "k": "a" }),
            json!({ "k": "b", "l": 1 }),
        ];
        for (schema, is_exact) in [
            (json!(true), true),
            (json!(false), true),
            (json!({ "type": "string", "title": "t" }), true),
            (json!({ "type": ["integer", "null"] }), false),
            (json!({ "const": "abc" }), true),
            (json!({ "enum": [0, null, {}] }), true),
            (json!({ "minimum": 1, "maximum": 5 }), true),
            (json!({ "minLength": 1 }), true),
            (json!({ "maxItems": 0, "minProperties": 1 }), true),
            (json!({ "required": ["k", "l"] }), true),
            (json!({ "properties": { "k": { "const": "a" } }, "required": ["k"] }), true),
            (json!({ "type": "array", "items": { "type": "integer" } }), false),
            (json!({ "anyOf": [{ "type": "string" }, { "minimum": 3 }] }), true),
            (json!({ "allOf": [{ "type": "string" }, { "pattern": "a" }] }), false),
            (json!({ "not": { "type": "object" } }), true),
        ] {
            let opposite = opposite(&schema).unwrap();
            for value in &values {
                let (one, other) = (accepts(&schema, value), accepts(&opposite, value));
                assert!(!(one && other), "{schema} and {opposite} accept {value}");
                assert!(one || other || !is_exact, "neither {schema} nor {opposite} accepts {value}");
            }
        }
        assert_eq!(opposite(&json!({ "pattern": "a" })), None);
        assert_eq!(opposite(&json!({ "anyOf": [{ "type": "string" }, { "pattern": "a" }] })), None);
    }
}
