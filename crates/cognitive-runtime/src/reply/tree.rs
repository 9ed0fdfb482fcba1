//! Builds a value from events, and can show at any time the value as if the text ended here. Judges nothing; for a
//! duplicate name the last value counts.

use std::fmt::Write as _;

use cognitive_contract::text;
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::event::{Bracket, JsonEvent};

/// A value under construction.
#[derive(Debug, Default)]
pub(crate) struct ValueTree {
    open: Vec<TreeLevel>,
    text: Option<String>,
    whole: Option<Value>,
}

/// An object or list under construction.
#[derive(Debug)]
struct TreeLevel {
    value: Value,
    /// The member that is being written.
    name: String,
    name_start: usize,
}

/// A duplicate name in one object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepeatedName {
    pub(super) name: String,
    /// The offset of the later one.
    pub(super) at: usize,
}

impl TreeLevel {
    fn put(&mut self, inner: Value) -> Option<RepeatedName> {
        match &mut self.value {
            Value::Object(members) => match members.entry(std::mem::take(&mut self.name)) {
                Entry::Vacant(vacant) => {
                    vacant.insert(inner);
                }
                Entry::Occupied(mut known) => {
                    known.insert(inner);
                    return Some(RepeatedName { name: known.key().clone(), at: self.name_start });
                }
            },
            Value::Array(items) => items.push(inner),
            _ => {}
        }
        None
    }

    /// Returns a copy that includes the inner value that is being written.
    fn with(&self, inner: Option<Value>) -> Value {
        let mut copy = self.value.clone();
        match (&mut copy, inner) {
            (Value::Object(members), Some(inner)) => {
                members.insert(self.name.clone(), inner);
            }
            (Value::Array(items), Some(inner)) => items.push(inner),
            _ => {}
        }
        copy
    }
}

impl ValueTree {
    /// Takes the next event of the value; returns the name if the event shows that it is a duplicate.
    pub(crate) fn event(&mut self, event: JsonEvent<'_>) -> Option<RepeatedName> {
        match event {
            JsonEvent::Open(bracket) => {
                let value = match bracket {
                    Bracket::Object => Value::Object(Map::new()),
                    Bracket::List => Value::Array(Vec::new()),
                };
                self.open.push(TreeLevel { value, name: String::new(), name_start: 0 });
            }
            JsonEvent::Name { name, start } => {
                if let Some(level) = self.open.last_mut() {
                    name.clone_into(&mut level.name);
                    level.name_start = start;
                }
            }
            JsonEvent::TextStart => self.text = Some(String::new()),
            JsonEvent::Text(piece) => self.text.get_or_insert_default().push_str(piece),
            JsonEvent::TextEnd => {
                let text = self.text.take().unwrap_or_default();
                return self.put(Value::String(text));
            }
            // A number that no type can hold stays a text.
            JsonEvent::Number(written) => {
                let number = written.parse::<Number>().map(Value::Number);
                return self.put(number.unwrap_or_else(|_| Value::String(written.to_owned())));
            }
            JsonEvent::Bool(flag) => return self.put(Value::Bool(flag)),
            JsonEvent::Null => return self.put(Value::Null),
            JsonEvent::Close => {
                let level = self.open.pop()?;
                return self.put(level.value);
            }
            JsonEvent::NumberStart | JsonEvent::Begin(_) | JsonEvent::Void => {}
        }
        None
    }

    fn put(&mut self, value: Value) -> Option<RepeatedName> {
        if let Some(level) = self.open.last_mut() {
            return level.put(value);
        }
        self.whole = Some(value);
        None
    }

    /// JSON pointer to the value that is being written.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for level in &self.open {
            let _a_string_takes_everything = match &level.value {
                Value::Array(items) => write!(pointer, "/{}", items.len()),
                _ => write!(pointer, "/{}", text::escape(&level.name)),
            };
        }
        pointer
    }

    /// Takes the value, if it is complete.
    pub(crate) fn take_whole(&mut self) -> Option<Value> {
        self.whole.take()
    }

    /// Returns the complete part: the value itself, or the members and items of the outermost object or list.
    #[must_use]
    pub(crate) fn complete(&self) -> Option<Value> {
        self.open.first().map(|outermost| &outermost.value).or(self.whole.as_ref()).cloned()
    }

    /// Returns the value so far: open objects and lists as they are, and the received part of an open text.
    #[must_use]
    pub(crate) fn so_far(&self) -> Option<Value> {
        let inner = self.text.clone().map(Value::String).or_else(|| self.whole.clone());
        self.open.iter().rev().fold(inner, |inner, level| Some(level.with(inner)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::event::JsonListener;
    use super::super::scanner::ReplyScanner;
    use super::*;

    struct Grow(ValueTree);

    impl JsonListener for Grow {
        fn event(&mut self, event: JsonEvent<'_>, _: usize) {
            self.0.event(event);
        }
    }

    #[test]
    fn every_beginning_can_be_shown_and_the_end_is_the_value() {
        let text = r#"{"a": [1, {"b": "x\u00e9"}, null], "c": {"d": true}, "a": "last"}"#;
        let (mut scanner, mut grow) = (ReplyScanner::new(true), Grow(ValueTree::default()));
        let mut shown = Vec::new();
        for letter in text.chars() {
            scanner.push(letter.encode_utf8(&mut [0; 4]), &mut grow);
            shown.push(grow.0.so_far());
        }
        assert!(shown.contains(&Some(json!({ "a": [1, { "b": "x" }] }))));
        assert!(shown.contains(&Some(json!({ "a": [1, { "b": "xé" }, null], "c": { "d": true } }))));
        assert_eq!(grow.0.take_whole(), serde_json::from_str(text).unwrap());
    }
}
