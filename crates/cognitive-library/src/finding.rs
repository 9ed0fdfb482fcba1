//! Something to say about a module folder: where, what, and what to do about it.
//! Says nothing on its own; `cogn validate` draws findings, loading turns them into one failure.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use crate::{json, yaml};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the module is valid.
    Warning,
    /// The module is not valid.
    Error,
}

/// A place in a file of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The file as a whole, also when it is missing.
    File,
    /// A value, by JSON pointer; a missing value is shown at its nearest parent.
    Value(String),
    /// A byte offset, where the text could not be parsed.
    Offset(usize),
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Module-relative path.
    pub file: String,
    /// The place in that file.
    pub at: At,
    /// A stable name for the rule, such as `manifest/closed-list`.
    pub rule: &'static str,
    /// What is wrong and what was expected.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Finding {
    /// A finding that makes the module invalid.
    #[must_use]
    pub fn error(file: &str, at: At, rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: file.to_owned(),
            at,
            rule,
            message: message.into(),
            hint: None,
        }
    }

    /// A finding that does not.
    #[must_use]
    pub fn warning(file: &str, at: At, rule: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, at, rule, message) }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Path, place and message on one line.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.at {
            At::Value(pointer) if !pointer.is_empty() => {
                format!("{}: `{pointer}`: {}", self.file, self.message)
            }
            _ => format!("{}: {}", self.file, self.message),
        }
    }
}

/// The texts that findings point into.
#[derive(Debug, Default, Clone)]
pub struct Sources(BTreeMap<String, String>);

/// A place as people count it, and as a renderer wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Location {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Byte range in the text.
    #[serde(skip)]
    pub range: Range<usize>,
}

impl Sources {
    /// Keeps the text of a file.
    pub fn insert(&mut self, file: &str, text: String) {
        self.0.insert(file.to_owned(), text);
    }

    /// The text of a file.
    #[must_use]
    pub fn get(&self, file: &str) -> Option<&str> {
        self.0.get(file).map(String::as_str)
    }

    /// All files with their texts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(file, text)| (file.as_str(), text.as_str()))
    }

    /// Where a finding points to, if its file has a text.
    #[must_use]
    pub fn locate(&self, finding: &Finding) -> Option<Location> {
        let text = self.get(&finding.file)?;
        let range = match &finding.at {
            At::File => return None,
            At::Offset(offset) => {
                let start = (*offset).min(text.len());
                let width = text.get(start..)?.chars().next().map_or(0, char::len_utf8);
                start..start + width
            }
            At::Value(pointer) => value_range(&finding.file, text, pointer)?,
        };
        let before = text.get(..range.start)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Some(Location {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..)?.chars().count() + 1,
            range,
        })
    }
}

fn value_range(file: &str, text: &str, pointer: &str) -> Option<Range<usize>> {
    let is_yaml = [".yaml", ".yml", ".md"].iter().any(|ending| file.ends_with(ending));
    let (shift, spans) = if is_yaml {
        let (front, start) = crate::formats::front_matter_text(file, text);
        (start, yaml::spans(front))
    } else {
        (0, json::index(text).spans)
    };
    let mut place = pointer;
    loop {
        if let Some(span) = spans.get(place) {
            let range = span.start + shift..span.end + shift;
            // A parent stands in for a missing member: its first line is enough to find the place.
            let shown = text.get(range.clone())?;
            let first_line = shown.find('\n').filter(|_| place.len() < pointer.len() || shown.len() > 200);
            return Some(range.start..first_line.map_or(range.end, |at| range.start + at));
        }
        place = place.rsplit_once('/')?.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, text: &str, place: At) -> (usize, usize, String) {
        let mut sources = Sources::default();
        sources.insert(file, text.to_owned());
        let location = sources.locate(&Finding::error(file, place, "r", "m")).unwrap();
        (location.line, location.column, text[location.range].to_owned())
    }

    #[test]
    fn values_missing_members_and_offsets_are_found() {
        let yaml = "name: a\noverflow:\n  max_items: 21\n";
        assert_eq!(at("module.yaml", yaml, At::Value("/overflow/max_items".into())), (3, 14, "21".into()));
        assert_eq!(at("module.yaml", yaml, At::Value("/overflow/enabled".into())).0, 3);
        let json = "{\n  \"é\": 1, \"data\": {}\n}";
        assert_eq!(at("schema.json", json, At::Value("/data/required".into())), (2, 19, "{}".into()));
        assert_eq!(at("schema.json", json, At::Offset(4)), (2, 3, "\"".into()));
    }

    #[test]
    fn front_matter_counts_lines_of_the_whole_file() {
        let text = "---\nname: a\nversion: 7\n---\nbody\n";
        assert_eq!(at("MODULE.md", text, At::Value("/version".into())), (3, 10, "7".into()));
    }
}
