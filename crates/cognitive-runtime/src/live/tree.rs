//! Builds a value from steps, and can show at any time what it would be if the text ended here.
//! Judges nothing; the last of two members with one name counts.

use serde_json::{Map, Number, Value};

use super::step::{Bracket, Step};

/// A value under construction.
#[derive(Debug, Default)]
pub struct Tree {
    open: Vec<Level>,
    text: Option<String>,
    whole: Option<Value>,
}

#[derive(Debug)]
struct Level {
    value: Value,
    /// The member that is being written.
    name: String,
}

impl Level {
    fn put(&mut self, inner: Value) {
        match &mut self.value {
            Value::Object(members) => {
                members.insert(std::mem::take(&mut self.name), inner);
            }
            Value::Array(items) => items.push(inner),
            _ => {}
        }
    }

    /// A copy that also holds what is being written within it.
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

impl Tree {
    /// Takes the next step of the value.
    pub fn step(&mut self, step: Step<'_>) {
        match step {
            Step::Open(bracket) => {
                let value = match bracket {
                    Bracket::Object => Value::Object(Map::new()),
                    Bracket::List => Value::Array(Vec::new()),
                };
                self.open.push(Level { value, name: String::new() });
            }
            Step::Name(name) => {
                if let Some(level) = self.open.last_mut() {
                    name.clone_into(&mut level.name);
                }
            }
            Step::TextStart => self.text = Some(String::new()),
            Step::Text(piece) => self.text.get_or_insert_default().push_str(piece),
            Step::TextEnd => {
                let text = self.text.take().unwrap_or_default();
                self.put(Value::String(text));
            }
            Step::Number(number) => self.put(number.parse::<Number>().map_or(Value::Null, Value::Number)),
            Step::Bool(flag) => self.put(Value::Bool(flag)),
            Step::Null => self.put(Value::Null),
            Step::Close => {
                if let Some(level) = self.open.pop() {
                    self.put(level.value);
                }
            }
            Step::NumberStart | Step::Begin(_) | Step::Void => {}
        }
    }

    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(level) => level.put(value),
            None => self.whole = Some(value),
        }
    }

    /// The value, if it is complete.
    pub fn take_whole(&mut self) -> Option<Value> {
        self.whole.take()
    }

    /// What is complete of it: the value itself, or the members and items of the outermost object or list.
    #[must_use]
    pub(super) fn complete(&self) -> Option<Value> {
        self.open.first().map(|outermost| &outermost.value).or(self.whole.as_ref()).cloned()
    }

    /// What there is so far: open objects and lists as they stand, an open text as far as it has come.
    #[must_use]
    pub fn so_far(&self) -> Option<Value> {
        let inner = self.text.clone().map(Value::String).or_else(|| self.whole.clone());
        self.open.iter().rev().fold(inner, |inner, level| Some(level.with(inner)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::scanner::Scanner;
    use super::super::step::Heed;
    use super::*;

    struct Grow(Tree);

    impl Heed for Grow {
        fn step(&mut self, step: Step<'_>, _: usize) {
            self.0.step(step);
        }
    }

    #[test]
    fn every_beginning_can_be_shown_and_the_end_is_the_value() {
        let text = r#"{"a": [1, {"b": "x\u00e9"}, null], "c": {"d": true}, "a": "last"}"#;
        let (mut scanner, mut grow) = (Scanner::new(true), Grow(Tree::default()));
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
