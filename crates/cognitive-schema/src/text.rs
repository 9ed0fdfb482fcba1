//! Small rules about text: lengths in Unicode code points, and JSON pointers.
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

/// One member name as it is written in a JSON pointer. Most names need no change.
#[must_use]
pub fn escaped(token: &str) -> std::borrow::Cow<'_, str> {
    if token.contains(['~', '/']) { token.replace('~', "~0").replace('/', "~1").into() } else { token.into() }
}
