//! The words of the grammar: bare names, numbers, literals, and blanks unknown to JSON. Accepts only the forms of RFC
//! 8259 and Python: `1.`, `0x1F` and `TRUE` are refused.

use super::event::JsonEvent;

/// Returns the non-JSON white space with which a text starts. Between two tokens it has one reading.
pub(super) fn unicode_blank(text: &str) -> Option<char> {
    text.chars().next().filter(|c| !c.is_ascii() && c.is_whitespace())
}

/// Returns whether a text starts with a name without quotes: a letter, `_` or `$`.
pub(super) fn starts_bare_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
}

/// Returns the length in bytes of a bare name, which may contain digits and hyphens.
pub(super) fn bare_name_length(text: &str) -> usize {
    let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
    text.find(|c: char| !belongs(c)).unwrap_or(text.len())
}

/// Returns whether a byte can start a value other than a string. Such a value makes a bare first name JSON.
pub(super) fn starts_value(byte: u8) -> bool {
    matches!(byte, b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'T' | b'F' | b'N')
}

/// Returns whether a byte may be part of a number.
pub(super) fn is_in_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the length in bytes of the leading RFC 8259 number; the error is the offset of a missing digit.
pub(super) fn number_length(text: &str) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 { Err(from) } else { Ok(from + count) }
    };
    let mut at = usize::from(is(0, b"-"));
    at = if is(at, b"0") { at + 1 } else { digits(at)? };
    if is(at, b".") {
        at = digits(at + 1)?;
    }
    if is(at, b"eE") {
        at += 1;
        at = digits(at + usize::from(is(at, b"+-")))?;
    }
    Ok(at)
}

/// Returns whether a byte may be part of a literal, or of an unknown word.
pub(super) fn is_in_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the event of a literal, and whether it is one of Python's. Refuses `NaN`, `undefined` and other words.
pub(super) fn literal(word: &str) -> Option<(JsonEvent<'static>, bool)> {
    Some(match word {
        "true" => (JsonEvent::Bool(true), false),
        "false" => (JsonEvent::Bool(false), false),
        "null" => (JsonEvent::Null, false),
        "True" => (JsonEvent::Bool(true), true),
        "False" => (JsonEvent::Bool(false), true),
        "None" => (JsonEvent::Null, true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_rfc_8259() {
        for (text, length) in [("0", 1), ("-12.5e+3,", 8), ("01", 1), ("1-2", 1), ("1e9x", 3)] {
            assert_eq!(number_length(text), Ok(length), "{text}");
        }
        for (text, at) in [("-", 1), ("1.", 2), ("1.e5", 2), ("1e+", 3), ("--1", 1)] {
            assert_eq!(number_length(text), Err(at), "{text}");
        }
    }
}
