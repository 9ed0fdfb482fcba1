//! Schemas for editors, derived from those that the runtime reads by. They flag unknown and missing keys, and
//! offer no `null` where omitting the key means the same. The runtime itself is more lenient.

use serde_json::{Map, Value, json};

/// Keys for which `null` has its own meaning.
const MEANT_NULL: [&str; 2] = ["next", "fallback"];

/// Returns the same schema in the form for editors: closed objects, no `null`, and `required` keys at the top
/// level.
#[must_use]
pub fn for_editors(mut schema: Value, required: &[&str]) -> Value {
    close(&mut schema);
    if let Value::Object(root) = &mut schema
        && !required.is_empty()
    {
        root.insert("required".to_owned(), json!(required));
    }
    schema
}

fn close(node: &mut Value) {
    let members = match node {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter_mut().for_each(close),
        _ => return,
    };
    if members.get("properties").is_some_and(Value::is_object)
        && !members.contains_key("additionalProperties")
    {
        members.insert("additionalProperties".to_owned(), Value::Bool(false));
        // The author's own notes.
        members.insert("patternProperties".to_owned(), json!({ "^x-": true }));
    }
    for (word, child) in members.iter_mut() {
        match child {
            Value::Object(inner) if word == "properties" => inner.iter_mut().for_each(|(name, member)| {
                if !MEANT_NULL.contains(&name.as_str()) {
                    drop_null(member);
                }
                close(member);
            }),
            _ => close(child),
        }
    }
}

/// Removes `null` from the allowed values of a schema.
pub fn drop_null(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    drop_from(members, "type", |kind| kind == "null");
    drop_from(members, "enum", Value::is_null);
    drop_from(members, "anyOf", |branch| branch.get("type").is_some_and(|kind| kind == "null"));
    if members.get("default").is_some_and(Value::is_null) {
        members.shift_remove("default");
    }
}

fn drop_from(members: &mut Map<String, Value>, word: &str, unwanted: impl Fn(&Value) -> bool) {
    let Some(Value::Array(entries)) = members.get_mut(word) else { return };
    entries.retain(|entry| !unwanted(entry));
    if word == "type"
        && let [only] = entries.as_slice()
    {
        let only = only.clone();
        members.insert(word.to_owned(), only);
    }
}

#[cfg(test)]
mod tests {
    use cognitive_schema::accepts;

    use super::*;
    use crate::manifest;

    #[test]
    fn the_manifest_is_closed_complete_and_without_null() {
        let schema = manifest::editor_schema();
        let good = json!({
            "name": "m", "version": "1.0.0", "responsibility": "r", "tier": "exec", "x-team": 1,
            "overflow": { "enabled": true }, "io": { "output": "./schema.json#/data" },
            "policies": { "network": "deny", "own": "allow" },
            "composition": { "requires": [{ "name": "a", "fallback": null }], "routing": [{ "condition": "true", "next": null }] },
        });
        assert!(accepts(&schema, &good));
        let with = |path: &str, key: &str, value: Value| {
            let mut changed = good.clone();
            changed.pointer_mut(path).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
            accepts(&schema, &changed)
        };
        assert!(!with("", "exclude", json!(["x"])));
        assert!(!with("/overflow", "enabel", json!(true)));
        assert!(!with("/composition/requires/0", "vesion", json!("1.0.0")));
        assert!(!with("", "tier", Value::Null));
        assert!(!with("", "overflow", Value::Null));
        for key in ["name", "version", "responsibility"] {
            let mut missing = good.clone();
            missing.as_object_mut().unwrap().shift_remove(key);
            assert!(!accepts(&schema, &missing), "{key}");
        }
    }
}
