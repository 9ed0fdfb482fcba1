//! Generates a value that satisfies a schema, for a golden test without an example in the file. Prefers values that the
//! schema itself names. Bounded in depth and size; returns nothing if no suitable value is found.

mod pattern;

use serde_json::{Map, Number, Value, json};

/// The maximum nesting of a value. A recursive schema has no end.
const MAX_DEPTH: usize = 24;
/// The maximum length of a generated string or array. The schema is untrusted and could require billions of items.
const MAX_LENGTH: u64 = 4_000;

/// A value for the section at `pointer` of a `schema.json`. The caller must check it against the contract.
pub(crate) fn value_for(root: &Value, pointer: &str) -> Option<Value> {
    Inventor { root }.value(root.pointer(pointer)?, "", 0)
}

struct Inventor<'s> {
    root: &'s Value,
}

impl Inventor<'_> {
    fn value(&self, schema: &Value, name: &str, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let Value::Object(members) = schema else {
            return (schema != &Value::Bool(false)).then(|| Value::from("an example"));
        };
        if let Some(target) =
            members.get("$ref").and_then(Value::as_str).and_then(|way| way.strip_prefix('#'))
        {
            return self.value(self.root.pointer(target)?, name, depth + 1);
        }
        if let Some(given) = given_value(members) {
            return Some(given);
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = members.get(word) {
                let plain: Map<String, Value> = members
                    .iter()
                    .filter(|(key, _)| *key != word)
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                let joined = |branch: &Value| merge_schemas(&plain, branch);
                return branches.iter().find_map(|branch| self.value(&joined(branch), name, depth + 1));
            }
        }
        if let Some(Value::Array(parts)) = members.get("allOf") {
            let mut all: Map<String, Value> = members
                .iter()
                .filter(|(key, _)| *key != "allOf")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            for part in parts {
                if let Value::Object(joined) = merge_schemas(&all, &self.resolve_reference(part)) {
                    all = joined;
                }
            }
            return self.value(&Value::Object(all), name, depth + 1);
        }
        match kind(members) {
            "object" => self.object(members, depth),
            "array" => self.array(members, name, depth),
            "integer" | "number" => number(members, kind(members) == "integer"),
            "boolean" => Some(Value::Bool(true)),
            "null" => Some(Value::Null),
            _ => text(members, name),
        }
    }

    /// Follows a reference through a limited number of steps.
    fn resolve_reference(&self, schema: &Value) -> Value {
        let mut schema = schema;
        for _ in 0..8 {
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|way| way.strip_prefix('#'));
            match target.and_then(|way| self.root.pointer(way)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema.clone()
    }

    fn object(&self, members: &Map<String, Value>, depth: usize) -> Option<Value> {
        let required: Vec<&str> = members
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = members.get("properties").and_then(Value::as_object);
        let mut made = Map::new();
        for (name, schema) in properties.into_iter().flatten() {
            match self.value(schema, name, depth + 1) {
                Some(value) => {
                    made.insert(name.clone(), value);
                }
                None if required.contains(&name.as_str()) => return None,
                None => {}
            }
        }
        let others = members.get("additionalProperties").unwrap_or(&Value::Bool(true));
        for name in required {
            if !made.contains_key(name) {
                made.insert(name.to_owned(), self.value(others, name, depth + 1)?);
            }
        }
        let least = members.get("minProperties").and_then(Value::as_u64).unwrap_or(0).min(50);
        let mut number = 0;
        while (made.len() as u64) < least {
            number += 1;
            made.insert(format!("name-{number}"), self.value(others, "name", depth + 1)?);
        }
        if made.is_empty() && others.is_object() {
            let name = match members.get("propertyNames") {
                Some(names) => self.value(names, "name", depth + 1)?.as_str()?.to_owned(),
                None => "name".to_owned(),
            };
            made.extend(self.value(others, "value", depth + 1).map(|value| (name, value)));
        }
        Some(Value::Object(made))
    }

    fn array(&self, members: &Map<String, Value>, name: &str, depth: usize) -> Option<Value> {
        let bound = |word: &str| members.get(word).and_then(Value::as_u64);
        let count = bound("minItems").unwrap_or(0).max(1).min(bound("maxItems").unwrap_or(MAX_LENGTH));
        if count > MAX_LENGTH {
            return None;
        }
        let any = Value::Bool(true);
        let mut items = Vec::new();
        for at in 0..count {
            let schema = match members.get("items") {
                Some(Value::Array(each)) => {
                    usize::try_from(at).ok().and_then(|at| each.get(at)).unwrap_or(&any)
                }
                Some(schema) => schema,
                None => &any,
            };
            match self.value(schema, name, depth + 1) {
                Some(value) => items.push(value),
                // An array that may be empty ends an endless recursion.
                None if bound("minItems").unwrap_or(0) == 0 => return Some(json!([])),
                None => return None,
            }
        }
        if members.get("uniqueItems") == Some(&Value::Bool(true)) {
            items = distinct(items, members.get("items"));
        }
        Some(Value::Array(items))
    }
}

