//! Writes objects: the members that a target can express.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::bounds;
use super::counts::{MemberCounts, WrittenMembers};
use super::dialect::{Objects, Size, UnsupportedRules};
use super::emit::{EnvelopeEmitter, type_members};
use super::names::{self, UndescribedMembers, described_members};
use crate::text::pointer;

impl EnvelopeEmitter<'_> {
    /// Writes an object; `None` if a required member can have no value.
    pub(super) fn object(
        &mut self,
        node: &Map<String, Value>,
        path: &str,
        level: usize,
    ) -> Option<Map<String, Value>> {
        if level > self.dialect.limits.levels {
            let how =
                format!("no members: the service accepts {} levels of objects", self.dialect.limits.levels);
            self.losses.note_tightened(path, "properties", how);
            return self.object(&Map::new(), path, 0);
        }
        let required: Vec<&str> = node
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let needed: HashSet<&str> = required.iter().copied().collect();
        let mut members = WrittenMembers::default();
        for (name, schema) in described_members(node, &required, path, self.losses) {
            let at = pointer(&pointer(path, "properties"), &name);
            let is_required = needed.contains(name.as_str());
            let Some(said) = self.schema(&schema, &at, level + 1) else {
                if is_required {
                    return None;
                }
                members.forbidden.push(name);
                continue;
            };
            let (said, is_required) = if is_required { (said, true) } else { self.optional(said, &at) };
            if is_required {
                members.required.push(json!(name));
            }
            members.properties.insert(name, said);
        }
        if self.dialect.rest == UnsupportedRules::Narrowed {
            return self.narrow_object(node, members, path, level);
        }
        Some(self.assemble(node, members.properties, members.required, path, level))
    }

    /// Writes an object for a narrowing target. It is closed, unless it is a map, and its member count is enforced.
    fn narrow_object(
        &mut self,
        node: &Map<String, Value>,
        mut members: WrittenMembers,
        path: &str,
        level: usize,
    ) -> Option<Map<String, Value>> {
        let least = node.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        let anything = Map::new();
        let others = match names::other_members(node) {
            UndescribedMembers::Pattern(pattern, _) if !self.dialect.patterns.accept(pattern) => {
                UndescribedMembers::None
            }
            // If there are too few described members, names must be invented.
            UndescribedMembers::None if is_open(node) && least > members.properties.len() as u64 => {
                UndescribedMembers::Map(&anything)
            }
            others => others,
        };
        let is_short = least > members.properties.len() as u64;
        // A grammar cannot count other members next to optional ones, so they are left out unless all members are
        // needed.
        let has_optional = members.properties.len() > members.required.len();
        let others = if has_optional && !is_short { UndescribedMembers::None } else { others };
        let counts = self.count_members(node, &mut members, others != UndescribedMembers::None, path)?;
        let mut said = match others {
            UndescribedMembers::None => {
                self.assemble(&closing_node(node), members.properties, members.required, path, level)
            }
            UndescribedMembers::Map(map) => {
                let map = self.schema(
                    &Value::Object(map.clone()),
                    &pointer(path, "additionalProperties"),
                    level + 1,
                );
                self.map(members, counts, ("additionalProperties", map), path)?
            }
            UndescribedMembers::Pattern(pattern, schema) => {
                let at = pointer(&pointer(path, "patternProperties"), pattern);
                let schema = self.schema(schema, &at, level + 1);
                self.map(
                    members,
                    counts,
                    ("patternProperties", schema.map(|schema| json!({ pattern: schema }))),
                    path,
                )?
            }
        };
        if !said.contains_key("const") {
            for (keyword, count) in [("minProperties", counts.least), ("maxProperties", counts.most)] {
                if let Some(count) = count.filter(|_| !said.contains_key(keyword)) {
                    said.insert(keyword.to_owned(), json!(count));
                }
            }
        }
        Some(said)
    }

    /// Writes an object with a limited number of undescribed members; `None` if some are required but impossible.
    fn map(
        &mut self,
        members: WrittenMembers,
        counts: MemberCounts,
        (keyword, others): (&str, Option<Value>),
        path: &str,
    ) -> Option<Map<String, Value>> {
        let WrittenMembers { mut properties, required, forbidden } = members;
        let mut said = type_members("object");
        let count = required.len() as u64;
        let Some(others) = others else {
            if counts.least.is_some() {
                return None;
            }
            return Some(self.assemble(&closing_node(&Map::new()), properties, required, path, 0));
        };
        // A forbidden name must not reappear as one of the others.
        properties.extend(forbidden.into_iter().map(|name| (name, Value::Bool(false))));
        if !properties.is_empty() {
            said.insert("properties".to_owned(), Value::Object(properties));
            if !required.is_empty() {
                said.insert("required".to_owned(), Value::Array(required));
            }
        }
        said.insert(keyword.to_owned(), others);
        if keyword != "additionalProperties" {
            said.insert("additionalProperties".to_owned(), json!(false));
        }
        let usual = (count + bounds::MAX_ITEMS).max(counts.least.unwrap_or(0));
        let most = counts.most.map_or(usual, |most| most.min(usual));
        if counts.most != Some(most) {
            self.losses.note_tightened(path, "maxProperties", format!("at most {most} members"));
        }
        said.insert("maxProperties".to_owned(), json!(most));
        Some(said)
    }

    fn assemble(
        &mut self,
        node: &Map<String, Value>,
        properties: Map<String, Value>,
        required: Vec<Value>,
        path: &str,
        level: usize,
    ) -> Map<String, Value> {
        let mut said = type_members("object");
        let is_empty = properties.is_empty();
        let all_required = properties.len() == required.len();
        // A closed dialect needs the lists even if they are empty; llama.cpp builds a broken grammar from empty ones.
        let lists = !is_empty || self.dialect.objects == Objects::Closed;
        if lists && self.dialect.has("propertyOrdering") {
            let order: Vec<&String> = properties.keys().collect();
            said.insert("propertyOrdering".to_owned(), json!(order));
        }
        if lists {
            said.insert("properties".to_owned(), Value::Object(properties));
            if !required.is_empty() || self.dialect.objects == Objects::Closed {
                said.insert("required".to_owned(), Value::Array(required));
            }
        }
        match (node.get("additionalProperties"), self.dialect.objects) {
            (Some(Value::Object(others)), Objects::Open) => {
                self.other_members(others, &mut said, path, level);
            }
            (Some(Value::Object(others)), Objects::ClosedExceptMaps) if all_required => {
                self.other_members(others, &mut said, path, level);
            }
            (Some(Value::Bool(false)), _) => {
                said.insert("additionalProperties".to_owned(), json!(false));
            }
            (None, Objects::Open) => {}
            // An object without any rules stays open, since closing it would allow only `{}`.
            (None, Objects::ClosedExceptMaps) if is_empty && self.dialect.size == Size::AsWritten => {}
            (_, _) => {
                self.losses.note_tightened(
                    path,
                    "additionalProperties",
                    "only the members that the schema describes",
                );
                said.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        if is_empty && !lists && said.get("additionalProperties") == Some(&json!(false)) && self.closes() {
            said.shift_remove("additionalProperties");
            said.insert("const".to_owned(), json!({}));
        }
        said
    }

    fn other_members(
        &mut self,
        others: &Map<String, Value>,
        said: &mut Map<String, Value>,
        path: &str,
        level: usize,
    ) {
        let at = pointer(path, "additionalProperties");
        let schema = self.schema(&Value::Object(others.clone()), &at, level + 1);
        said.insert("additionalProperties".to_owned(), schema.unwrap_or(Value::Bool(false)));
    }
}

/// Returns whether undescribed members may have any value.
fn is_open(node: &Map<String, Value>) -> bool {
    let has = |keyword: &str| node.contains_key(keyword);
    !has("additionalProperties") && !has("patternProperties") && !has("propertyNames")
}

/// The node that makes `assemble` close the object: `additionalProperties` only.
fn closing_node(node: &Map<String, Value>) -> Map<String, Value> {
    let is_closed = node.get("additionalProperties") == Some(&Value::Bool(false));
    // An object that the author closed needs no recorded loss.
    if is_closed {
        Map::from_iter([("additionalProperties".to_owned(), Value::Bool(false))])
    } else {
        Map::new()
    }
}
