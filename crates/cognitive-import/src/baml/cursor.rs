//! Reads BAML character by character: words, quoted strings, raw strings, comments and balanced braces. Never moves
//! back, and limits the nesting depth.

use std::cell::Cell;

use cognitive_contract::Failure;
use serde_json::{Map, Number, Value};

use crate::source::refuse;

/// The maximum nesting of values. Deeper ones would overflow the stack of the parser.
const MAX_DEPTH: usize = 40;

/// A position in a file.
#[derive(Debug)]
pub(super) struct BamlCursor<'t> {
    text: &'t str,
    at: usize,
    file: &'t str,
    /// The position up to which lines were counted, and their number.
    counted: Cell<(usize, usize)>,
    /// The number of comments so far.
    pub(super) comments: usize,
    /// The text of the comments directly before this position, for the next declaration.
    pub(super) note: String,
}

impl<'t> BamlCursor<'t> {
    pub(super) fn new(text: &'t str, file: &'t str) -> Self {
        Self { text, at: 0, file, counted: Cell::new((0, 1)), comments: 0, note: String::new() }
    }

    fn remainder(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn is_done(&self) -> bool {
        self.remainder().is_empty()
    }

    /// The line of this position, from 1.
    pub(super) fn line(&self) -> usize {
        let (from, lines) = self.counted.get();
        let between = self.text.get(from..self.at).unwrap_or_default();
        let lines = lines + between.matches('\n').count();
        self.counted.set((self.at, lines));
        lines
    }

    pub(super) fn error(&self, what: &str) -> Failure {
        refuse(
            format!("{}:{}: {what}", self.file, self.line()),
            "Correct the file, or import a function that BAML accepts",
        )
    }

    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.file, self.line())
    }

    /// Skips whitespace and comments.
    pub(super) fn skip(&mut self) {
        self.note.clear();
        loop {
            let rest = self.remainder();
            let space = rest.len() - rest.trim_start().len();
            self.at += space;
            let rest = self.remainder();
            if rest.starts_with("//") {
                let end = rest.find('\n').unwrap_or(rest.len());
                let said = rest.get(..end).unwrap_or_default().trim_start_matches('/').trim();
                if !self.note.is_empty() {
                    self.note.push(' ');
                }
                self.note.push_str(said);
                self.at += end;
                self.comments += 1;
            } else if rest.starts_with("{//") {
                let end = rest.find("//}").map_or(rest.len(), |end| end + 3);
                self.at += end;
                self.comments += 1;
            } else if space == 0 {
                return;
            }
        }
    }

    /// Skips whitespace within the line.
    fn skip_on_line(&mut self) {
        let rest = self.remainder();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// Returns whether `text` comes next, after whitespace.
    pub(super) fn starts_with(&mut self, text: &str) -> bool {
        self.skip();
        self.remainder().starts_with(text)
    }

    /// Consumes `text` if it comes next, after whitespace.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let sees = self.starts_with(text);
        if sees {
            self.at += text.len();
        }
        sees
    }

    /// Consumes `text` if it comes next without whitespace.
    pub(super) fn takes_at_once(&mut self, text: &str) -> bool {
        let sees = self.remainder().starts_with(text);
        if sees {
            self.at += text.len();
        }
        sees
    }

    pub(super) fn needs(&mut self, text: &str) -> Result<(), Failure> {
        if self.takes(text) { Ok(()) } else { Err(self.error(&format!("expected `{text}`"))) }
    }

    /// Reads a word, after whitespace: letters, digits, `_`, `-` and dots between them.
    pub(super) fn word(&mut self) -> Option<&'t str> {
        self.skip();
        let rest = self.remainder();
        if !rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            return None;
        }
        let end = rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')))
            .unwrap_or(rest.len());
        // `a->b` is a word and an arrow.
        let end = rest.get(..end).map_or(end, |word| word.trim_end_matches(['-', '.']).len());
        self.at += end;
        rest.get(..end)
    }

    pub(super) fn needs_word(&mut self, what: &str) -> Result<&'t str, Failure> {
        self.word().ok_or_else(|| self.error(&format!("expected {what}")))
    }

    /// Reads a quoted or raw string, after whitespace, with the line on which it starts.
    pub(super) fn text(&mut self) -> Result<Option<(String, usize)>, Failure> {
        self.skip();
        let rest = self.remainder();
        let marks = rest.len() - rest.trim_start_matches('#').len();
        if marks > 0 && rest.get(marks..).is_some_and(|rest| rest.starts_with('"')) {
            let line = self.line();
            let close = format!("\"{}", "#".repeat(marks));
            let inner = rest.get(marks + 1..).unwrap_or_default();
            let end = inner.find(&close).ok_or_else(|| self.error("unterminated text"))?;
            self.at += marks + 1 + end + close.len();
            return Ok(Some((dedent(inner.get(..end).unwrap_or_default()), line)));
        }
        if rest.starts_with('"') { self.quoted_string().map(Some) } else { Ok(None) }
    }

    fn quoted_string(&mut self) -> Result<(String, usize), Failure> {
        let line = self.line();
        let mut text = String::new();
        let mut escaped = false;
        for (offset, letter) in self.remainder().char_indices().skip(1) {
            match (std::mem::take(&mut escaped), letter) {
                (true, 'n') => text.push('\n'),
                (true, 't') => text.push('\t'),
                (false, '\\') => escaped = true,
                (false, '"') => {
                    self.at += offset + 1;
                    return Ok((text, line));
                }
                (_, other) => text.push(other),
            }
        }
        Err(self.error("unterminated text"))
    }

    /// Reads the name of a client: a string, or everything up to the next whitespace.
    pub(super) fn client(&mut self) -> Result<String, Failure> {
        if let Some((name, _)) = self.text()? {
            return Ok(name);
        }
        let rest = self.remainder();
        let name =
            rest.split(|letter: char| letter.is_whitespace() || letter == '}').next().unwrap_or_default();
        if name.is_empty() {
            return Err(self.error("expected the name of a client"));
        }
        self.at += name.len();
        Ok(name.to_owned())
    }

    /// Reads up to the matching `close`, skipping strings and comments. `open` is already consumed.
    pub(super) fn balanced_text(&mut self, open: char, close: char) -> Result<&'t str, Failure> {
        let start = self.at;
        let mut depth = 1_usize;
        loop {
            let rest = self.remainder();
            let Some(letter) = rest.chars().next() else {
                return Err(self.error(&format!("expected `{close}`")));
            };
            if letter == '"' || (letter == '#' && rest.trim_start_matches('#').starts_with('"')) {
                self.text()?;
                continue;
            }
            if rest.starts_with("//") && open == '{' {
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            self.at += letter.len_utf8();
            if letter == open {
                depth += 1;
            } else if letter == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(self.text.get(start..self.at - close.len_utf8()).unwrap_or_default());
                }
            }
        }
    }

    /// Reads a test value: an object, an array, a string, a number or bare words up to the end of the line.
    pub(super) fn value(&mut self, depth: usize) -> Result<Value, Failure> {
        if depth > MAX_DEPTH {
            return Err(self.error("values are nested too deeply"));
        }
        if let Some((text, _)) = self.text()? {
            return Ok(Value::String(text));
        }
        if self.takes("{{") {
            self.balanced_text('{', '}')?;
            self.takes("}");
            return Ok(Value::Null);
        }
        if self.takes("{") {
            return self.object(depth).map(Value::Object);
        }
        if self.takes("[") {
            let mut items = Vec::new();
            while !self.takes("]") {
                items.push(self.value(depth + 1)?);
                self.takes(",");
            }
            return Ok(Value::Array(items));
        }
        self.bare_value()
    }

    /// Reads the members of an object whose opening brace is already consumed.
    pub(super) fn object(&mut self, depth: usize) -> Result<Map<String, Value>, Failure> {
        let mut members = Map::new();
        while !self.takes("}") {
            let name = match self.text()? {
                Some((name, _)) => name,
                None => self.needs_word("the name of a value")?.to_owned(),
            };
            self.takes(":");
            self.skip_on_line();
            members.insert(name, self.value(depth + 1)?);
            self.takes(",");
        }
        Ok(members)
    }

    fn bare_value(&mut self) -> Result<Value, Failure> {
        let rest = self.remainder();
        let end = rest.find(['\n', ',', ']', '}', '{', '[', '"']).unwrap_or(rest.len());
        let line = rest.get(..end).unwrap_or_default();
        let line = line.split(" //").next().unwrap_or(line);
        let word = line.trim();
        if word.is_empty() {
            return Err(self.error("expected a value"));
        }
        self.at += line.len();
        Ok(match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => word
                .parse::<i64>()
                .map(Value::from)
                .ok()
                .or_else(|| word.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number))
                .unwrap_or_else(|| Value::from(word)),
        })
    }
}

