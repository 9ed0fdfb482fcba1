//! Splits a file into YAML front matter, between two lines of hyphens, and the text below. The YAML is parsed with the
//! limits of manifests, which bound aliases and depth. A text without front matter has no keys.

use cognitive_contract::Failure;
use cognitive_library::yaml;
use serde_json::{Map, Value};

use crate::source::{literal_text, quote, refuse};

/// The two parts of a file.
#[derive(Debug)]
pub(crate) struct FrontMatter<'t> {
    /// The keys of the front matter.
    pub(crate) keys: Map<String, Value>,
    /// The text below it.
    pub(crate) body: &'t str,
    /// The line on which the body starts, from 1.
    pub(crate) line: usize,
}

/// Splits a text. Comment lines and empty lines may precede the front matter.
pub(crate) fn split<'t>(text: &'t str, file: &str) -> Result<FrontMatter<'t>, Failure> {
    let mut at = 0;
    let mut start = None;
    for (lines, line) in (1..).zip(text.split_inclusive('\n')) {
        let bare = line.trim();
        match start {
            None if bare == "---" => start = Some((at + line.len(), lines)),
            None if bare.is_empty() || bare.starts_with('#') => {}
            None => break,
            Some((from, first)) if line.trim_end() == "---" => {
                let yaml = text.get(from..at).unwrap_or_default();
                let body = text.get(at + line.len()..).unwrap_or_default();
                return Ok(FrontMatter { keys: keys(yaml, file, first)?, body, line: lines + 1 });
            }
            Some(_) => {}
        }
        at += line.len();
    }
    match start {
        Some((_, first)) => Err(refuse(
            format!("the front matter of {} begins on line {first} and is not closed", quote(file)),
            "Write a line `---` below it",
        )),
        None => Ok(FrontMatter { keys: Map::new(), body: text, line: 1 }),
    }
}

fn keys(text: &str, file: &str, first: usize) -> Result<Map<String, Value>, Failure> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let parsed = yaml::parse(text).map_err(|error| {
        let before = error.offset.and_then(|offset| text.get(..offset)).unwrap_or_default();
        let line = first + 1 + before.matches('\n').count();
        let message =
            format!("invalid YAML in the front matter of {}:{line}: {}", literal_text(file), error.message);
        refuse(message, error.hint.as_deref().unwrap_or("Correct the YAML"))
    })?;
    match parsed {
        Value::Object(keys) => Ok(keys),
        Value::Null => Ok(Map::new()),
        _ => Err(refuse(
            format!("the front matter of {} is not a map of keys", quote(file)),
            "Write it as `key: value`",
        )),
    }
}

/// The text at a key; `None` for other values.
pub(crate) fn text_of<'v>(keys: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    keys.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_found_with_their_lines() {
        let parts = split("# licence\n\n---\nname: a\n---\nBody\n---\nmore\n", "a.prompt").unwrap();
        assert_eq!(text_of(&parts.keys, "name"), Some("a"));
        assert_eq!((parts.body, parts.line), ("Body\n---\nmore\n", 6));
        let parts = split("Just text\n", "a").unwrap();
        assert_eq!((parts.keys.len(), parts.body, parts.line), (0, "Just text\n", 1));
        assert_eq!(split("---\n---\nx", "a").unwrap().body, "x");
    }

    #[test]
    fn sec_020_what_is_wrong_is_told_with_its_line() {
        let message = |text: &str| split(text, "a.prompt").unwrap_err().message().to_owned();
        assert_eq!(
            message("---\nname: a\n"),
            "the front matter of `a.prompt` begins on line 1 and is not closed"
        );
        assert!(
            message("---\na: 1\nb: 2\na: 3\n---\n").contains("a.prompt:4: "),
            "{}",
            message("---\na: 1\nb: 2\na: 3\n---\n")
        );
        assert!(message("---\n- a\n---\n").ends_with("is not a map of keys"));
        assert!(message(&format!("---\na: {}\n---\n", "[".repeat(5_000))).contains("a.prompt"));
        let bomb = format!("---\na: &a [x,x]\nb: [{}]\n---\n", vec!["*a"; 4_000].join(","));
        assert!(message(&bomb).contains("too large"), "{}", message(&bomb));
    }
}
