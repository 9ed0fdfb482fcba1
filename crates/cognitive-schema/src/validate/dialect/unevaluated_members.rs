//! Replaces `unevaluatedProperties` and `unevaluatedItems` by `additionalProperties` and `additionalItems` where the
//! members or items that other schemas evaluate are the same for every value. Elsewhere they stay, for the validator.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::walk::{self, visit};
use super::super::{SchemaFiles, refs};

/// Schemas that are read for all files. Beyond that, the keywords stay.
const MAX_SCHEMAS: usize = 50_000;

/// The most references and branches in a row.
const MAX_NESTING: usize = 32;

/// The most items by index, and the most named members, that are written out for one schema.
const MAX_WRITTEN: usize = 500;

/// Replaces the keywords in files of core form.
pub(super) fn close(files: &mut SchemaFiles) {
    let reader = MemberReader { files, left: Cell::new(MAX_SCHEMAS) };
    let mut closings = Vec::new();
    for (file, root) in &*files {
        visit(root, &mut |node, steps| {
            for part in [Part::Properties, Part::Items] {
                if let Some(evaluated) = reader.find_evaluated(file, node, part) {
                    closings.push((file.clone(), walk::pointer(steps.iter().copied()), part, evaluated));
                }
            }
        });
    }
    // Inner schemas first, since an outer change moves them.
    for (file, pointer, part, evaluated) in closings.into_iter().rev() {
        if let Some(Value::Object(schema)) = files.get_mut(&file).and_then(|root| root.pointer_mut(&pointer))
        {
            evaluated.close(schema, part);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Properties,
    Items,
}

impl Part {
    fn keyword(self) -> &'static str {
        match self {
            Self::Properties => "unevaluatedProperties",
            Self::Items => "unevaluatedItems",
        }
    }
}

/// The members and items that the schemas for one value evaluate.
#[derive(Default)]
struct EvaluatedMembers {
    names: BTreeSet<String>,
    patterns: BTreeSet<String>,
    /// The number of items by index.
    items: usize,
    /// True if every member or item is evaluated.
    is_all: bool,
}

impl EvaluatedMembers {
    fn is_nothing(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty() && self.items == 0 && !self.is_all
    }

    /// Replaces the keyword of a schema.
    fn close(self, schema: &mut Map<String, Value>, part: Part) {
        let Some(rest) = schema.shift_remove(part.keyword()) else { return };
        if self.is_all {
            return;
        }
        match part {
            Part::Properties => {
                for (keyword, names) in [("properties", self.names), ("patternProperties", self.patterns)] {
                    if names.is_empty() {
                        continue;
                    }
                    let Value::Object(map) = schema.entry(keyword).or_insert_with(|| json!({})) else {
                        continue;
                    };
                    for name in names {
                        map.entry(name).or_insert(Value::Bool(true));
                    }
                }
                schema.insert("additionalProperties".to_owned(), rest);
            }
            Part::Items if self.items == 0 => {
                schema.insert("items".to_owned(), rest);
            }
            Part::Items => {
                if let Value::Array(list) = schema.entry("items").or_insert_with(|| json!([])) {
                    list.resize(self.items.max(list.len()), Value::Bool(true));
                }
                schema.insert("additionalItems".to_owned(), rest);
            }
        }
    }
}

struct MemberReader<'a> {
    files: &'a SchemaFiles,
    left: Cell<usize>,
}

impl<'a> MemberReader<'a> {
    /// The members or items that are evaluated beside `unevaluated…` of a schema; `None` if that depends on the value,
    /// or if the schema lacks the keyword.
    fn find_evaluated(&self, file: &'a str, node: &'a Value, part: Part) -> Option<EvaluatedMembers> {
        let schema = node.as_object().filter(|schema| schema.contains_key(part.keyword()))?;
        let mut evaluated = EvaluatedMembers::default();
        self.add_own(file, schema, part, true, &mut evaluated, 0)?;
        (evaluated.names.len() <= MAX_WRITTEN && evaluated.items <= MAX_WRITTEN).then_some(evaluated)
    }

    fn schema(
        &self,
        file: &'a str,
        node: &'a Value,
        part: Part,
        evaluated: &mut EvaluatedMembers,
        depth: usize,
    ) -> Option<()> {
        match node {
            Value::Object(schema) => self.add_own(file, schema, part, false, evaluated, depth),
            _ => Some(()),
        }
    }

    /// Adds what a schema and the schemas for the same value evaluate; `None` if that depends on the value.
    fn add_own(
        &self,
        file: &'a str,
        schema: &'a Map<String, Value>,
        part: Part,
        is_start: bool,
        evaluated: &mut EvaluatedMembers,
        depth: usize,
    ) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        if depth > MAX_NESTING {
            return None;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = refs::target(self.files, file, reference).ok()?;
            let file = match refs::file_of_ref(reference, file).ok()? {
                Some(other) => self.files.get_key_value(&other)?.0,
                None => file,
            };
            return self.schema(file, target, part, evaluated, depth + 1);
        }
        match part {
            Part::Properties => {
                let names =
                    |keyword: &str| schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
                evaluated.names.extend(names("properties").map(|(name, _)| name.clone()));
                evaluated.patterns.extend(names("patternProperties").map(|(name, _)| name.clone()));
                evaluated.is_all |= schema.contains_key("additionalProperties");
            }
            Part::Items => {
                match schema.get("items") {
                    Some(Value::Array(list)) => {
                        evaluated.items = evaluated.items.max(list.len());
                        evaluated.is_all |= schema.contains_key("additionalItems");
                    }
                    items => evaluated.is_all |= items.is_some(),
                }
                // Items that match `contains` are evaluated.
                if schema.contains_key("contains") {
                    return None;
                }
            }
        }
        evaluated.is_all |= !is_start && schema.contains_key(part.keyword());
        let branches = |keyword: &str| schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        for branch in branches("allOf") {
            self.schema(file, branch, part, evaluated, depth + 1)?;
        }
        let dependent = schema.get("dependencies").and_then(Value::as_object).into_iter().flatten();
        let dependent = dependent.map(|(_, needs)| needs);
        let conditions = ["if", "then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
        for branch in branches("anyOf").chain(branches("oneOf")).chain(dependent).chain(conditions) {
            let mut sometimes = EvaluatedMembers::default();
            self.schema(file, branch, part, &mut sometimes, depth + 1)?;
            if !sometimes.is_nothing() {
                return None;
            }
        }
        Some(())
    }
}
