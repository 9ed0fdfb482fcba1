//! Strict JSON parsing with a depth limit, and the position of an error.
//! Refuses everything that RFC 8259 refuses, and nesting deeper than [`MAX_DEPTH`].

use serde_json::Value;

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
}
