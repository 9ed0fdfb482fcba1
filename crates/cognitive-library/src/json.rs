//! JSON files: strict parsing with a depth limit, and where each value stands.
//! Refuses what RFC 8259 refuses, nesting beyond what any schema needs, and repeated member names.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;

use cognitive_contract::text::pointer;

/// What is wrong with a JSON text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The reason.
    pub message: String,
    /// Byte offset.
    pub offset: usize,
}

/// Parses a JSON text. Nesting beyond 128 levels is refused by the parser itself.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    serde_json::from_str(text).map_err(|error| {
        let full = error.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
        JsonError { message, offset: offset_of(text, error.line(), error.column()) }
    })
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut offset = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// JSON pointer → byte range of the value, and the pointers of members whose name was given twice.
#[derive(Debug, Default)]
pub struct JsonIndex {
    /// Byte range of each value.
    pub spans: HashMap<String, Range<usize>>,
    /// Members that occur more than once in their object; the last one counts.
    pub repeated: Vec<String>,
}

/// Finds where each value of a valid JSON text stands. Of an invalid text it finds what comes before the fault.
#[must_use]
pub fn index(text: &str) -> JsonIndex {
    let mut scanner = Scanner { text, at: 0, index: JsonIndex::default() };
    scanner.value("", 0);
    scanner.index
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    index: JsonIndex,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn value(&mut self, place: &str, depth: usize) -> Option<()> {
        self.skip_space();
        let start = self.at;
        match self.peek()? {
            b'{' if depth < 200 => self.object(place, depth)?,
            b'[' if depth < 200 => self.array(place, depth)?,
            b'{' | b'[' => return None,
            b'"' => {
                self.string()?;
            }
            _ => {
                while self
                    .peek()
                    .is_some_and(|byte| !matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
                {
                    self.at += 1;
                }
            }
        }
        self.index.spans.insert(place.to_owned(), start..self.at);
        Some(())
    }

    fn object(&mut self, place: &str, depth: usize) -> Option<()> {
        let mut names = HashSet::new();
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek()? {
                b'}' => break,
                b',' => self.at += 1,
                b'"' => {
                    let name = self.string()?;
                    let member = pointer(place, &name);
                    self.skip_space();
                    (self.peek()? == b':').then_some(())?;
                    self.at += 1;
                    self.value(&member, depth + 1)?;
                    if !names.insert(name) {
                        self.index.repeated.push(member);
                    }
                }
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }

    fn array(&mut self, place: &str, depth: usize) -> Option<()> {
        let mut position = 0_usize;
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek()? {
                b']' => break,
                b',' => self.at += 1,
                _ => {
                    self.value(&format!("{place}/{position}"), depth + 1)?;
                    position += 1;
                }
            }
        }
        self.at += 1;
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gen_007_only_rfc_8259_is_json() {
        for wrong in ["NaN", "[1,]", "{a: 1}", "// c\n1", "'x'", "[Infinity]", "{\"a\": 01}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let error = parse("{\n  \"é\": nope\n}").unwrap_err();
        assert_eq!(
            (error.message.as_str(), &"{\n  \"é\": nope\n}"[error.offset..=error.offset]),
            ("expected ident", "o")
        );
    }

    #[test]
    fn depth_ends_in_an_error() {
        assert!(parse(&"[".repeat(10_000)).unwrap_err().message.contains("recursion limit"));
        assert!(index(&"[".repeat(10_000)).spans.is_empty());
    }

    #[test]
    fn places_are_byte_ranges_and_repeats_are_seen() {
        let text = r#"{"a": [1, {"b\n/": "é"}], "a": true, "n": -1.5e3 }"#;
        let index = index(text);
        assert_eq!(&text[index.spans["/a/1/b\n~1"].clone()], "\"é\"");
        assert_eq!(&text[index.spans["/a"].clone()], "true");
        assert_eq!(&text[index.spans["/n"].clone()], "-1.5e3");
        assert_eq!(index.repeated, ["/a"]);
    }

    #[test]
    fn the_index_knows_exactly_the_places_of_the_parsed_value() {
        let text = r#"{"x":{"y":[[],{}]},"z":"\"}","w":null}"#;
        let value = parse(text).unwrap();
        for (place, span) in index(text).spans {
            assert_eq!(&parse(&text[span]).unwrap(), value.pointer(&place).unwrap());
        }
    }
}
