//! Detects numbers that parsing would change: integers beyond 64 bits, decimals with more digits than a float
//! keeps, and numbers out of range (D-10). Inputs and answers follow the same rule.
//! Validates no other syntax and changes nothing: the parser reports invalid JSON.

use serde::Serialize;
use serde_json::json;

use crate::code::ErrorCode;
use crate::failure::Failure;
use crate::json;
use crate::text::pointer;
use crate::violation::Violation;

/// Digits that every float keeps. A shorter number without an exponent needs no further check.
const SAFE_DIGITS: usize = 15;
/// The maximum number of findings per text. A text of a million such numbers would cause a million findings.
pub const MAX_COUNT: usize = 20;
/// The displayed length of a number.
const SHOWN: usize = 60;

/// A number whose value would change if it were parsed and written again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoundedNumber {
    /// JSON pointer to the number.
    pub path: String,
    /// The number as written, truncated if very long.
    pub written: String,
    /// True if the number is too large for a float.
    pub overflows: bool,
}

impl RoundedNumber {
    /// Returns the number at `path` if parsing would change it. `written` is in the number syntax of RFC 8259.
    #[must_use]
    pub fn detect(path: &str, written: &str) -> Option<Self> {
        let fate = number_fate(written);
        let shown = crate::text::cut(written, SHOWN);
        (fate != NumberFate::Kept).then(|| Self {
            path: path.to_owned(),
            written: shown.to_owned(),
            overflows: fate == NumberFate::Lost,
        })
    }
}

/// Returns the numbers of a JSON text that parsing would change, at most the first twenty.
#[must_use]
pub fn rounded_numbers(text: &str) -> Vec<RoundedNumber> {
    let mut walk = NumberWalk { text: text.as_bytes(), at: 0 };
    // Fast path: hardly any text has such a number, so places are computed only after a match.
    while let Some(number) = walk.next_number() {
        if number_fate(number) != NumberFate::Kept {
            return with_places(text);
        }
    }
    Vec::new()
}

/// Returns the refusal of an input with such numbers. Otherwise the model would receive other values than the
/// caller sent.
#[must_use]
pub fn refusal(text: &str) -> Option<Failure> {
    let code = ErrorCode::InvalidInput;
    let violation = |number: RoundedNumber| {
        let message = format!("a number that loses precision: {}", number.written);
        Violation::new(number.path, code, "number", message)
    };
    let found: Vec<Violation> = rounded_numbers(text).into_iter().map(violation).collect();
    let first = found.first()?;
    let message = format!("the input has {} at `{}`", first.message, first.path);
    let failure = Failure::new(code, message).with_detail("violations", json!(found));
    Some(failure.suggest("Send it as a string, which keeps every digit"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberFate {
    Kept,
    Rounded,
    Lost,
}

fn number_fate(written: &str) -> NumberFate {
    if written.len() <= SAFE_DIGITS && !written.contains(['e', 'E']) {
        return NumberFate::Kept;
    }
    if written.parse::<i64>().is_ok() || written.parse::<u64>().is_ok() {
        return NumberFate::Kept;
    }
    match written.parse::<f64>() {
        Ok(value) if value.is_infinite() => NumberFate::Lost,
        Ok(value) if decimal(written) == decimal(&format!("{value:e}")) => NumberFate::Kept,
        Ok(_) => NumberFate::Rounded,
        // Not a number; the parser reports it.
        Err(_) => NumberFate::Kept,
    }
}

/// Returns the sign, the significant digits, and the power of ten of the last digit. Two results are equal only
/// for equal values. An exponent beyond 64 bits is clamped; it is far outside every float anyway.
fn decimal(written: &str) -> (bool, String, i64) {
    let unsigned = written.strip_prefix('-').unwrap_or(written);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let saturated = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent).parse().unwrap_or(saturated);
    let fraction_digits = i64::try_from(fraction.len()).unwrap_or(i64::MAX / 4);
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let dropped = i64::try_from(digits.len() - significant.len()).unwrap_or(0);
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return (false, String::new(), 0);
    }
    (unsigned.len() < written.len(), significant.to_owned(), exponent - fraction_digits + dropped)
}

/// Iterates over the numbers of a JSON text and skips strings.
struct NumberWalk<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> NumberWalk<'a> {
    fn next_number(&mut self) -> Option<&'a str> {
        loop {
            match *self.text.get(self.at)? {
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => return self.number(),
                _ => self.at += 1,
            }
        }
    }

    /// Skips the string that starts here.
    fn string(&mut self) -> Option<()> {
        let (end, _) = json::end_of_string(self.text, self.at + 1)?;
        self.at = end + 1;
        Some(())
    }

    /// Returns the number that starts here and moves past it.
    fn number(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        let belongs = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(belongs).count();
        self.at += length;
        std::str::from_utf8(rest.get(..length)?).ok()
    }
}

