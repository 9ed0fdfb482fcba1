//! Strict JSON parsing with a depth limit, and the position of an error.
//! Refuses everything that RFC 8259 refuses, and nesting deeper than [`MAX_DEPTH`].

use serde_json::{Map, Value};

/// A JSON syntax error and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The reason.
    pub message: String,
    /// Byte offset.
    pub offset: usize,
}

impl JsonError {
    /// Returns line and column in the text, both from 1, in characters.
    #[must_use]
    pub fn position(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }
}

/// The maximum nesting of lists and objects, which the parser itself enforces.
pub const MAX_DEPTH: usize = 127;

/// The largest object whose members are searched one by one.
const FEW_MEMBERS: usize = 12;

/// Returns a member of an object. In a small object the names are compared one by one, because hashing a name takes
/// longer than that; checks of every answer and of every event of a stream ask for dozens of members.
#[must_use]
pub fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if object.len() > FEW_MEMBERS {
        return object.get(name);
    }
    object.iter().find_map(|(known, value)| (known == name).then_some(value))
}

/// Parses a JSON text. The parser refuses nesting beyond [`MAX_DEPTH`].
pub fn parse(text: &str) -> Result<Value, JsonError> {
    serde_json::from_str(text).map_err(|error| {
        let full = error.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
        JsonError { message, offset: offset_of(text, error.line(), error.column()) }
    })
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut offset = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The number of bytes that are scanned at once. A block has no early exit, so that the compiler can vectorise its
/// scan.
const BLOCK: usize = 1 << 10;
/// The number of plain characters after which scanning in blocks pays off.
const HEAD: usize = 64;

/// Returns whether a text needs no escapes inside a JSON string. Fast for long texts.
#[must_use]
pub fn is_plain(text: &[u8]) -> bool {
    // Checks a whole block without an early exit, which the compiler can vectorise.
    let has_special = |block: &[u8]| block.iter().fold(false, |found, byte| found | is_special(*byte));
    !text.chunks(BLOCK).any(has_special)
}

/// Returns whether a byte must be escaped inside a JSON string.
#[must_use]
#[inline]
pub fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Finds the end of the JSON string whose content starts at `start`, and whether it has no escapes.
#[must_use]
pub fn end_of_string(text: &[u8], start: usize) -> Option<(usize, bool)> {
    let rest = text.get(start..)?;
    let head = rest.iter().take(HEAD).position(|byte| is_special(*byte));
    let blocks = || rest.chunks_exact(BLOCK).take_while(|block| is_plain(block)).count() * BLOCK;
    let (mut at, mut plain) = (start + head.unwrap_or_else(blocks), true);
    loop {
        at += text.get(at..)?.iter().position(|byte| is_special(*byte))?;
        match text.get(at)? {
            b'"' => return Some((at, plain)),
            b'\\' => at += 2,
            _ => at += 1,
        }
        plain = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gen_007_only_rfc_8259_is_json() {
        for wrong in ["NaN", "[1,]", "{a: 1}", "// c\n1", "'x'", "[Infinity]", "{\"a\": 01}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let error = parse("{\n  \"é\": nope\n}").unwrap_err();
        assert_eq!(
            (error.message.as_str(), &"{\n  \"é\": nope\n}"[error.offset..=error.offset]),
            ("expected ident", "o")
        );
        assert_eq!(error.position("{\n  \"é\": nope\n}"), (2, 9));
    }

    #[test]
    fn depth_ends_in_an_error() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(&nested(MAX_DEPTH)).is_ok() && parse(&nested(MAX_DEPTH + 1)).is_err());
        assert!(parse(&"[".repeat(10_000)).unwrap_err().message.contains("recursion limit"));
    }

    #[test]
    fn plain_is_what_stands_in_json_as_it_is() {
        for byte in 0..=u8::MAX {
            let text = char::from(byte).to_string();
            let written = serde_json::to_string(&text).unwrap();
            assert_eq!(is_plain(text.as_bytes()), written == format!("\"{text}\""), "{byte}");
        }
        assert!(
            is_plain("é".repeat(4096).as_bytes()) && !is_plain(format!("{}\"", "a".repeat(4096)).as_bytes())
        );
    }

    #[test]
    fn a_member_is_found_in_a_small_and_in_a_large_object() {
        for count in [0, 1, FEW_MEMBERS, FEW_MEMBERS + 1, 100] {
            let object: Map<String, Value> =
                (0..count).map(|number| (format!("m{number}"), Value::from(number))).collect();
            for number in 0..count {
                assert_eq!(member(&object, &format!("m{number}")), Some(&Value::from(number)));
            }
            assert_eq!(member(&object, "absent"), None);
        }
    }
}