/// A raw string without the indentation that all its lines share.
fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let least = text.lines().skip(1).filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let mut lines = text.lines();
    let mut all = vec![lines.next().unwrap_or_default()];
    all.extend(lines.map(|line| line.get(least..).unwrap_or_default()));
    let joined = all.join("\n");
    joined.trim_start_matches('\n').trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_tests_are_read() {
        let text = "{ a \"x\\\"y\" // note\n b 3\n c [1, 2.5, true]\n d { e word with spaces\n f #\"\n    raw\n      text\n  \"# }\n }";
        let mut cursor = BamlCursor::new(text, "f");
        let value = cursor.value(0).unwrap();
        assert_eq!(
            value,
            json!({ "a": "x\"y", "b": 3, "c": [1, 2.5, true], "d": { "e": "word with spaces", "f": "raw\n  text" } })
        );
    }

    #[test]
    fn nothing_goes_too_deep_or_has_no_end() {
        let refused = |text: &str| BamlCursor::new(text, "f").value(0).unwrap_err().message().to_owned();
        assert_eq!(refused(&"[".repeat(100_000)), "f:1: values are nested too deeply");
        assert_eq!(refused("\n\"abc"), "f:2: unterminated text");
        assert_eq!(refused("##\"abc\"#"), "f:1: unterminated text");
        assert_eq!(refused("[a"), "f:1: expected a value");
        assert!(BamlCursor::new("a { b", "f").balanced_text('{', '}').is_err());
    }

    #[test]
    fn words_end_where_they_should() {
        let mut cursor = BamlCursor::new(" // n\n a.b-c->d ", "f");
        assert_eq!(cursor.word(), Some("a.b-c"));
        assert!(cursor.takes("->"));
        assert_eq!((cursor.word(), cursor.comments), (Some("d"), 1));
    }
}
