//! Small helpers for text: lengths in Unicode code points, JSON pointers, and names of types.
//! Normalises nothing: user text is never changed.

use serde_json::Value;

/// The JSON Schema name for the type of a value. A number written without a fraction is an `integer`.
#[must_use]
pub fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The first `limit` code points of `text`. Never splits a character, adds no ellipsis.
#[must_use]
pub fn cut(text: &str, limit: usize) -> &str {
    match text.char_indices().nth(limit) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// Returns whether `text` has at most `limit` code points. Compares bytes first, since most texts are short.
#[must_use]
pub fn fits(text: &str, limit: usize) -> bool {
    text.len() <= limit || text.chars().nth(limit).is_none()
}

/// Appends one member name or index to a JSON pointer, escaped per RFC 6901.
#[must_use]
pub fn pointer(parent: &str, token: &str) -> String {
    format!("{parent}/{}", escape(token))
}

/// One member name, escaped for a JSON pointer. Most names need no change.
#[must_use]
pub fn escape(token: &str) -> std::borrow::Cow<'_, str> {
    if token.contains(['~', '/']) { token.replace('~', "~0").replace('/', "~1").into() } else { token.into() }
}
