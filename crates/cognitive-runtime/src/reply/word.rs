//! The words of the grammar: bare names, numbers, literals, and blanks that JSON does not know. Reads them as RFC 8259 or
//! Python writes them, and nothing else: `1.`, `0x1F`, `TRUE` are none.

use super::event::JsonEvent;

/// The white space beyond that of JSON with which a text starts. Between two tokens it has one reading.
pub(super) fn other_blank(text: &str) -> Option<char> {
    text.chars().next().filter(|c| !c.is_ascii() && c.is_whitespace())
}

/// Whether a text starts with a name without quotes: a letter, `_` or `$`.
pub(super) fn starts_bare_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
}

/// Bytes that belong to a bare name: also digits and hyphens.
pub(super) fn bare_name_length(text: &str) -> usize {
    let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
    text.find(|c: char| !belongs(c)).unwrap_or(text.len())
}

/// Whether a byte can start a value other than a string, which makes JSON of a bare first name.
pub(super) fn starts_value(byte: u8) -> bool {
    matches!(byte, b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'T' | b'F' | b'N')
}

/// Whether a byte may be part of a number.
pub(super) fn is_in_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Bytes of the number with which a text starts, exactly as RFC 8259 writes it; the error is where a digit is missing.
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

/// Whether a byte may be part of a literal, or of a word that is none.
pub(super) fn is_in_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What a literal means, and whether it is one of Python's. Not `NaN`, not `undefined`, not a word.
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
