//! Moves a JSON Schema of another tool into a section of `schema.json`. Adjusts references, and removes and records
//! keywords that Draft-07 does not validate. Fetches nothing: a reference to another file or address then allows any
//! value.

use serde_json::{Map, Value};

use crate::loss::LossList;

/// The maximum nesting of schemas. The contract itself is stricter. Deeper ones would overflow the stack.
const MAX_DEPTH: usize = 60;

/// Keywords introduced after Draft-07, which would not be validated.
const LATER: [&str; 12] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords whose value is data and not a schema.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];
/// Keywords whose value is a map from names to schemas.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Moves a schema to the location `base` of `schema.json`. `file` is its source, for messages.
pub(crate) fn move_schema(schema: &Value, base: &str, file: &str, losses: &mut LossList) -> Value {
    SchemaMove { base, file, losses }.schema(&at_root(schema), 0)
}

/// Replaces a root that is only a reference by its target, since a section must start with its members.
fn at_root(schema: &Value) -> Value {
    let mut root = schema.clone();
    for _ in 0..8 {
        let target =
            root.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/"));
        let Some(Value::Object(found)) = target.and_then(|way| schema.pointer(&format!("/{way}"))) else {
            break;
        };
        let mut found = found.clone();
        for name in ["$defs", "definitions"] {
            if let Some(inner) = schema.get(name) {
                found.insert(name.to_owned(), inner.clone());
            }
        }
        root = Value::Object(found);
    }
    root
}

/// Returns whether the schema refers to its own root.
pub(crate) fn is_recursive(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (name == "$ref" && value == "#") || (!DATA.contains(&name.as_str()) && is_recursive(value))
        }),
        Value::Array(items) => items.iter().any(is_recursive),
        _ => false,
    }
}

struct SchemaMove<'a> {
    base: &'a str,
    file: &'a str,
    losses: &'a mut LossList,
}

impl SchemaMove<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        match schema {
            Value::Object(members) if depth < MAX_DEPTH => Value::Object(self.members(members, depth)),
            Value::Object(_) => {
                self.losses.add_lost(
                    "schemas below 60 levels",
                    self.file,
                    "nothing is validated below this depth",
                );
                Value::Bool(true)
            }
            other => other.clone(),
        }
    }

    fn members(&mut self, members: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut moved = Map::new();
        for (name, value) in members {
            match name.as_str() {
                "$schema" | "$comment" => {}
                "$id" | "id" if value.is_string() => {}
                "$ref" => self.reference(value, &mut moved),
                "nullable" if value == &Value::Bool(true) => {}
                _ if LATER.contains(&name.as_str()) => {
                    let why = "it is newer than Draft-07, the dialect of contracts";
                    self.losses.add_lost(format!("`{name}`"), self.file, why);
                }
                _ if DATA.contains(&name.as_str()) => {
                    moved.insert(name.clone(), value.clone());
                }
                _ if MAPS.contains(&name.as_str()) => {
                    moved.insert(name.clone(), self.each_member(value, depth));
                }
                _ => {
                    moved.insert(name.clone(), self.value(value, depth));
                }
            }
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            or_null(&mut moved);
        }
        moved
    }

    fn each_member(&mut self, value: &Value, depth: usize) -> Value {
        match value {
            Value::Object(members) => {
                let moved =
                    members.iter().map(|(name, schema)| (name.clone(), self.schema(schema, depth + 1)));
                Value::Object(moved.collect())
            }
            other => other.clone(),
        }
    }

    fn value(&mut self, value: &Value, depth: usize) -> Value {
        match value {
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.schema(item, depth + 1)).collect())
            }
            other => self.schema(other, depth + 1),
        }
    }

    fn reference(&mut self, value: &Value, moved: &mut Map<String, Value>) {
        let way = value.as_str().and_then(|reference| reference.strip_prefix('#'));
        match way.filter(|way| way.is_empty() || way.starts_with('/')) {
            Some(way) => {
                moved.insert("$ref".to_owned(), Value::from(format!("#{}{way}", self.base)));
            }
            None => {
                let what = format!("the reference `{}`", value.as_str().unwrap_or_default());
                self.losses.add_lost(
                    what,
                    self.file,
                    "references are never fetched: any value is accepted there",
                );
            }
        }
    }
}

