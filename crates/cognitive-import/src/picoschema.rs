//! Converts Picoschema, the compact schema notation of dotprompt, to JSON Schema: `name?: type, description`,
//! `list(array, …)`, `part(object)`, `kind(enum, …)` and `(*)` for all other names. Refuses unknown types.

use cognitive_contract::Failure;
use serde_json::{Map, Value, json};

use crate::foreign_schema::or_null;
use crate::source::{quote, refuse};

/// The maximum nesting of schemas. Deeper ones would overflow the stack.
const MAX_DEPTH: usize = 40;
/// The scalar types. `any` accepts every value.
const SCALARS: [&str; 6] = ["string", "number", "integer", "boolean", "null", "any"];

/// Reads a schema in Picoschema or JSON Schema.
pub(crate) fn read(schema: &Value, key: &str) -> Result<Value, Failure> {
    let kind = schema.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| SCALARS.contains(&kind) || matches!(kind, "object" | "array")) {
        return Ok(schema.clone());
    }
    if schema.get("properties").is_some_and(Value::is_object) {
        let mut schema = schema.clone();
        if let Value::Object(members) = &mut schema {
            members.insert("type".to_owned(), Value::from("object"));
        }
        return Ok(schema);
    }
    pico(schema, key, 0)
}

fn pico(schema: &Value, key: &str, depth: usize) -> Result<Value, Failure> {
    if depth > MAX_DEPTH {
        let message = format!("the schema {} is nested more than {MAX_DEPTH} levels deep", quote(key));
        return Err(refuse(message, "Flatten it"));
    }
    match schema {
        Value::String(written) => scalar(written, key),
        Value::Object(members) => object(members, key, depth),
        _ => {
            let message = format!("{} is neither a type nor a map of names to types", quote(key));
            Err(refuse(message, "Write a type such as `string`"))
        }
    }
}

fn scalar(written: &str, key: &str) -> Result<Value, Failure> {
    let (kind, description) = split_description(written);
    // Not in the specification, but common.
    if let Some(item) = kind.strip_suffix("[]").filter(|item| item.len() < MAX_DEPTH) {
        let mut schema = as_members(json!({ "type": "array", "items": scalar(item, key)? }))?;
        schema.extend(description.map(|text| ("description".to_owned(), Value::from(text))));
        return Ok(Value::Object(schema));
    }
    if !SCALARS.contains(&kind) {
        let message = format!("{} uses a type that another file defines: {}", quote(key), quote(kind));
        return Err(refuse(
            message,
            "Write the schema into the file; named schemas are in the program that registers them",
        ));
    }
    let mut schema = Map::new();
    if kind != "any" {
        schema.insert("type".to_owned(), Value::from(kind));
    }
    schema.extend(description.map(|text| ("description".to_owned(), Value::from(text))));
    Ok(Value::Object(schema))
}

/// A type, and the description after its first comma.
fn split_description(written: &str) -> (&str, Option<&str>) {
    match written.split_once(',') {
        Some((kind, text)) => (kind.trim(), Some(text.trim()).filter(|text| !text.is_empty())),
        None => (written.trim(), None),
    }
}

fn object(members: &Map<String, Value>, key: &str, depth: usize) -> Result<Value, Failure> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut others = Value::Bool(false);
    for (written, value) in members {
        let below = format!("{key}.{written}");
        if written == "(*)" {
            others = pico(value, &below, depth + 1)?;
            continue;
        }
        let (name, form) = match written.split_once('(') {
            Some((name, form)) => (name, Some(form.strip_suffix(')').unwrap_or(form))),
            None => (written.as_str(), None),
        };
        let (name, optional) = match name.trim().strip_suffix('?') {
            Some(name) => (name, true),
            None => (name.trim(), false),
        };
        let mut schema = member(form, value, &below, depth)?;
        if optional {
            or_null(&mut schema);
        } else {
            required.push(Value::from(name));
        }
        properties.insert(name.to_owned(), Value::Object(schema));
    }
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": others });
    if let (Value::Object(schema), false) = (&mut schema, required.is_empty()) {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Ok(schema)
}

