//! The extensible-enum pattern: `oneOf [string enum, {custom, reason}]`.
//! Brings the custom branch to its lawful bounds, or takes it away for strict modules. Changes nothing else.

use serde_json::{Value, json};

use crate::meta::CUSTOM_LIMIT;

/// What becomes of the custom branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Custom {
    /// It stays, with a name of 1–32 characters and a reason, also where the author forgot to say so.
    Bounded,
    /// It goes: only the predefined values are left.
    Removed,
}

/// Applies `custom` to every occurrence of the pattern in a document, and says whether there was one.
pub(super) fn rewrite(root: &mut Value, tag: &str, custom: Custom) -> bool {
    // Branches may be references; they are followed in the document as it was.
    let written = root.clone();
    Rewriter { written: &written, tag, custom }.below(root)
}

struct Rewriter<'a> {
    written: &'a Value,
    tag: &'a str,
    custom: Custom,
}

impl Rewriter<'_> {
    fn below(&self, node: &mut Value) -> bool {
        let mut found = false;
        match node {
            Value::Object(members) => {
                for keyword in ["oneOf", "anyOf"] {
                    if let Some(Value::Array(branches)) = members.get_mut(keyword)
                        && self.is_pattern(branches)
                    {
                        found = true;
                        self.apply(branches);
                    }
                }
                for each in members.values_mut() {
                    found |= self.below(each);
                }
            }
            Value::Array(items) => {
                for each in items {
                    found |= self.below(each);
                }
            }
            _ => {}
        }
        found
    }

    fn apply(&self, branches: &mut Vec<Value>) {
        match self.custom {
            Custom::Removed => branches.retain(|branch| !self.is_custom_branch(branch)),
            Custom::Bounded => {
                for branch in branches.iter_mut().filter(|branch| self.is_custom_branch(branch)) {
                    let mut bounded = self.followed(branch).clone();
                    bound(&mut bounded, self.tag);
                    *branch = bounded;
                }
            }
        }
    }

    fn is_pattern(&self, branches: &[Value]) -> bool {
        let is_list = |branch: &Value| self.followed(branch).get("enum").is_some_and(Value::is_array);
        branches.iter().any(is_list) && branches.iter().any(|branch| self.is_custom_branch(branch))
    }

    /// An object with a member for the custom value, whether or not the author remembered to require it.
    fn is_custom_branch(&self, branch: &Value) -> bool {
        self.followed(branch).get("properties").and_then(|properties| properties.get(self.tag)).is_some()
    }

    /// What a branch is, one local reference further.
    fn followed<'b>(&'b self, branch: &'b Value) -> &'b Value {
        let reference = branch.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        reference.and_then(|pointer| self.written.pointer(pointer)).unwrap_or(branch)
    }
}

fn bound(branch: &mut Value, tag: &str) {
    let Value::Object(branch) = branch else { return };
    branch.entry("type").or_insert_with(|| json!("object"));
    if let Value::Array(required) = branch.entry("required").or_insert_with(|| json!([])) {
        for name in [tag, "reason"] {
            if !required.iter().any(|each| each == name) {
                required.push(json!(name));
            }
        }
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
