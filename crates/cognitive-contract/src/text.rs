//! Small text rules that several laws share: lengths in Unicode code points, JSON pointers, hexadecimal digits.
//! Normalises nothing: user text stays as it is.

/// The first `limit` code points of `text`. Never splits a character, adds no ellipsis.
#[must_use]
pub fn cut(text: &str, limit: usize) -> &str {
    match text.char_indices().nth(limit) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// Whether `text` has at most `limit` code points. Looks at bytes first, since most texts are short.
#[must_use]
pub fn fits(text: &str, limit: usize) -> bool {
    text.len() <= limit || text.chars().nth(limit).is_none()
}

/// Appends one member name or index to a JSON pointer, escaped as RFC 6901 asks.
#[must_use]
pub fn pointer(parent: &str, token: &str) -> String {
    format!("{parent}/{}", escaped(token))
}

/// One member name as it stands in a JSON pointer. Most names stand there as they are.
#[must_use]
pub fn escaped(token: &str) -> std::borrow::Cow<'_, str> {
    if token.contains(['~', '/']) { token.replace('~', "~0").replace('/', "~1").into() } else { token.into() }
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(nibble + if nibble < 10 { b'0' } else { b'a' - 10 });
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_005_lengths_are_code_points() {
        assert_eq!(cut("a😀b", 2), "a😀");
        assert_eq!(cut("ab", 5), "ab");
        assert!(fits(&"😀".repeat(280), 280));
        assert!(!fits(&"😀".repeat(281), 280));
    }

    #[test]
    fn pointers_escape_slash_and_tilde() {
        assert_eq!(pointer("/a", "b/c~d"), "/a/b~1c~0d");
    }
}
