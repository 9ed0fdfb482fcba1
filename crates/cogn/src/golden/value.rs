//! JSON values as expectations compare them and as people read them: numbers by value, long texts cut around the
//! place where they differ, and nothing in them that a terminal would obey.

use std::fmt::Write as _;

use cognitive_contract::text;
use serde_json::Value;

pub(super) use cognitive_contract::equal::same;

/// How much of a value is shown.
const SHOWN: usize = 160;
/// How much is shown before the first difference of two long texts.
const BEFORE: usize = 40;

/// The start of a value, for a message.
pub(crate) fn shown(value: &Value) -> String {
    let whole = plain(&value.to_string());
    if text::fits(&whole, SHOWN) { whole } else { format!("{}…", text::cut(&whole, SHOWN)) }
}

/// Two values that differ, each cut so that the first difference is visible.
pub(super) fn pair(expected: &Value, got: &Value) -> (String, String) {
    match (expected, got) {
        (Value::String(expected), Value::String(got)) => {
            let start = first_difference(expected, got).saturating_sub(BEFORE);
            (window(expected, start), window(got, start))
        }
        _ => (shown(expected), shown(got)),
    }
}

fn first_difference(left: &str, right: &str) -> usize {
    left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count()
}

/// A text in quotes: whole if it is short, otherwise the part from `start` on.
fn window(whole: &str, start: usize) -> String {
    let start = if text::fits(whole, SHOWN) { 0 } else { start };
    let part: String = whole.chars().skip(start).take(SHOWN).collect();
    let quoted = plain(&Value::from(part.as_str()).to_string());
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted);
    let before = if start > 0 { "…" } else { "" };
    let after = if whole.chars().nth(start + SHOWN).is_some() { "…" } else { "" };
    format!("\"{before}{inner}{after}\"")
}

/// A text for a line of a terminal: control characters, and those that turn the direction, are written out.
pub(crate) fn plain(text: &str) -> String {
    let obeyed =
        |each: char| each.is_control() || matches!(each, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(obeyed) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut plain, each| {
        if obeyed(each) {
            let _never_fails = write!(plain, "\\u{:04x}", u32::from(each));
        } else {
            plain.push(each);
        }
        plain
    })
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
        assert!(expected.ends_with("z…\"") && expected.chars().count() == SHOWN + 4);
        assert_eq!(pair(&json!("short"), &json!("shore")), ("\"short\"".to_owned(), "\"shore\"".to_owned()));
        assert_eq!(pair(&json!("x".repeat(300)), &json!("y")).1, "\"y\"", "a short text is shown whole");
        assert_eq!(pair(&json!("\"q\""), &json!(1)), ("\"\\\"q\\\"\"".to_owned(), "1".to_owned()));
    }

    #[test]
    fn a_terminal_has_nothing_to_obey() {
        assert_eq!(plain("a\u{1b}[31mb\u{9b}c\u{202e}d"), "a\\u001b[31mb\\u009bc\\u202ed");
        assert!(!shown(&json!("\u{7f}\u{9b}x\n")).contains(char::is_control));
        assert_eq!(shown(&json!(["é"])), "[\"é\"]");
    }
}
