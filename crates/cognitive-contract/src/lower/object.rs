//! Objects and lists: which members and items a target can be bound to.

use serde_json::{Map, Value, json};

use super::bounds;
use super::dialect::{Objects, Size};
use super::emit::{Emit, typed};
use crate::text::pointer;

impl Emit<'_> {
    /// An object; `None` if a required member can have no value.
    pub(super) fn object(
        &mut self,
        node: &Map<String, Value>,
        path: &str,
        level: usize,
    ) -> Option<Map<String, Value>> {
        if level > self.dialect.limits.levels {
            let how =
                format!("no members: the service takes {} levels of objects", self.dialect.limits.levels);
            self.losses.tightened(path, "properties", how);
            return self.object(&Map::new(), path, 0);
        }
        let required: Vec<&str> = node
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut properties = Map::new();
        let mut said_required = Vec::new();
        for (name, schema) in described_members(node, &required) {
            let at = pointer(&pointer(path, "properties"), &name);
            let is_required = required.contains(&name.as_str());
            let Some(said) = self.schema(&schema, &at, level + 1) else {
                if is_required {
                    return None;
                }
                continue;
            };
            let (said, is_required) = if is_required { (said, true) } else { self.optional(said, &at) };
            if is_required {
                said_required.push(json!(name));
            }
            properties.insert(name, said);
        }
        Some(self.assemble(node, properties, said_required, path, level))
    }

    fn assemble(
        &mut self,
        node: &Map<String, Value>,
        properties: Map<String, Value>,
        required: Vec<Value>,
        path: &str,
        level: usize,
    ) -> Map<String, Value> {
        let mut said = typed("object");
        let is_empty = properties.is_empty();
        let all_required = properties.len() == required.len();
        // A closed dialect wants the lists even if they are empty; llama.cpp makes a broken grammar of empty ones.
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
                if self.dialect.size == Size::Bounded
                    && said.get("additionalProperties").is_some_and(Value::is_object)
                {
                    let most = required_count(&said) + bounds::MOST_ITEMS;
                    said.insert("maxProperties".to_owned(), json!(most));
                    self.losses.tightened(path, "maxProperties", format!("at most {most} members"));
                }
            }
            (Some(Value::Bool(false)), _) => {
                said.insert("additionalProperties".to_owned(), json!(false));
            }
            (None, Objects::Open) => {}
            // An object of which nothing is known stays one; there is nothing to close it around.
            (None, Objects::ClosedExceptMaps) if is_empty && self.dialect.size == Size::AsWritten => {}
            (_, _) => {
                self.losses.tightened(path, "additionalProperties", "only the members that are described");
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

    /// A list; `None` if it may not be empty and no item fits.
    pub(super) fn array(
        &mut self,
        node: &Map<String, Value>,
        path: &str,
        level: usize,
    ) -> Option<Map<String, Value>> {
        let least = node.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let most = node.get("maxItems").and_then(Value::as_u64);
        let anything = Value::Bool(true);
        let items = match most {
            Some(0) => None,
            _ => self.schema(node.get("items").unwrap_or(&anything), &pointer(path, "items"), level),
        };
        let mut said = typed("array");
        let Some(items) = items else {
            if least > 0 {
                return None;
            }
            // Only the empty list is left. Some dialects insist on a schema for the items that cannot be there.
            said.insert("items".to_owned(), json!({ "type": "null" }));
            self.most_items(0, &mut said, path);
            return Some(said);
        };
        said.insert("items".to_owned(), items);
        if least > self.dialect.most_min_items {
            let taken = self.dialect.most_min_items;
            self.losses.weakened(path, "minItems", format!("{taken} instead of {least}"));
        }
        if least > 0 {
            said.insert("minItems".to_owned(), json!(least.min(self.dialect.most_min_items)));
        }
        match most {
            Some(most) => self.most_items(most, &mut said, path),
            None if self.dialect.size == Size::Bounded => {
                let most = least.max(bounds::MOST_ITEMS);
                self.losses.tightened(path, "maxItems", format!("at most {most} items"));
                said.insert("maxItems".to_owned(), json!(most));
            }
            None => {}
        }
        Some(said)
    }

    fn most_items(&mut self, most: u64, said: &mut Map<String, Value>, path: &str) {
        if self.dialect.has("maxItems") && most <= self.dialect.most_items {
            said.insert("maxItems".to_owned(), json!(most));
        } else {
            self.losses.dropped(path, "maxItems");
        }
    }
}

/// The members of an object in the author's order, then those that are required without being described.
fn described_members(node: &Map<String, Value>, required: &[&str]) -> Vec<(String, Value)> {
    let properties = node.get("properties").and_then(Value::as_object);
    let mut members: Vec<(String, Value)> =
        properties.into_iter().flatten().map(|(name, schema)| (name.clone(), schema.clone())).collect();
    let others = node.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    for name in required {
        if !members.iter().any(|(known, _)| known == name) {
            members.push(((*name).to_owned(), others.clone()));
        }
    }
    members
}

fn required_count(said: &Map<String, Value>) -> u64 {
    said.get("required").and_then(Value::as_array).map_or(0, |names| names.len() as u64)
}