/// Makes a schema accept null as well.
pub(crate) fn or_null(schema: &mut Map<String, Value>) {
    let kind = schema.get("type").cloned();
    match kind {
        Some(Value::String(kind)) => {
            schema.insert("type".to_owned(), serde_json::json!([kind, "null"]));
        }
        Some(Value::Array(mut kinds)) => {
            if !kinds.iter().any(|kind| kind == "null") {
                kinds.push(Value::from("null"));
            }
            schema.insert("type".to_owned(), Value::Array(kinds));
        }
        Some(_) => {}
        None if schema.is_empty() || schema.contains_key("enum") => {}
        None => {
            let description = schema.shift_remove("description");
            let plain = Value::Object(std::mem::take(schema));
            schema.extend(description.map(|text| ("description".to_owned(), text)));
            let either = Value::Array(vec![plain, serde_json::json!({ "type": "null" })]);
            schema.insert("anyOf".to_owned(), either);
        }
    }
    if let Some(Value::Array(options)) = schema.get_mut("enum")
        && !options.contains(&Value::Null)
    {
        options.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_follow_and_data_is_left_alone() {
        let mut losses = LossList::default();
        let schema = json!({
            "$schema": "x", "$id": "https://a.example/b",
            "type": "object",
            "properties": {
                "$ref": { "type": "string", "enum": ["$ref"], "default": { "$ref": "#/x" } },
                "a": { "$ref": "#/$defs/A" }, "b": { "$ref": "other.json" }, "c": { "type": "string", "nullable": true }
            },
            "$defs": { "A": { "type": "integer" } },
            "unevaluatedProperties": false
        });
        let moved = move_schema(&schema, "/data", "s.json", &mut losses);
        assert_eq!(
            moved,
            json!({
                "type": "object",
                "properties": {
                    "$ref": { "type": "string", "enum": ["$ref"], "default": { "$ref": "#/x" } },
                    "a": { "$ref": "#/data/$defs/A" }, "b": {}, "c": { "type": ["string", "null"] }
                },
                "$defs": { "A": { "type": "integer" } }
            })
        );
        let what: Vec<String> = losses.finish().into_iter().map(|loss| loss.what).collect();
        assert_eq!(what, ["the reference `other.json`", "`unevaluatedProperties`"]);
    }

    #[test]
    fn a_root_that_is_a_reference_is_what_it_refers_to() {
        let schema = json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "object" } } });
        let root = move_schema(&schema, "/data", "s", &mut LossList::default());
        assert_eq!(root["type"], "object");
        assert!(is_recursive(&json!({ "items": { "$ref": "#" } })) && !is_recursive(&schema));
        let circle = json!({ "$ref": "#/$defs/A", "$defs": { "A": { "$ref": "#/$defs/A" } } });
        let _ends = move_schema(&circle, "/data", "s", &mut LossList::default());
    }

    #[test]
    fn null_is_added_to_whatever_there_is() {
        let with = |schema: Value| {
            let Value::Object(mut members) = schema else { panic!("an object") };
            or_null(&mut members);
            Value::Object(members)
        };
        assert_eq!(with(json!({ "type": "string" })), json!({ "type": ["string", "null"] }));
        assert_eq!(with(json!({ "enum": ["a"] })), json!({ "enum": ["a", null] }));
        assert_eq!(
            with(json!({ "$ref": "#/a" })),
            json!({ "anyOf": [{ "$ref": "#/a" }, { "type": "null" }] })
        );
        assert_eq!(with(json!({})), json!({}));
    }
}