/// Finds the rounded numbers of a text, with their JSON pointers.
fn with_places(text: &str) -> Vec<RoundedNumber> {
    let mut walk = NumberWalk { text: text.as_bytes(), at: 0 };
    let mut open: Vec<Level> = Vec::new();
    let mut found = Vec::new();
    while let Some(byte) = walk.text.get(walk.at).copied().filter(|_| found.len() < MAX_COUNT) {
        match byte {
            b'"' => {
                let from = walk.at;
                if walk.string().is_none() {
                    break;
                }
                if let Some(level) = open.last_mut().filter(|level| level.names) {
                    level.name = text.get(from..walk.at).and_then(|name| serde_json::from_str(name).ok());
                    level.names = false;
                }
            }
            b'-' | b'0'..=b'9' => {
                let number = walk.number().unwrap_or_default();
                found.extend(RoundedNumber::detect(&path(&open), number));
            }
            _ => {
                step(&mut open, byte);
                walk.at += 1;
            }
        }
    }
    found
}

/// An open object or list.
struct Level {
    /// True if the next string is a member name.
    names: bool,
    /// The current member of an object; `None` in a list.
    name: Option<String>,
    index: usize,
    is_object: bool,
}

fn step(open: &mut Vec<Level>, byte: u8) {
    match byte {
        b'{' | b'[' => {
            let is_object = byte == b'{';
            open.push(Level { names: is_object, name: None, index: 0, is_object });
        }
        b'}' | b']' => {
            open.pop();
        }
        b',' => {
            if let Some(level) = open.last_mut() {
                level.index += 1;
                level.names = level.is_object;
            }
        }
        _ => {}
    }
}

fn path(open: &[Level]) -> String {
    open.iter().fold(String::new(), |path, level| match &level.name {
        Some(name) if level.is_object => pointer(&path, name),
        _ => format!("{path}/{}", level.index),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_10_a_number_that_keeps_its_decimal_value_is_left_alone() {
        for number in [
            "0",
            "-0",
            "1.0",
            "1.10",
            "1e2",
            "1E+2",
            "0.93",
            "9007199254740993",
            "-9223372036854775808",
            "18446744073709551615",
            "0.30000000000000004",
            "3.141592653589793",
            "1e308",
            "5e-324",
            "1.5e300",
            "100000000000000000000",
            "1e23",
            "0.000000000000000000001",
            "0e999999999999999999999",
            "-0.0e5",
        ] {
            assert_eq!(RoundedNumber::detect("", number), None, "{number}");
        }
    }

    #[test]
    fn d_10_a_number_that_would_change_is_named() {
        for number in [
            "18446744073709551616",
            "123456789012345678901234",
            "-9223372036854775809",
            "3.14159265358979323846264338",
            "0.10000000000000000001",
            "9007199254740993.0",
            "1e-400",
            "123456789012345678e-5",
        ] {
            assert!(RoundedNumber::detect("", number).is_some_and(|found| !found.overflows), "{number}");
        }
        for number in ["1e309", "-1e400", "1e99999999999999999999", &"9".repeat(400)] {
            assert!(RoundedNumber::detect("", number).is_some_and(|found| found.overflows), "{number}");
        }
    }

    #[test]
    fn d_10_places_are_pointers() {
        let text = r#"{"a": [1, {"b/c": 123456789012345678901234}], "d": "99999999999999999999999",
                       "e": {"f": 0.5, "g": [0, [1e-500]]}, "\u0068": -1e999}"#;
        let found: Vec<_> =
            rounded_numbers(text).into_iter().map(|each| (each.path, each.overflows)).collect();
        let expected = [("/a/1/b~1c", false), ("/e/g/1/0", false), ("/h", true)];
        assert_eq!(found, expected.map(|(path, overflows)| (path.to_owned(), overflows)));
        assert!(rounded_numbers(r#"{"a": "123456789012345678901234", "b": 1.25}"#).is_empty());
        assert!(rounded_numbers(r#"["never closed 123456789012345678901234"#).len() <= 1);
        let many = format!("[{}]", vec!["123456789012345678901234"; 50].join(","));
        assert_eq!(rounded_numbers(&many).len(), MAX_COUNT);
    }
}
