//! The texts that findings point into, and the line, column and byte range of a finding. Each text is indexed once, on
//! first use. A missing value is shown at its nearest parent.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use cognitive_contract::text::cut;
use serde::Serialize;

use crate::finding::{Finding, FindingLocation, ValuePart};
use crate::json::{self, JsonIndex};
use crate::yaml::{self, YamlIndex};

/// The marked part of a long value: enough to identify it.
const MARK_LIMIT: usize = 200;

/// The texts that findings point into.
#[derive(Debug, Default, Clone)]
pub struct Sources(BTreeMap<String, Arc<SourceText>>);

/// A text and the positions of its values, computed once on first use.
#[derive(Debug)]
struct SourceText {
    text: String,
    index: OnceLock<Index>,
    /// The offset of each line break.
    breaks: OnceLock<Vec<usize>>,
}

#[derive(Debug)]
enum Index {
    Json(JsonIndex),
    /// The index, with the offset at which the YAML starts.
    Yaml(usize, YamlIndex),
}

/// A position for people and for renderers.
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
    /// Stores the text of a file.
    pub fn insert(&mut self, file: &str, text: String) {
        self.0.insert(
            file.to_owned(),
            Arc::new(SourceText { text, index: OnceLock::new(), breaks: OnceLock::new() }),
        );
    }

    /// The text of a file.
    #[must_use]
    pub fn get(&self, file: &str) -> Option<&str> {
        self.0.get(file).map(|source| source.text.as_str())
    }

    /// All files with their texts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(file, source)| (file.as_str(), source.text.as_str()))
    }

    /// Members of a JSON file that occur more than once in their object, by JSON pointer.
    pub(crate) fn repeated_members(&self, file: &str) -> &[String] {
        match self.0.get(file).map(|source| source.index(file)) {
            Some(Index::Json(index)) => &index.repeated,
            _ => &[],
        }
    }

    /// Returns the location of a finding, if its file has a text.
    #[must_use]
    pub fn locate(&self, finding: &Finding) -> Option<Location> {
        let source = self.0.get(&finding.file)?;
        let text = source.text.as_str();
        let range = match &finding.at {
            FindingLocation::File => return None,
            FindingLocation::Offset(offset) => {
                let start = (*offset).min(text.len());
                let width = text.get(start..)?.chars().next().map_or(0, char::len_utf8);
                start..start + width
            }
            FindingLocation::Span(span) => text.get(span.clone()).map(|_| span.clone())?,
            FindingLocation::Value(pointer) => source.value_range(&finding.file, pointer)?,
            FindingLocation::Key(pointer) => source.key_range(&finding.file, pointer)?,
            FindingLocation::Inside(part) => source.inner_range(&finding.file, part)?,
        };
        let breaks = source.breaks();
        let line = breaks.partition_point(|at| *at < range.start);
        let line_start = line.checked_sub(1).and_then(|last| breaks.get(last)).map_or(0, |at| at + 1);
        let column = text.get(line_start..range.start)?.chars().count() + 1;
        Some(Location { line: line + 1, column, range })
    }
}

