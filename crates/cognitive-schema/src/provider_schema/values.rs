//! Writes lists of allowed values: those that a target accepts, with their type.

use serde_json::{Map, Value, json};

use super::dialect::Values;
use super::emit::{EnvelopeEmitter, type_members};
use super::merge::types_of;
use super::union;
use crate::text::type_word;
use crate::validate::Section;

/// Up to this many listed values, no service limits their characters.
const LONG_ENUM: usize = 250;

impl EnvelopeEmitter<'_> {
    /// Writes a list of allowed values with one branch per type, because several dialects require values and type to
    /// match.
    pub(super) fn values(
        &mut self,
        values: Vec<Value>,
        node: &Map<String, Value>,
        path: &str,
        level: usize,
    ) -> Option<Value> {
        let values = match types_of(node) {
            None => values,
            Some(types) => values.into_iter().filter(|value| fits(value, &types)).collect(),
        };
        let values = self.lawful(values, node, path);
        let mut groups: Vec<(&'static str, Vec<Value>)> = Vec::new();
        for value in values {
            let kind = type_word(&value);
            match groups.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, group)) if group.contains(&value) => {}
                Some((_, group)) => group.push(value),
                None => groups.push((kind, vec![value])),
            }
        }
        let keyword = if node.contains_key("const") { "const" } else { "enum" };
        let said = groups
            .into_iter()
            .filter_map(|(kind, group)| {
                self.group(kind, group).or_else(|| {
                    self.losses.note_dropped(path, keyword);
                    self.single(kind, &Map::new(), path, level).map(Value::Object)
                })
            })
            .collect();
        let mut said = union::any_of(said);
        if let Some(Value::Object(members)) = &mut said
            && !members.contains_key("anyOf")
        {
            self.origins(node, members);
        }
        said
    }

    /// Keeps the values that also satisfy the other keywords of the node.
    fn lawful(&mut self, mut values: Vec<Value>, node: &Map<String, Value>, path: &str) -> Vec<Value> {
        let judges = |keyword: &&String| {
            !matches!(keyword.as_str(), "type" | "enum" | "const" | "description" | "format")
                && !keyword.starts_with("x-")
        };
        let beside: Vec<&String> = node.keys().filter(judges).collect();
        if beside.is_empty() {
            return values;
        }
        // Recursive types are defined elsewhere, so such a schema cannot be compiled here.
        match Section::standalone(&Value::Object(node.clone())) {
            Ok(judge) => values.retain(|value| judge.accepts(value)),
            Err(_) => beside.into_iter().for_each(|keyword| self.losses.note_dropped(path, keyword)),
        }
        values
    }

    /// Writes the values of one type; `None` if the target cannot list them.
    fn group(&mut self, kind: &str, values: Vec<Value>) -> Option<Value> {
        let both = [Value::Bool(true), Value::Bool(false)];
        let is_whole_type = kind == "null" || both.iter().all(|value| values.contains(value));
        if is_whole_type {
            return Some(json!({ "type": kind }));
        }
        self.enum_values = self.enum_values.saturating_add(values.len());
        let sayable = match self.dialect.values {
            Values::All => true,
            Values::Scalars => !matches!(kind, "object" | "array"),
            Values::StringsAndNumbers => matches!(kind, "string" | "integer" | "number"),
        };
        if !sayable || self.enum_values > self.dialect.limits.enum_values || self.is_too_long(&values) {
            return None;
        }
        let mut said = type_members(kind);
        match values.as_slice() {
            [one] if self.dialect.has("const") => said.insert("const".to_owned(), one.clone()),
            _ => said.insert("enum".to_owned(), Value::Array(values)),
        };
        Some(Value::Object(said))
    }

    fn is_too_long(&self, values: &[Value]) -> bool {
        let characters: usize =
            values.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum();
        values.len() > LONG_ENUM && characters > self.dialect.limits.enum_characters
    }
}

fn fits(value: &Value, types: &[String]) -> bool {
    let kind = type_word(value);
    types.iter().any(|name| name == kind || (name == "number" && kind == "integer") || is_whole(value, name))
}

/// 1.0 is an integer, too.
fn is_whole(value: &Value, name: &str) -> bool {
    name == "integer" && value.as_f64().is_some_and(|number| number.fract() == 0.0)
}
