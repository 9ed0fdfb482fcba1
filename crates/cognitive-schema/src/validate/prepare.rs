//! Prepares copies of the files for the validator: removes labels that could mislead it and limits costly patterns.
//! Locations stay the same, and the original files are not changed.

use serde_json::{Map, Value, json};

use super::walk::MemberNames;
use super::{SchemaFiles, extensible, patterns};

/// Copies the files: removes labels, limits costly patterns to short texts, and normalises custom enum branches.
/// Also returns whether such branches exist.
pub(super) fn prepare(
    files: &SchemaFiles,
    tag: &str,
    custom: extensible::CustomBranchUse,
) -> (SchemaFiles, bool) {
    let mut prepared = files.clone();
    let mut found = false;
    for (root, written) in prepared.values_mut().zip(files.values()) {
        clean(root, MemberNames::Keywords);
        found |= extensible::rewrite(root, written, tag, custom);
    }
    (prepared, found)
}

/// Prepares standalone schemas, without handling of custom enum values.
pub(super) fn prepare_standalone(files: &SchemaFiles) -> SchemaFiles {
    let mut cleaned = files.clone();
    for root in cleaned.values_mut() {
        clean(root, MemberNames::Keywords);
    }
    cleaned
}

fn clean(node: &mut Value, names: MemberNames) {
    match node {
        Value::Object(members) => {
            remove_labels(members);
            for (name, child) in members.iter_mut() {
                if let Some(names) = names.names_below(name) {
                    clean(child, names);
                }
            }
            if names == MemberNames::Keywords {
                fence(members);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, MemberNames::Keywords)),
        _ => {}
    }
}

/// Removes `$schema` and `$id`: neither may choose a dialect or change the meaning of `#/$defs`. A member with one of
/// these names that is itself a schema stays.
fn remove_labels(members: &mut Map<String, Value>) {
    for label in ["$id", "$schema"] {
        if members.get(label).is_some_and(Value::is_string) {
            members.shift_remove(label);
        }
    }
}

/// Applies a costly pattern only to texts that are short enough for it. Longer ones fail by their length.
fn fence(schema: &mut Map<String, Value>) {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let longest = pattern.and_then(|pattern| patterns::weigh(pattern).ok()?.longest_text);
    let Some(longest) = longest else { return };
    let Some(pattern) = schema.shift_remove("pattern") else { return };
    let length = json!({ "maxLength": longest });
    let matched = json!({ "if": length, "then": { "pattern": pattern } });
    if let Value::Array(also) = schema.entry("allOf").or_insert_with(|| json!([])) {
        also.extend([length, matched]);
    }
}