fn member(form: Option<&str>, value: &Value, key: &str, depth: usize) -> Result<Map<String, Value>, Failure> {
    let Some(form) = form else { return as_members(pico(value, key, depth + 1)?) };
    let (kind, description) = split_description(form);
    let mut schema = match kind {
        "array" => as_members(json!({ "type": "array", "items": pico(value, key, depth + 1)? }))?,
        "object" => as_members(pico(value, key, depth + 1)?)?,
        "enum" => {
            if value.as_array().is_none_or(Vec::is_empty) {
                return Err(refuse(format!("{} is not a list of values", quote(key)), "Write `[A, B]`"));
            }
            as_members(json!({ "enum": value }))?
        }
        _ => {
            let message = format!("{} has an unknown Picoschema kind: {}", quote(key), quote(kind));
            return Err(refuse(message, "Use `array`, `object` or `enum`"));
        }
    };
    schema.extend(description.map(|text| ("description".to_owned(), Value::from(text))));
    Ok(schema)
}

fn as_members(schema: Value) -> Result<Map<String, Value>, Failure> {
    match schema {
        Value::Object(members) => Ok(members),
        _ => Err(refuse("a schema must be an object", "Write a type such as `string`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_yaml(text: &str) -> Value {
        read(&cognitive_library::yaml::parse(text).unwrap(), "output.schema").unwrap()
    }

    #[test]
    fn every_form_becomes_json_schema() {
        assert_eq!(
            read(&json!("number, how, many"), "k").unwrap(),
            json!({ "type": "number", "description": "how, many" })
        );
        assert_eq!(read(&json!("any"), "k").unwrap(), json!({}));
        let list = json!({ "type": "array", "items": { "type": "string" }, "description": "words" });
        assert_eq!(read(&json!("string[], words"), "k").unwrap(), list);
        assert!(read(&json!("[]".repeat(50_000)), "k").is_err());
        let schema = read_yaml(
            "title: string, the title\nsub?: string\ntags(array, a list): string, a tag\npart?(object, a part):\n  x: integer\n\
             kind(enum, a kind): [A, B]\nmaybe?(enum): [A]\n(*): any, whatever\n",
        );
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "title": { "type": "string", "description": "the title" },
                    "sub": { "type": ["string", "null"] },
                    "tags": { "type": "array", "items": { "type": "string", "description": "a tag" }, "description": "a list" },
                    "part": { "type": ["object", "null"], "properties": { "x": { "type": "integer" } },
                              "additionalProperties": false, "required": ["x"], "description": "a part" },
                    "kind": { "enum": ["A", "B"], "description": "a kind" },
                    "maybe": { "enum": ["A", null] }
                },
                "additionalProperties": { "description": "whatever" },
                "required": ["title", "tags", "kind"]
            })
        );
    }

    #[test]
    fn json_schema_stays_as_it_is() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert_eq!(read(&schema, "k").unwrap(), schema);
        assert_eq!(
            read(&json!({ "properties": {} }), "k").unwrap(),
            json!({ "properties": {}, "type": "object" })
        );
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        let reason = |schema: Value| read(&schema, "input.schema").unwrap_err().message().to_owned();
        assert_eq!(reason(json!("Recipe")), "`input.schema` uses a type that another file defines: `Recipe`");
        assert_eq!(
            reason(json!({ "a": 3 })),
            "`input.schema.a` is neither a type nor a map of names to types"
        );
        assert!(reason(json!({ "a(set)": "string" })).contains("Picoschema kind: `set`"));
        assert!(reason(json!({ "a(enum)": "x" })).ends_with("is not a list of values"));
        let deep = (0..60).fold(json!("string"), |inner, _| json!({ "a": inner }));
        assert!(reason(deep).contains("40 levels"));
    }
}
