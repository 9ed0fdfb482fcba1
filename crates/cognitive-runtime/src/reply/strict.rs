//! RFC 8259, nothing else: the first and cheapest way to read a reply, and the only one for `exec`. Builds the value
//! itself instead of leaving that to `serde_json`. So it sees duplicate names and depth on the way, without a second
//! pass over a clean reply.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::json::MAX_DEPTH;

/// A value, and flags for a closer look at it.
#[derive(Debug, PartialEq)]
pub(super) struct StrictValue {
    pub(super) value: Value,
    /// True if some object in it has a duplicate name.
    pub(super) repeats: bool,
    /// True if some number in it is a float, which may differ from the written number.
    pub(super) floats: bool,
}

/// The reason why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StrictFault {
    /// A byte is not allowed at its offset.
    Syntax {
        /// Byte offset.
        at: usize,
    },
    /// The text ends too early.
    End,
    /// Nested beyond [`MAX_DEPTH`].
    TooDeep,
}

/// Parses a text that is one JSON value, optionally with white space around it.
pub(super) fn parse(text: &str) -> Result<StrictValue, StrictFault> {
    let mut notes = StrictNotes::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let node = StrictNode { room: MAX_DEPTH, notes: &mut notes };
    let outcome = node.deserialize(&mut deserializer);
    match outcome.and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => Ok(StrictValue { value, repeats: notes.repeats, floats: notes.floats }),
        Err(_) if notes.too_deep => Err(StrictFault::TooDeep),
        Err(error) if error.is_eof() => Err(StrictFault::End),
        Err(error) => Err(StrictFault::Syntax { at: offset(text, &error) }),
    }
}

/// `serde_json` counts lines and bytes within the line, both from one.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    (before + error.column().saturating_sub(1)).min(text.len())
}

#[derive(Default)]
struct StrictNotes {
    repeats: bool,
    floats: bool,
    too_deep: bool,
}

/// Builds one value; `room` is the number of levels that may still follow.
struct StrictNode<'n> {
    room: usize,
    notes: &'n mut StrictNotes,
}

impl StrictNode<'_> {
    fn inner(&mut self) -> StrictNode<'_> {
        StrictNode { room: self.room - 1, notes: self.notes }
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.notes.too_deep |= self.room == 0;
        if self.room == 0 { Err(E::custom("nested too deep")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for StrictNode<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictNode<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.notes.floats = true;
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter::<A::Error>()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.inner())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter::<A::Error>()?;
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = access.next_value_seed(self.inner())?;
            // The last value wins (S-11), in the place of the first.
            self.notes.repeats |= members.insert(name, value).is_some();
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gen_007_only_rfc_8259_passes() {
        for text in
            ["{\"a\": NaN}", "{\"a\": 1,}", "{'a': 1}", "{\"a\": 1} x", "{\"a\": 1e999}", "{\"a\": \"\n\"}"]
        {
            assert!(matches!(parse(text), Err(StrictFault::Syntax { .. })), "{text}");
        }
        assert_eq!(parse("{\"a\": \n NaN}"), Err(StrictFault::Syntax { at: 8 }));
    }

    #[test]
    fn s_11_repeated_names_are_seen_at_any_depth_and_the_last_wins() {
        let read = parse(r#"{"a": [{"b": 1, "c": 2, "b": 3}]}"#).unwrap();
        assert_eq!(
            read,
            StrictValue { value: json!({ "a": [{ "b": 3, "c": 2 }] }), repeats: true, floats: false }
        );
        assert!(!parse(r#"{"a": {"a": 1}, "b": {"a": 1}}"#).unwrap().repeats);
    }

    #[test]
    fn s_11_a_hundred_levels_are_enough() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(parse(&nested(MAX_DEPTH + 1)), Err(StrictFault::TooDeep));
        assert_eq!(parse(&"[".repeat(400_000)), Err(StrictFault::TooDeep));
    }

    #[test]
    fn s_11_whole_numbers_are_kept() {
        let text = "[18446744073709551615,-9223372036854775808,9007199254740993]";
        assert_eq!(parse(text).unwrap().value.to_string(), text);
    }

    #[test]
    fn a_text_that_ends_too_early_is_told_from_a_wrong_one() {
        for text in ["", "{", "{\"a", "{\"a\": tru", "{\"a\": [1,"] {
            assert_eq!(parse(text), Err(StrictFault::End), "{text}");
        }
    }
}
