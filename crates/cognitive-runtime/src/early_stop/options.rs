//! Closed lists and bounds: the declared values that a text can still become, and the numbers that are out of range.
//! Compares declared values as repair does: case and outer white space do not count. Buffers no more of the text than
//! a declared value has.

use cognitive_schema::prefix::{ValueRules, is_exact, kind};
use serde_json::Value;

/// The message for a value outside a closed list.
pub(super) const NOT_DECLARED: &str = "expected one of the declared values";

/// The limit of buffered white space, which is kept because more text may follow. No declared value has this much.
const MAX_BLANKS: usize = 4_096;

/// Returns whether a list has a value of one of these kinds.
pub(super) fn admits(options: &[Value], kinds: u8) -> bool {
    options.iter().any(|option| {
        let own = match option {
            Value::Null => kind::NULL,
            Value::Bool(_) => kind::BOOLEAN,
            Value::Number(_) => kind::NUMBER | kind::INTEGER,
            Value::String(_) => kind::STRING,
            Value::Array(_) => kind::ARRAY,
            Value::Object(_) => kind::OBJECT,
        };
        own & kinds != 0
    })
}

/// A rule about numbers: its name, its wording, the bound if there is one, and the test that finds a violation.
type NumberRule = (&'static str, &'static str, Option<f64>, fn(f64, f64) -> bool);

/// The rule that a number breaks, with the expectation. A number that floats round is not judged.
pub(super) fn number_fault(node: &ValueRules, value: f64) -> Option<(&'static str, String)> {
    if !is_exact(value) {
        return None;
    }
    let rules: [NumberRule; 4] = [
        ("minimum", "at least", node.minimum, |value, bound| value < bound),
        ("maximum", "at most", node.maximum, |value, bound| value > bound),
        ("exclusiveMinimum", "more than", node.above, |value, bound| value <= bound),
        ("exclusiveMaximum", "less than", node.below, |value, bound| value >= bound),
    ];
    for (rule, words, bound, breaks) in rules {
        if let Some(bound) = bound.filter(|bound| breaks(value, *bound)) {
            return Some((rule, format!("expected {words} {bound}")));
        }
    }
    let is_same =
        |option: &Value| option.as_f64().is_some_and(|option| (option - value).abs() < f64::EPSILON);
    let listed = node.options.as_ref().is_none_or(|options| options.iter().any(is_same));
    (!listed).then(|| ("enum", NOT_DECLARED.to_owned()))
}

/// A text that has to become one of some declared values, which are given trimmed and in lower case.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    /// The text so far in the same form, without trailing white space.
    text: String,
    /// The white space after it.
    blanks: String,
}

impl Spelling {
    /// Starts another text.
    pub(super) fn start(&mut self) {
        self.text.clear();
        self.blanks.clear();
    }

    /// Takes more text. The error is the number of bytes after the character that fits no declared value.
    pub(super) fn push(&mut self, piece: &str, declared: &[Box<str>]) -> Result<(), usize> {
        for (index, letter) in piece.char_indices() {
            if letter.is_whitespace() {
                // Leading blanks do not count; later ones may be trailing or a part of the value.
                if !self.text.is_empty() && self.blanks.len() < MAX_BLANKS {
                    self.blanks.push(letter);
                }
                continue;
            }
            self.text.push_str(&self.blanks);
            self.blanks.clear();
            self.text.push(letter.to_ascii_lowercase());
            if !declared.iter().any(|each| each.starts_with(&self.text)) {
                return Err(piece.len() - index - letter.len_utf8());
            }
        }
        Ok(())
    }

    /// Returns whether the text is a declared value if it ends here.
    pub(super) fn may_end(&self, declared: &[Box<str>]) -> bool {
        declared.iter().any(|each| **each == *self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> (Result<(), usize>, bool) {
        let declared = ["low", "very high", "none"].map(Box::from);
        let mut spelling = Spelling::default();
        (spelling.push(text, &declared), spelling.may_end(&declared))
    }

    #[test]
    fn repair_004_005_spelling_does_not_count_and_other_words_do() {
        for text in ["low", " LOW \n", "Very high", "none", " None "] {
            assert_eq!(outcome(text), (Ok(()), true), "{text}");
        }
        for text in ["", "  ", "lo", "very ", "very h"] {
            assert_eq!(outcome(text), (Ok(()), false), "{text}");
        }
        assert_eq!(outcome("log x").0, Err(2));
        assert_eq!(outcome("low x").0, Err(0));
        assert_eq!(outcome("very  high").0, Err(3));
    }
}
