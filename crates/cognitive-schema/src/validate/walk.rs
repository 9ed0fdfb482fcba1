//! The shared traversal of contract files: every object that can be a schema, with its location.
//! Builds no text on the way. Pointers are written only for reports, so long names cost nothing.

use serde_json::Value;

use super::refs::DATA_KEYWORDS;
use super::{SchemaFiles, SchemaProblem};
use crate::text;

/// Keywords whose value maps author-chosen names to schemas.
pub(super) const NAME_MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas"];

/// The role of an object's member names: keywords, or names that the author chose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberNames {
    Keywords,
    Chosen,
}

impl MemberNames {
    /// The role of the names in the value of `member`; `None` where that value is plain data.
    pub(super) fn names_below(self, member: &str) -> Option<Self> {
        match self {
            Self::Keywords if DATA_KEYWORDS.contains(&member) => None,
            Self::Keywords if NAME_MAPS.contains(&member) => Some(Self::Chosen),
            Self::Chosen | Self::Keywords => Some(Self::Keywords),
        }
    }
}

/// One step into a JSON value.
#[derive(Clone, Copy)]
pub(super) enum PointerStep<'a> {
    Name(&'a str),
    Index(usize),
}

/// The JSON pointer for these steps.
pub(super) fn pointer<'a>(steps: impl IntoIterator<Item = PointerStep<'a>>) -> String {
    steps.into_iter().fold(String::new(), |at, step| match step {
        PointerStep::Name(name) => text::pointer(&at, name),
        PointerStep::Index(index) => format!("{at}/{index}"),
    })
}

/// Calls `each` for every object that can be a schema, with the steps to it.
pub(super) fn visit<'a>(root: &'a Value, each: &mut dyn FnMut(&'a Value, &[PointerStep<'a>])) {
    visit_below(root, MemberNames::Keywords, &mut Vec::new(), each);
}

fn visit_below<'a>(
    node: &'a Value,
    names: MemberNames,
    steps: &mut Vec<PointerStep<'a>>,
    each: &mut dyn FnMut(&'a Value, &[PointerStep<'a>]),
) {
    match node {
        Value::Object(members) => {
            if names == MemberNames::Keywords {
                each(node, steps);
            }
            for (name, child) in members.iter().filter(|(_, child)| is_container(child)) {
                let Some(names) = names.names_below(name) else { continue };
                steps.push(PointerStep::Name(name));
                visit_below(child, names, steps, each);
                steps.pop();
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate().filter(|(_, child)| is_container(child)) {
                steps.push(PointerStep::Index(index));
                visit_below(child, MemberNames::Keywords, steps, each);
                steps.pop();
            }
        }
        _ => {}
    }
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// A problem with a schema that [`visit`] has already passed to its caller. Searches for its location, a cost that only
/// a refusal pays.
pub(super) fn problem_at(files: &SchemaFiles, schema: &Value, message: impl Into<String>) -> SchemaProblem {
    let mut found = None;
    for (file, root) in files {
        visit(root, &mut |node, steps| {
            if std::ptr::eq(node, schema) {
                found = Some((file.as_str(), pointer(steps.iter().copied())));
            }
        });
    }
    let (file, pointer) = found.unwrap_or_default();
    SchemaProblem::new(file, pointer, message)
}
