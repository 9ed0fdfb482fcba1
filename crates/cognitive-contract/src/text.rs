//! Shared text helpers: lengths in Unicode code points, JSON pointers, hexadecimal digits.
//! Normalises nothing: user text stays as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

pub use cognitive_schema::text::{cut, escape, fits, pointer, type_word};

/// Converts bytes into lower-case hexadecimal digits.
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

/// Returns whether a text can be a module name. Paths are excluded, so that remote callers cannot reach other
/// folders.
#[must_use]
pub fn is_plain_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.len() <= 128 && text.bytes().all(plain)
}

/// Returns whether a text is an RFC 3339 timestamp, such as `2027-01-15T09:00:00Z`: an existing day, a time and
/// an offset.
#[must_use]
pub fn is_moment(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok())?
    };
    let at =
        |place: usize, wanted: &[u8]| text.as_bytes().get(place).is_some_and(|byte| wanted.contains(byte));
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let days = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let marks = at(4, b"-") && at(7, b"-") && at(10, b"Tt ") && at(13, b":") && at(16, b":");
    let (Some(hour), Some(minute), Some(second)) = (number(11..13), number(14..16), number(17..19)) else {
        return false;
    };
    let rest = text.get(19..).unwrap_or_default();
    let fraction =
        rest.strip_prefix('.').map(|rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    let offset = match fraction {
        Some(offset) if rest.len() - offset.len() > 1 => offset,
        Some(_) => return false,
        None => rest,
    };
    // Second 60 is a leap second.
    marks && (1..=days).contains(&day) && hour < 24 && minute < 60 && second <= 60 && is_offset(offset)
}

fn is_offset(text: &str) -> bool {
    let two = |range: std::ops::Range<usize>, below: u32| {
        text.get(range).is_some_and(|digits| {
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && digits.parse::<u32>().is_ok_and(|it| it < below)
        })
    };
    let is_far =
        || text.starts_with(['+', '-']) && two(1..3, 24) && text.get(3..4) == Some(":") && two(4..6, 60);
    text.eq_ignore_ascii_case("z") || (text.len() == 6 && is_far())
}

/// Returns whether a character can affect a terminal: control characters and bidirectional overrides.
#[must_use]
pub fn acts_on_terminal(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes every character that would affect a terminal, such as `\u001b`.
#[must_use]
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_terminal) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::with_capacity(text.len()), |mut plain, each| {
        if acts_on_terminal(each) {
            let _never_fails = write!(plain, "\\u{:04x}", u32::from(each));
        } else {
            plain.push(each);
        }
        plain
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // MEDIA-019
    #[test]
    fn a_terminal_has_nothing_to_obey() {
        assert_eq!(escape_controls("a\u{1b}[31mb\u{9b}c\u{202e}d"), "a\\u001b[31mb\\u009bc\\u202ed");
        assert_eq!(escape_controls("é"), "é");
    }

    #[test]
    fn media_019_a_moment_is_a_day_that_exists_a_time_and_an_offset() {
        for good in ["2027-01-15T09:00:00Z", "2024-02-29t23:59:60.125+05:30", "0000-12-31T00:00:00-00:00"] {
            assert!(is_moment(good), "{good}");
        }
        for bad in [
            "",
            "tomorrow",
            "2027-01-15",
            "2027-01-15T09:00:00",
            "2025-02-29T00:00:00Z",
            "2027-13-01T00:00:00Z",
            "2027-01-00T00:00:00Z",
            "2027-01-15T24:00:00Z",
            "2027-01-15T09:00:00.Z",
            "2027-01-15T09:00:00Zx",
            "2027-01-15T09:00:00+5:30",
            "2027-01-15T09:00:00+24:00",
            "+027-01-15T09:00:00Z",
            "２027-01-15T09:00:00Z",
        ] {
            assert!(!is_moment(bad), "{bad}");
        }
    }

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
