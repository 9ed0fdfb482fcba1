//! Repairs surrogate pairs that a service split between frames. JSON writes a character outside the basic plane as
//! two escapes. A service that cuts its text between them sends one half at the end of a frame and the other at the
//! start of the next. Neither frame parses, because a Rust string cannot hold half a character.
//!
//! While a frame is parsed, a placeholder replaces each lone half: a private-use character of the last plane. When
//! pieces are joined, two halves become their character, and a lone half becomes U+FFFD. Only frames that fail to
//! parse are changed, so private-use characters stay unchanged until the first half arrives.

use serde_json::Value;

/// The offset from a half to its placeholder: `0xD800` becomes `U+10D800`, and so on.
const STAND_IN: u32 = 0x10_0000;
const FIRST_HALVES: std::ops::Range<u32> = 0xD800..0xDC00;
const SECOND_HALVES: std::ops::Range<u32> = 0xDC00..0xE000;

/// Returns the frame with a placeholder for each lone half; `None` if it has none.
pub(crate) fn repair_frame(frame: &str) -> Option<String> {
    let (mut text, mut rest, mut found) = (String::with_capacity(frame.len()), frame, false);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at_checked(at)?;
        text.push_str(before);
        let length = match (half(escape), half(escape.get(6..).unwrap_or_default())) {
            (Some(first), Some(second)) if pair(first, second).is_some() => 12,
            (Some(alone), _) => {
                found = true;
                text.push(stand_in(alone)?);
                rest = escape.get(6..)?;
                continue;
            }
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, after) = escape.split_at_checked(length)?;
        text.push_str(escape);
        rest = after;
    }
    text.push_str(rest);
    found.then_some(text)
}

/// Joins matching halves and replaces the others with U+FFFD.
pub(crate) fn settle(text: &mut String) {
    if !text.chars().any(is_stand_in) {
        return;
    }
    let mut settled = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let whole = letters.peek().and_then(|next| pair(code(letter)?, code(*next)?));
        if whole.is_some() {
            letters.next();
        }
        let alone = if is_stand_in(letter) { char::REPLACEMENT_CHARACTER } else { letter };
        settled.push(whole.unwrap_or(alone));
    }
    *text = settled;
}

/// Settles every text in a value.
pub(crate) fn settle_value(value: &mut Value) {
    match value {
        Value::String(text) => settle(text),
        Value::Array(items) => items.iter_mut().for_each(settle_value),
        Value::Object(members) => members.values_mut().for_each(settle_value),
        _ => {}
    }
}

/// A text that arrives in pieces, one of which may end in half a character.
#[derive(Debug, Default)]
pub(crate) struct Seam {
    held: Option<char>,
}

impl Seam {
    /// Returns the next piece, with the half withheld from the last one in front.
    pub(crate) fn join(&mut self, piece: &str) -> String {
        let mut text: String = self.held.take().into_iter().chain(piece.chars()).collect();
        let last = text.chars().next_back();
        self.held = last.filter(|last| code(*last).is_some_and(|code| FIRST_HALVES.contains(&code)));
        if self.held.is_some() {
            text.pop();
        }
        settle(&mut text);
        text
    }

    /// Returns a replacement for a half that is still withheld at the end.
    pub(crate) fn end(&mut self) -> Option<&'static str> {
        self.held.take().map(|_| "\u{fffd}")
    }
}

/// Returns the half at the start of a text, as a JSON escape.
fn half(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    (FIRST_HALVES.start..SECOND_HALVES.end).contains(&code).then_some(code)
}

fn stand_in(half: u32) -> Option<char> {
    char::from_u32(STAND_IN + half)
}

/// Returns the half that a placeholder represents.
fn code(letter: char) -> Option<u32> {
    let code = u32::from(letter).checked_sub(STAND_IN)?;
    (FIRST_HALVES.start..SECOND_HALVES.end).contains(&code).then_some(code)
}

fn is_stand_in(letter: char) -> bool {
    code(letter).is_some()
}

/// Returns the character that two halves form.
fn pair(first: u32, second: u32) -> Option<char> {
    if !FIRST_HALVES.contains(&first) || !SECOND_HALVES.contains(&second) {
        return None;
    }
    char::from_u32(0x1_0000 + ((first - FIRST_HALVES.start) << 10) + (second - SECOND_HALVES.start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(frame: &str) -> Option<String> {
        let Value::String(text) = serde_json::from_str(&repair_frame(frame)?).unwrap() else { return None };
        Some(text)
    }

    #[test]
    fn surrogate_halves_are_found_only_where_they_are_alone() {
        for whole in
            [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e9\n\"""#, r#""a\\\\ud83d\\""#, "\"\\", "\"é\\é\""]
        {
            assert_eq!(repair_frame(whole), None, "{whole}");
        }
        for (alone, settled) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00b""#, "\u{fffd}b"),
            (r#""\ud83d\n\\\"""#, "\u{fffd}\n\\\""),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ud83d\ude00\ude00""#, "😀\u{fffd}"),
            (r#""\ud83dé\u00e9""#, "\u{fffd}éé"),
        ] {
            let mut text = read(alone).unwrap();
            settle(&mut text);
            assert_eq!(text, settled, "{alone}");
        }
    }

    #[test]
    fn surrogate_halves_become_one_character_where_pieces_meet() {
        let (mut seam, mut said) = (Seam::default(), String::new());
        for frame in [r#""a\ud83d""#, r#""\ude00b\ud83d""#, r#""c""#, r#""\ude00""#, r#""d\ud83d""#] {
            said += &seam.join(&read(frame).unwrap_or_else(|| serde_json::from_str(frame).unwrap()));
        }
        said += seam.end().unwrap_or_default();
        assert_eq!(said, "a😀b\u{fffd}c\u{fffd}d\u{fffd}");
        assert_eq!(seam.end(), None);
        let mut value = json!({ "a": [format!("x{}", read(r#""\ud83d""#).unwrap())] });
        settle_value(&mut value);
        assert_eq!(value, json!({ "a": ["x\u{fffd}"] }));
    }
}
