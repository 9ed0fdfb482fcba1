//! A left-to-right reader for the small languages of composition: paths, conditions, calls.
//! Never steps back by more than one token, so every parser on top is linear. Never splits a character.

use std::ops::Range;

use crate::text::fits;

/// The longest expression, in characters. A longer one is a program, which does not belong in a manifest.
pub const MAX_EXPRESSION_LENGTH: usize = 1_000;

/// A syntax error: its position and the expected syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slip {
    /// The wrong bytes of the expression; empty at its end.
    pub span: Range<usize>,
    /// The expected syntax, without the text that was found.
    pub message: String,
}

impl Slip {
    /// An error at `span`.
    #[must_use]
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

/// Rejects an expression that is too long.
pub(super) fn within_limit(text: &str) -> Result<(), Slip> {
    if fits(text, MAX_EXPRESSION_LENGTH) {
        return Ok(());
    }
    let message = format!("expected an expression of at most {MAX_EXPRESSION_LENGTH} characters");
    Err(Slip::new(0..text.len(), message))
}

/// Returns whether a letter may be in a name: letters and digits of any script, `-` and `_`.
pub(super) fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '_')
}

/// A position in a text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at byte `at`, which must be a character boundary; otherwise the rest is empty.
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// The position of the next character.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn remainder(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.remainder().chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    /// Skips `token` if it comes next.
    pub(super) fn skip_token(&mut self, token: &str) -> bool {
        let next = self.remainder().starts_with(token);
        if next {
            self.at += token.len();
        }
        next
    }

    /// Advances by `length` bytes.
    pub(super) fn advance_by(mut self, length: usize) -> Self {
        self.at += length;
        self
    }

    pub(super) fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Takes all letters that satisfy `holds`.
    pub(super) fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'a str {
        let rest = self.remainder();
        let length = rest.find(|letter| !holds(letter)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// An error at the next character.
    pub(super) fn expected_error(&self, what: &str) -> Slip {
        let length = self.peek().map_or(0, char::len_utf8);
        Slip::new(self.at..self.at + length, format!("expected {what}"))
    }

    /// Parses a text in `'` or `"`. A backslash escapes a quote, a backslash, `n`, `r` or `t`.
    pub(super) fn parse_quoted(&mut self) -> Result<String, Slip> {
        let start = self.at;
        let Some(quote @ ('\'' | '"')) = self.peek() else {
            return Err(self.expected_error("a text between quotes"));
        };
        self.bump();
        let mut text = String::new();
        loop {
            let letter_at = self.at;
            match self.bump() {
                None => return Err(Slip::new(start..self.at, format!("expected a closing {quote}"))),
                Some(letter) if letter == quote => return Ok(text),
                Some('\\') => {
                    let escaped = self.bump().and_then(unescape);
                    let message = "expected one of `\\'`, `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t`";
                    text.push(escaped.ok_or_else(|| Slip::new(letter_at..self.at, message))?);
                }
                Some(letter) => text.push(letter),
            }
        }
    }
}

fn unescape(letter: char) -> Option<char> {
    match letter {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '\'' | '"' | '\\' => Some(letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> Result<String, Range<usize>> {
        Cursor::new(text, 0).parse_quoted().map_err(|slip| slip.span)
    }

    #[test]
    fn quotes_end_where_they_began() {
        assert_eq!(quoted("'a\"b' rest"), Ok("a\"b".to_owned()));
        assert_eq!(quoted(r#""it\"s \\ \n""#), Ok("it\"s \\ \n".to_owned()));
        assert_eq!(quoted("'日本"), Err(0..7));
        assert_eq!(quoted(r"'a\q'"), Err(2..4));
        assert_eq!(quoted("a"), Err(0..1));
        assert_eq!(quoted(""), Err(0..0));
    }

    #[test]
    fn an_expression_has_at_most_a_thousand_characters() {
        assert!(within_limit(&"é".repeat(1_000)).is_ok());
        assert!(within_limit(&"a".repeat(1_001)).is_err());
    }

    #[test]
    fn a_place_within_a_character_reads_nothing() {
        let mut cursor = Cursor::new("é", 1);
        assert_eq!((cursor.peek(), cursor.bump(), cursor.take_while(|_| true)), (None, None, ""));
    }
}