/// Makes the items distinct where the schema lists values or where they are strings or integers.
fn distinct(items: Vec<Value>, schema: Option<&Value>) -> Vec<Value> {
    let listed = schema.and_then(|schema| schema.get("enum")).and_then(Value::as_array);
    let each =
        items.into_iter().enumerate().map(|(at, item)| match (listed.and_then(|list| list.get(at)), item) {
            (Some(value), _) => value.clone(),
            (None, Value::String(text)) if at > 0 => Value::from(format!("{text} {}", at + 1)),
            (None, Value::Number(number)) => number
                .as_i64()
                .and_then(|number| number.checked_add(i64::try_from(at).ok()?))
                .map_or(Value::Number(number), Value::from),
            (None, other) => other,
        });
    each.collect()
}

/// A value that the schema names.
fn given_value(members: &Map<String, Value>) -> Option<Value> {
    let listed =
        |word: &str| members.get(word).and_then(Value::as_array).and_then(|list| list.first()).cloned();
    members
        .get("const")
        .cloned()
        .or_else(|| listed("enum"))
        .or_else(|| members.get("default").cloned())
        .or_else(|| listed("examples"))
}

/// Merges two schemas, as far as a union of their members allows.
fn merge_schemas(one: &Map<String, Value>, other: &Value) -> Value {
    let Value::Object(other) = other else { return Value::Object(one.clone()) };
    let mut both = one.clone();
    for (name, value) in other {
        match (both.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(more)) if name == "properties" => {
                known.extend(more.clone());
            }
            (Some(Value::Array(known)), Value::Array(more)) if name == "required" => {
                known.extend(more.clone());
            }
            (None, _) => {
                both.insert(name.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(both)
}

fn kind(members: &Map<String, Value>) -> &str {
    match members.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if ["properties", "required", "additionalProperties"]
            .iter()
            .any(|word| members.contains_key(*word)) =>
        {
            "object"
        }
        _ if members.contains_key("items") => "array",
        _ if ["minimum", "maximum", "multipleOf"].iter().any(|word| members.contains_key(*word)) => "number",
        _ => "string",
    }
}

fn number(members: &Map<String, Value>, whole: bool) -> Option<Value> {
    let bound = |word: &str| members.get(word).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(if whole { 1.0 } else { 0.5 });
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|above| above + step));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|below| below - step));
    let wanted = match (least, most) {
        (Some(least), _) if least > 0.0 => (least / step).ceil() * step,
        (_, Some(most)) if most < step => (most / step).floor() * step,
        _ => step,
    };
    if whole {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a whole number within the range of exact ones"
        )]
        return (wanted.abs() < 9e15).then(|| Value::from(wanted as i64));
    }
    Number::from_f64(wanted).map(Value::Number)
}

fn text(members: &Map<String, Value>, name: &str) -> Option<Value> {
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
        return pattern::text_for(pattern).map(Value::from);
    }
    let bound = |word: &str| members.get(word).and_then(Value::as_u64);
    let shown = match members.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T09:00:00Z".to_owned(),
        Some("date") => "2026-01-31".to_owned(),
        Some("email") => "someone@example.com".to_owned(),
        Some("uri") => "https://example.com/".to_owned(),
        _ if name.is_empty() => "an example".to_owned(),
        _ => format!("an example of {}", name.replace(['_', '-'], " ")),
    };
    let least = bound("minLength").unwrap_or(0);
    if least > MAX_LENGTH {
        return None;
    }
    let mut shown = shown;
    while (shown.chars().count() as u64) < least {
        shown.push('.');
    }
    let most = bound("maxLength").unwrap_or(MAX_LENGTH);
    Some(Value::from(shown.chars().take(usize::try_from(most).unwrap_or(usize::MAX)).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_up_satisfies_what_it_was_made_for() {
        for schema in [
            json!({ "type": "object", "required": ["a", "z"], "properties": { "a": { "type": "string", "minLength": 30 } } }),
            json!({ "type": ["null", "integer"], "minimum": 7, "multipleOf": 5 }),
            json!({ "type": "number", "exclusiveMaximum": 0 }),
            json!({ "type": "integer", "maximum": -3 }),
            json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "type": "string" } }),
            json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": { "enum": ["a", "b"] } }),
            json!({ "allOf": [{ "$ref": "#/$defs/A" }, { "required": ["b"], "properties": { "b": { "const": 3 } } }],
                    "$defs": { "A": { "type": "object", "required": ["a"], "properties": { "a": { "enum": ["x"] } } } } }),
            json!({ "oneOf": [{ "type": "string", "pattern": "^[A-Z]{2}-\\d+$" }, { "type": "integer" }] }),
            json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "boolean" } }),
            json!({ "type": "object", "propertyNames": { "enum": ["k"] }, "additionalProperties": { "type": "integer" } }),
            json!({ "type": "string", "maxLength": 3 }),
            json!({ "type": "object", "properties": { "child": { "$ref": "#" }, "list": { "type": "array", "items": { "$ref": "#" } } } }),
            json!({}),
            json!(true),
        ] {
            let value = value_for(&schema, "").unwrap();
            assert!(cognitive_schema::accepts(&schema, &value), "{schema} {value}");
        }
    }

    #[test]
    fn what_cannot_be_made_up_is_nothing() {
        assert_eq!(value_for(&json!(false), ""), None);
        let endless = json!({ "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#" } } });
        assert_eq!(value_for(&endless, ""), None);
        assert_eq!(value_for(&json!({ "type": "string", "minLength": 90_000 }), ""), None);
        assert_eq!(value_for(&json!({ "type": "string", "pattern": "(" }), ""), None);
    }
}
