//! Writes arrays: the items, counts and positions that a target can express.

use serde_json::{Map, Value, json};

use super::bounds;
use super::dialect::Size;
use super::emit::{EnvelopeEmitter, type_members};
use super::merge::places;
use super::unique::UniqueItems;
use crate::text::pointer;

impl EnvelopeEmitter<'_> {
    /// Writes an array; `None` if it must not be empty and no item is possible.
    pub(super) fn array(
        &mut self,
        node: &Map<String, Value>,
        path: &str,
        level: usize,
    ) -> Option<Map<String, Value>> {
        match self.unique(node, path, level) {
            UniqueItems::OneOf(lists) => return Some(lists),
            UniqueItems::Impossible => return None,
            UniqueItems::NoMatter => {}
        }
        if node.get("items").is_some_and(Value::is_array) {
            return self.tuple(node, path, level);
        }
        let least = node.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let most = node.get("maxItems").and_then(Value::as_u64);
        let anything = Value::Bool(true);
        let items = match most {
            Some(0) => None,
            _ => self.schema(node.get("items").unwrap_or(&anything), &pointer(path, "items"), level),
        };
        let mut said = type_members("array");
        let Some(items) = items else {
            if least > 0 {
                return None;
            }
            // Only the empty array remains. Some dialects require a schema for the impossible items.
            said.insert("items".to_owned(), json!({ "type": "null" }));
            self.most_items(0, &mut said, path);
            return Some(said);
        };
        said.insert("items".to_owned(), items);
        self.count_items(least, most, bounds::MAX_ITEMS, &mut said, path).then_some(said)
    }

    /// Writes the number of items; `false` if no number is possible.
    fn count_items(
        &mut self,
        least: u64,
        most: Option<u64>,
        usual: u64,
        said: &mut Map<String, Value>,
        path: &str,
    ) -> bool {
        if self.dialect.size == Size::Bounded && most.is_some_and(|most| most < least) {
            return false;
        }
        if least > self.dialect.most_min_items {
            let taken = self.dialect.most_min_items;
            self.losses.note_weakened(path, "minItems", format!("{taken} instead of {least}"));
        }
        if least > 0 {
            said.insert("minItems".to_owned(), json!(least.min(self.dialect.most_min_items)));
        }
        match most {
            Some(most) => self.most_items(most, said, path),
            None if self.dialect.size == Size::Bounded => {
                let most = least.max(usual);
                self.losses.note_tightened(path, "maxItems", format!("at most {most} items"));
                said.insert("maxItems".to_owned(), json!(most));
            }
            None => {}
        }
        true
    }

    fn most_items(&mut self, most: u64, said: &mut Map<String, Value>, path: &str) {
        if self.dialect.has("maxItems") && most <= self.dialect.most_items {
            said.insert("maxItems".to_owned(), json!(most));
        } else {
            self.losses.note_dropped(path, "maxItems");
        }
    }

    /// Writes an array with a schema for each of its first items. Only the plain form for narrowing targets contains
    /// these.
    fn tuple(&mut self, node: &Map<String, Value>, path: &str, level: usize) -> Option<Map<String, Value>> {
        let least = node.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let mut most = node.get("maxItems").and_then(Value::as_u64);
        let (places, others) = places(node);
        let at = pointer(path, "items");
        let mut said_places = Vec::new();
        for (index, place) in places.iter().enumerate().take(to_usize(most)) {
            match self.schema(place, &pointer(&at, &index.to_string()), level) {
                Some(place) => said_places.push(place),
                None => break,
            }
        }
        let count = said_places.len() as u64;
        let others = (said_places.len() == places.len() && most.is_none_or(|most| most > count))
            .then(|| self.schema(&others, &pointer(path, "additionalItems"), level))
            .flatten();
        if others.is_none() {
            most = Some(most.unwrap_or(count).min(count));
        }
        let mut said = type_members("array");
        let is_empty = said_places.is_empty();
        match others {
            Some(others) if is_empty => said.insert("items".to_owned(), others),
            None if is_empty => said.insert("items".to_owned(), json!({ "type": "null" })),
            others => {
                said.insert("items".to_owned(), Value::Array(said_places));
                said.insert("additionalItems".to_owned(), others.unwrap_or(Value::Bool(false)))
            }
        };
        self.count_items(least, most, bounds::MAX_ITEMS.max(count), &mut said, path).then_some(said)
    }
}

fn to_usize(count: Option<u64>) -> usize {
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
}
