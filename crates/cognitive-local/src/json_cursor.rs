//! Tracks the position of a writer in a JSON document, byte by byte. Assumes that the bytes are valid JSON, because a
//! grammar has allowed them; checks nothing.

use std::borrow::Cow;

/// A position in a document that is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonCursor {
    steps: Vec<CursorStep>,
    now: NextText,
    /// The missing bytes of an escape sequence.
    escape: u8,
    /// The missing bytes of a character.
    tail: u8,
    values: u32,
    /// The raw bytes of the current string.
    text: Vec<u8>,
}

#[derive(Debug, Clone)]
enum CursorStep {
    /// The raw name of the member.
    Member(Vec<u8>),
    /// The index of the item in the list, from 0.
    Item(usize),
}

/// The possible next text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NextText {
    /// A value, or the end of an empty list.
    #[default]
    Value,
    /// A member, or the end of an object.
    Member,
    /// More of a member's name.
    Name,
    /// The colon.
    Colon,
    /// More of a string.
    String,
    /// More of a number or a word, or the text after it.
    Scalar,
    /// A comma or an end.
    Next,
    /// Nothing.
    Over,
}

impl JsonCursor {
    pub(crate) fn now(&self) -> NextText {
        self.now
    }

    /// The missing bytes of an escape sequence, and of a character.
    pub(crate) fn missing_bytes(&self) -> (u8, u8) {
        (self.escape, self.tail)
    }

    /// Returns whether a value starts or continues here.
    pub(crate) fn in_value(&self) -> bool {
        matches!(self.now, NextText::Value | NextText::String | NextText::Scalar)
    }

    /// The number of values that have started, which identifies the current value.
    pub(crate) fn values(&self) -> u32 {
        self.values
    }

    /// The raw string so far, without its quotes; only while it is being written.
    pub(crate) fn raw_string(&self) -> &[u8] {
        &self.text
    }

    /// The path from the root: names of members, `None` for an item of a list.
    pub(crate) fn path(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.steps.iter().map(|step| match step {
            CursorStep::Member(name) => Some(name.as_slice()),
            CursorStep::Item(_) => None,
        })
    }

    /// The path from the root as text: raw names of members, numbers of items.
    pub(crate) fn words(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.steps.iter().map(|step| match step {
            CursorStep::Member(name) => String::from_utf8_lossy(name),
            CursorStep::Item(number) => Cow::Owned(number.to_string()),
        })
    }

    /// The number of the item that was just written, if the next text continues or ends its list.
    pub(crate) fn item(&self) -> Option<usize> {
        match self.steps.last() {
            Some(CursorStep::Item(number)) if self.now == NextText::Next => Some(*number),
            _ => None,
        }
    }

    /// Returns whether this is at or below a member of the root object.
    pub(crate) fn is_below(&self, name: &str) -> bool {
        self.path().next() == Some(Some(name.as_bytes()))
    }

    pub(crate) fn advance(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        match self.now {
            NextText::String | NextText::Name => self.text(byte),
            NextText::Value => self.value(byte),
            NextText::Member => match byte {
                b'"' => {
                    if let Some(CursorStep::Member(name)) = self.steps.last_mut() {
                        name.clear();
                    }
                    self.now = NextText::Name;
                }
                b'}' => self.close(),
                _ => {}
            },
            NextText::Colon if byte == b':' => self.expect_value(),
            NextText::Scalar if matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') => {
                self.next(byte);
            }
            NextText::Next => self.next(byte),
            _ => {}
        }
    }

    fn text(&mut self, byte: u8) {
        let in_name = self.now == NextText::Name;
        match (self.escape, byte) {
            (0, b'"') => {
                self.now = if in_name { NextText::Colon } else { NextText::Next };
                return;
            }
            (0, b'\\') => self.escape = 1,
            (0, _) => self.tail = missing_bytes_after(byte, self.tail),
            (1, b'u') => self.escape = 4,
            (left, _) => self.escape = left - 1,
        }
        match (in_name, self.steps.last_mut()) {
            (true, Some(CursorStep::Member(name))) => name.push(byte),
            _ => self.text.push(byte),
        }
    }

    fn value(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.text.clear();
                self.now = NextText::String;
            }
            b'{' => {
                self.steps.push(CursorStep::Member(Vec::new()));
                self.now = NextText::Member;
            }
            b'[' => {
                self.steps.push(CursorStep::Item(0));
                self.expect_value();
            }
            b']' => self.close(),
            b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => self.now = NextText::Scalar,
        }
    }

    fn next(&mut self, byte: u8) {
        self.now = NextText::Next;
        match (byte, self.steps.last_mut()) {
            (b',', Some(CursorStep::Item(number))) => {
                *number += 1;
                self.expect_value();
            }
            (b',', _) => self.now = NextText::Member,
            (b'}' | b']', _) => self.close(),
            _ => {}
        }
    }

    fn expect_value(&mut self) {
        self.values = self.values.wrapping_add(1);
        self.now = NextText::Value;
    }

    fn close(&mut self) {
        self.steps.pop();
        self.now = if self.steps.is_empty() { NextText::Over } else { NextText::Next };
    }
}

/// Returns the number of bytes of a character that are missing after `byte`.
fn missing_bytes_after(byte: u8, missing: u8) -> u8 {
    match byte {
        0x80..=0xBF => missing.saturating_sub(1),
        0xC0..=0xDF => 1,
        0xE0..=0xEF => 2,
        0xF0..=0xFF => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> JsonCursor {
        let mut place = JsonCursor::default();
        place.advance(text.as_bytes());
        place
    }

    fn path(place: &JsonCursor) -> String {
        place
            .path()
            .map(|step| step.map_or("#".into(), String::from_utf8_lossy))
            .collect::<Vec<_>>()
            .join("/")
    }

    #[test]
    fn the_path_leads_to_the_value_that_is_being_written() {
        assert_eq!(path(&after(r#"{"a":{"b":[1,{"c":"#)), "a/b/#/c");
        assert_eq!(path(&after(r#"{"a":{"b":[1,{"c":2}],"d":"x"#)), "a/d");
        assert!(after(r#"{"data":{"x":"#).is_below("data"));
        assert!(!after(r#"{"data":{},"meta":"#).is_below("data"));
    }

    #[test]
    fn quotes_inside_strings_end_nothing() {
        assert_eq!(after(r#"{"a":"x\""#).now(), NextText::String);
        assert_eq!(after(r#"{"a":"x\\""#).now(), NextText::Next);
        assert_eq!(after(r#"{"a":"\u00"#).missing_bytes(), (2, 0));
        assert_eq!(after(r#"{"a":"\u0022"#).now(), NextText::String);
    }

    #[test]
    fn numbers_end_at_what_follows_them() {
        assert_eq!(after(r#"{"a":12"#).now(), NextText::Scalar);
        assert_eq!(after(r#"{"a":12,"#).now(), NextText::Member);
        assert_eq!(after("[12,").now(), NextText::Value);
        assert_eq!(after(r#"{"a":[]}"#).now(), NextText::Over);
    }

    #[test]
    fn half_a_character_is_known() {
        let mut place = after(r#"{"a":"x"#);
        place.advance(&[0xE4, 0xBD]);
        assert_eq!(place.missing_bytes(), (0, 1));
    }
}
