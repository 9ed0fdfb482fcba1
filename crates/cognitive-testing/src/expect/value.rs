//! Compares JSON values and formats them for people. Numbers compare by value and texts exactly. Long texts
//! are cut around the first difference, and terminal control characters are escaped.

use std::io;

use cognitive_contract::text;
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value};

pub(crate) use cognitive_contract::json_cmp::deep_equal;

/// The most characters of a value that are shown.
const MAX_SHOWN: usize = 160;
/// The characters shown before the first difference of two long texts.
const BEFORE: usize = 40;

/// Formats the start of a value, for a message.
pub(crate) fn value_text(value: &Value) -> String {
    start(&text::escape_controls(&value.to_string()), MAX_SHOWN)
}

/// The start of a text, with an ellipsis if it was cut.
fn start(whole: &str, length: usize) -> String {
    if text::fits(whole, length) { whole.to_owned() } else { format!("{}…", text::cut(whole, length)) }
}

/// Returns whether a list contains a value.
pub(crate) fn is_one_of(values: &[Value], value: &Value) -> bool {
    values.iter().any(|each| deep_equal(each, value))
}

/// Returns whether two lists contain the same items. Duplicates count once.
pub(crate) fn same_set(left: &[Value], right: &[Value]) -> bool {
    left.iter().all(|each| is_one_of(right, each)) && right.iter().all(|each| is_one_of(left, each))
}

/// Collects every text in a value.
pub(crate) fn texts_in(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        Value::Object(members) => members.values().flat_map(texts_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Formats two different values, each cut so that the first difference is visible.
pub(crate) fn pair(expected: &Value, got: &Value) -> (String, String) {
    match (expected, got) {
        (Value::String(expected), Value::String(got)) => {
            let start = first_difference(expected, got).saturating_sub(BEFORE);
            (window(expected, start), window(got, start))
        }
        _ => (value_text(expected), value_text(got)),
    }
}

fn first_difference(left: &str, right: &str) -> usize {
    left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count()
}

/// Quotes a text: the whole text if it is short, otherwise the part from `start` on.
fn window(whole: &str, start: usize) -> String {
    let start = if text::fits(whole, MAX_SHOWN) { 0 } else { start };
    let part: String = whole.chars().skip(start).take(MAX_SHOWN).collect();
    let quoted = text::escape_controls(&Value::from(part.as_str()).to_string()).into_owned();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted);
    let before = if start > 0 { "…" } else { "" };
    let after = if whole.chars().nth(start + MAX_SHOWN).is_some() { "…" } else { "" };
    format!("\"{before}{inner}{after}\"")
}

/// The JSON text that `$json_contains` and `$json_lacks` search: on one line, with a space after every comma
/// and colon.
pub(crate) fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, SpacedFormatter));
    match written {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}

struct SpacedFormatter;

impl Formatter for SpacedFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_cut_around_the_first_difference() {
        let left = format!("{}left{}", "a".repeat(500), "z".repeat(500));
        let right = format!("{}right{}", "a".repeat(500), "z".repeat(500));
        let (expected, got) = pair(&json!(left), &json!(right));
        assert!(expected.starts_with(&format!("\"…{}left", "a".repeat(BEFORE))), "{expected}");
        assert!(got.starts_with(&format!("\"…{}right", "a".repeat(BEFORE))), "{got}");
        assert!(expected.ends_with("z…\"") && expected.chars().count() == MAX_SHOWN + 4);
        assert_eq!(pair(&json!("short"), &json!("shore")), ("\"short\"".to_owned(), "\"shore\"".to_owned()));
        assert_eq!(pair(&json!("x".repeat(300)), &json!("y")).1, "\"y\"", "a short text is shown whole");
        assert_eq!(pair(&json!("\"q\""), &json!(1)), ("\"\\\"q\\\"\"".to_owned(), "1".to_owned()));
    }

    #[test]
    fn a_terminal_has_nothing_to_obey() {
        assert!(!value_text(&json!("\u{7f}\u{9b}x\n")).contains(char::is_control));
        assert_eq!(value_text(&json!(["é"])), "[\"é\"]");
    }

    #[test]
    fn texts_have_spaces_and_messages_are_short() {
        assert_eq!(json_text(&json!({ "a": [1, "é"], "b": {} })), r#"{"a": [1, "é"], "b": {}}"#);
        assert_eq!(value_text(&json!("x".repeat(500))).chars().count(), MAX_SHOWN + 1);
    }
}