impl SourceText {
    /// The line breaks, cached: a text can be long and have many findings.
    fn breaks(&self) -> &[usize] {
        self.breaks.get_or_init(|| self.text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn index(&self, file: &str) -> &Index {
        self.index.get_or_init(|| {
            if [".yaml", ".yml", ".md"].iter().any(|ending| file.ends_with(ending)) {
                let (front, start) = crate::formats::front_matter_text(file, &self.text);
                Index::Yaml(start, yaml::spans(front))
            } else {
                Index::Json(json::index(&self.text))
            }
        })
    }

    /// The range of a member's name, or of its value if it has no name.
    fn key_range(&self, file: &str, pointer: &str) -> Option<Range<usize>> {
        let key = match self.index(file) {
            Index::Json(index) => index.name(&self.text, pointer),
            Index::Yaml(shift, index) => index.key(pointer).map(|key| key.start + shift..key.end + shift),
        };
        key.filter(|key| self.text.get(key.clone()).is_some()).or_else(|| self.value_range(file, pointer))
    }

    /// The range of a part of a text value, if the file contains that text literally; otherwise the whole value.
    fn inner_range(&self, file: &str, part: &ValuePart) -> Option<Range<usize>> {
        let whole = self.value_range(file, &part.pointer)?;
        let at = self.text.get(whole.clone()).and_then(|written| written.find(&part.text));
        let inside = at.map(|at| whole.start + at + part.range.start..whole.start + at + part.range.end);
        let fits = |inside: &Range<usize>| inside.end <= whole.end && self.text.get(inside.clone()).is_some();
        Some(inside.filter(fits).unwrap_or(whole))
    }

    fn value_range(&self, file: &str, pointer: &str) -> Option<Range<usize>> {
        let (range, exact) = match self.index(file) {
            Index::Json(index) => index.nearest(&self.text, pointer)?,
            Index::Yaml(shift, index) => {
                let (span, exact) = index.nearest(pointer)?;
                (span.start + shift..span.end + shift, exact)
            }
        };
        // For a missing member, the first line of the parent is enough. So is the start of a long value.
        let shown = self.text.get(range.clone())?;
        let start = cut(shown, MARK_LIMIT);
        let whole = exact && start.len() == shown.len();
        let length = start.find('\n').filter(|_| !whole).unwrap_or(start.len());
        Some(range.start..range.start + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, text: &str, place: FindingLocation) -> (usize, usize, String) {
        let mut sources = Sources::default();
        sources.insert(file, text.to_owned());
        let location = sources.locate(&Finding::error(file, place, "r", "m")).unwrap();
        (location.line, location.column, text[location.range].to_owned())
    }

    #[test]
    fn values_missing_members_and_offsets_are_found() {
        let yaml = "name: a\noverflow:\n  max_items: 21\n";
        assert_eq!(
            at("module.yaml", yaml, FindingLocation::Value("/overflow/max_items".into())),
            (3, 14, "21".into())
        );
        assert_eq!(at("module.yaml", yaml, FindingLocation::Value("/overflow/enabled".into())).0, 3);
        let json = "{\n  \"é\": 1, \"data\": {}\n}";
        assert_eq!(
            at("schema.json", json, FindingLocation::Value("/data/required".into())),
            (2, 19, "{}".into())
        );
        assert_eq!(at("schema.json", json, FindingLocation::Offset(4)), (2, 3, "\"".into()));
    }

    #[test]
    fn front_matter_counts_lines_of_the_whole_file() {
        let text = "---\nname: a\nversion: 7\n---\nbody\n";
        assert_eq!(at("MODULE.md", text, FindingLocation::Value("/version".into())), (3, 10, "7".into()));
    }

    #[test]
    fn names_and_parts_of_values_are_found() {
        let yaml = "name: a\n\"exclude\": [x]\noverflow:\n  # enabel: no\n  enabel: true\nsay: 'not $.a.b'\n";
        let key = |pointer: &str| FindingLocation::Key(pointer.into());
        assert_eq!(at("module.yaml", yaml, key("/exclude")), (2, 1, "\"exclude\"".into()));
        assert_eq!(at("module.yaml", yaml, key("/overflow/enabel")), (5, 3, "enabel".into()));
        assert_eq!(at("module.yaml", yaml, key("/overflow")), (3, 1, "overflow".into()));
        let inside = |text: &str, range| FindingLocation::in_text_value("/say", text, range);
        assert_eq!(at("module.yaml", yaml, inside("not $.a.b", 8..9)), (6, 15, "b".into()));
        assert_eq!(at("module.yaml", yaml, inside("other", 0..2)).0, 6);
        let json = "{\n  \"data\": {\"a\": 1}\n}";
        assert_eq!(at("schema.json", json, key("/data/a")), (2, 12, "\"a\"".into()));
        assert_eq!(at("schema.json", json, key("/data/none")).0, 2);
        assert_eq!(at("prompt.md", "one\ntwo $X", FindingLocation::Span(8..10)), (2, 5, "$X".into()));
    }

    #[test]
    fn a_text_is_looked_through_once_for_all_of_its_findings() {
        let mut sources = Sources::default();
        sources.insert("schema.json", r#"{"a": 1, "b": 2, "a": 3}"#.to_owned());
        assert_eq!(sources.repeated_members("schema.json"), ["/a"]);
        let index = |sources: &Sources| std::ptr::from_ref(sources.0["schema.json"].index.get().unwrap());
        let first = index(&sources);
        let copy = sources.clone();
        for place in ["/a", "/b", "/c"] {
            copy.locate(&Finding::error("schema.json", FindingLocation::Value(place.into()), "r", "m"))
                .unwrap();
        }
        assert!(std::ptr::eq(index(&sources), first) && std::ptr::eq(index(&copy), first));
    }

    #[test]
    fn lines_are_counted_in_texts_of_lines_alone() {
        for lines in [0, 1, 254, 255, 256, 10_000] {
            let json = format!("[{}1]", "\n".repeat(lines));
            assert_eq!(at("schema.json", &json, FindingLocation::Value("/0".into())).0, lines + 1);
        }
    }

    #[test]
    fn a_long_value_is_marked_by_its_start() {
        let json = format!("[\"{}\"]", "é".repeat(5_000));
        assert_eq!(
            at("schema.json", &json, FindingLocation::Value("/0".into())).2.chars().count(),
            MARK_LIMIT
        );
        assert_eq!(
            at("schema.json", &json, FindingLocation::Value("/0/x".into())).2.chars().count(),
            MARK_LIMIT
        );
    }
}
