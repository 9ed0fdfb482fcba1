//! The extensible-enum pattern: `oneOf [string enum, {custom, reason}]`.
//! Bounds the custom branch, or removes it for strict modules, and lists the custom branches of a document. Changes
//! nothing else, and copies nothing that a branch refers to.

use serde_json::{Map, Value, json};

use super::walk::{self, MemberNames, PointerStep};

/// The most code points that a custom enum value may have.
pub const MAX_CUSTOM_LENGTH: usize = 32;

/// The treatment of the custom branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CustomBranchUse {
    /// The branch stays, with a name of 1–32 characters and a reason, even if the author omitted these limits.
    Bounded,
    /// The branch is removed, so only the predefined values are left.
    Removed,
}

/// Applies `custom` to every occurrence of the pattern in a document, and returns whether there was one.
/// Branches may be references; they are followed in the document as it was `written`.
pub(super) fn rewrite(root: &mut Value, written: &Value, tag: &str, custom: CustomBranchUse) -> bool {
    Rewriter { pattern: CustomPattern { written, tag }, custom }.rewrite_below(root, MemberNames::Keywords)
}

/// Pointers to the custom branches of a document; `tag` names the member that holds a custom value.
#[must_use]
pub fn custom_branches(root: &Value, tag: &str) -> Vec<String> {
    let pattern = CustomPattern { written: root, tag };
    let mut found = Vec::new();
    walk::visit(root, &mut |schema, steps| {
        for keyword in KEYWORDS {
            let branches =
                schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if !pattern.is_in(branches) {
                continue;
            }
            for (index, _) in
                branches.iter().enumerate().filter(|(_, branch)| pattern.is_custom_branch(branch))
            {
                let below = [PointerStep::Name(keyword), PointerStep::Index(index)];
                found.push(walk::pointer(steps.iter().copied().chain(below)));
            }
        }
    });
    found
}

/// The keywords in which the pattern may occur.
const KEYWORDS: [&str; 2] = ["oneOf", "anyOf"];

struct Rewriter<'a> {
    pattern: CustomPattern<'a>,
    custom: CustomBranchUse,
}

/// Recognises the pattern.
struct CustomPattern<'a> {
    /// The document in which references are followed.
    written: &'a Value,
    tag: &'a str,
}

impl Rewriter<'_> {
    fn rewrite_below(&self, node: &mut Value, names: MemberNames) -> bool {
        let mut found = false;
        match node {
            Value::Object(members) => {
                if names == MemberNames::Keywords {
                    found |= self.schema(members);
                }
                for (name, each) in members.iter_mut() {
                    found |= names.names_below(name).is_some_and(|names| self.rewrite_below(each, names));
                }
            }
            Value::Array(items) => {
                for each in items {
                    found |= self.rewrite_below(each, MemberNames::Keywords);
                }
            }
            _ => {}
        }
        found
    }

    fn schema(&self, schema: &mut Map<String, Value>) -> bool {
        let mut found = false;
        for keyword in KEYWORDS {
            if let Some(Value::Array(branches)) = schema.get_mut(keyword)
                && self.pattern.is_in(branches)
            {
                found = true;
                self.apply(branches);
            }
        }
        found
    }

    fn apply(&self, branches: &mut Vec<Value>) {
        match self.custom {
            CustomBranchUse::Removed => branches.retain(|branch| !self.pattern.is_custom_branch(branch)),
            CustomBranchUse::Bounded => {
                let CustomPattern { tag, .. } = self.pattern;
                for branch in branches.iter_mut().filter(|branch| self.pattern.is_custom_branch(branch)) {
                    match self.pattern.target(branch) {
                        Some(target) => {
                            *branch = json!({ "allOf": [branch.take(), bounds(target, tag)] });
                        }
                        None => add_limits(branch, tag),
                    }
                }
            }
        }
    }
}

impl CustomPattern<'_> {
    fn is_in(&self, branches: &[Value]) -> bool {
        let is_list = |branch: &Value| self.follow_reference(branch).get("enum").is_some_and(Value::is_array);
        branches.iter().any(is_list) && branches.iter().any(|branch| self.is_custom_branch(branch))
    }

    /// Returns whether a branch describes an object with the custom member, even if the author did not require it.
    fn is_custom_branch(&self, branch: &Value) -> bool {
        self.follow_reference(branch)
            .get("properties")
            .and_then(|properties| properties.get(self.tag))
            .is_some()
    }

    /// The branch itself, or the target of its local reference.
    fn follow_reference<'b>(&'b self, branch: &'b Value) -> &'b Value {
        self.target(branch).unwrap_or(branch)
    }

    /// The target of a branch that is a local reference.
    fn target(&self, branch: &Value) -> Option<&Value> {
        let reference = branch.get("$ref").and_then(Value::as_str)?;
        self.written.pointer(reference.strip_prefix('#')?)
    }
}

/// Adds the limits that the author omitted from a custom branch.
fn add_limits(branch: &mut Value, tag: &str) {
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
        let most =
            name.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX).min(MAX_CUSTOM_LENGTH as u64);
        name.insert("minLength".to_owned(), json!(least));
        name.insert("maxLength".to_owned(), json!(most));
    }
    properties.entry("reason").or_insert_with(|| json!({ "type": "string" }));
}

/// The limits that the author omitted from a referenced custom branch, as a separate schema. A copy of the branch could
/// be large, be repeated often, or contain itself.
fn bounds(branch: &Value, tag: &str) -> Value {
    // The limits depend only on the types that the author declared.
    let outline = |schema: &Value| -> Map<String, Value> {
        schema.get("type").map(|kind| ("type".to_owned(), kind.clone())).into_iter().collect()
    };
    let properties = branch.get("properties").and_then(Value::as_object).into_iter().flatten();
    let properties = properties.filter(|(name, _)| [tag, "reason"].contains(&name.as_str()));
    let properties = properties.map(|(name, schema)| (name.clone(), Value::Object(outline(schema))));
    let mut bounds = outline(branch);
    bounds.insert("properties".to_owned(), Value::Object(properties.collect()));
    let mut bounds = Value::Object(bounds);
    add_limits(&mut bounds, tag);
    bounds
}
