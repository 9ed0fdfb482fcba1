//! The extensible-enum pattern: `oneOf [string enum, {custom, reason}]`.
//! Brings the custom branch to its lawful bounds, or takes it away for strict modules. Changes nothing else.

use serde_json::{Value, json};

use super::SchemaFiles;
use crate::meta::CUSTOM_LIMIT;

/// What becomes of the custom branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Custom {
    /// It stays, with a name of 1–32 characters and a reason, also where the author forgot to say so.
    Bounded,
    /// It goes: only the predefined values are left.
    Removed,
}

/// Whether any file uses the pattern.
pub(super) fn occurs(files: &SchemaFiles, tag: &str) -> bool {
    fn within(node: &Value, tag: &str) -> bool {
        match node {
            Value::Object(members) => {
                pattern_branches(node).is_some_and(|branches| is_pattern(branches, tag))
                    || members.values().any(|each| within(each, tag))
            }
            Value::Array(items) => items.iter().any(|each| within(each, tag)),
            _ => false,
        }
    }
    files.values().any(|root| within(root, tag))
}

/// Applies `custom` to every occurrence of the pattern below `node`.
pub(super) fn rewrite(node: &mut Value, tag: &str, custom: Custom) {
    if let Value::Object(members) = node {
        for keyword in ["oneOf", "anyOf"] {
            if let Some(Value::Array(branches)) = members.get_mut(keyword)
                && is_pattern(branches, tag)
            {
                match custom {
                    Custom::Bounded => branches.iter_mut().for_each(|branch| bound(branch, tag)),
                    Custom::Removed => branches.retain(|branch| !is_custom_branch(branch, tag)),
                }
            }
        }
        for each in members.values_mut() {
            rewrite(each, tag, custom);
        }
    } else if let Value::Array(items) = node {
        for each in items {
            rewrite(each, tag, custom);
        }
    }
}

fn pattern_branches(node: &Value) -> Option<&Vec<Value>> {
    node.get("oneOf").or_else(|| node.get("anyOf"))?.as_array()
}

fn is_pattern(branches: &[Value], tag: &str) -> bool {
    branches.iter().any(|branch| branch.get("enum").is_some_and(Value::is_array))
        && branches.iter().any(|branch| is_custom_branch(branch, tag))
}

fn is_custom_branch(branch: &Value, tag: &str) -> bool {
    let requires = |name: &str| {
        let required = branch.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|each| each == name))
    };
    branch.get("properties").and_then(|properties| properties.get(tag)).is_some() && requires(tag)
}

fn bound(branch: &mut Value, tag: &str) {
    if !is_custom_branch(branch, tag) {
        return;
    }
    if let Some(Value::Array(required)) = branch.get_mut("required")
        && !required.iter().any(|each| each == "reason")
    {
        required.push(json!("reason"));
    }
    let Some(Value::Object(properties)) = branch.get_mut("properties") else { return };
    if let Some(Value::Object(name)) = properties.get_mut(tag) {
        name.entry("type").or_insert_with(|| json!("string"));
        let least = name.get("minLength").and_then(Value::as_u64).unwrap_or(0).max(1);
        let most = name.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX).min(CUSTOM_LIMIT as u64);
        name.insert("minLength".to_owned(), json!(least));
        name.insert("maxLength".to_owned(), json!(most));
    }
    properties.entry("reason").or_insert_with(|| json!({ "type": "string" }));
}
