//! Something to say about a module folder: where, what, and what to do about it.
//! Says nothing on its own; `cogn validate` draws findings, loading turns them into one failure.
//! What a file says is shown cut and without control characters; of many findings only the first are kept.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use cognitive_contract::text::{acts_on_terminal, cut};
use serde::Serialize;

use crate::json::{self, JsonIndex};
use crate::yaml::{self, YamlIndex};

/// More findings than these help nobody.
pub const MAX_FINDINGS: usize = 200;
/// The longest literal in a message.
const QUOTE_LIMIT: usize = 80;
/// The longest message; no message of ours comes near.
const MESSAGE_LIMIT: usize = 1_000;
/// The longest path of a file; the file systems know no longer one.
const PATH_LIMIT: usize = 4_096;
/// What is marked of a long value: enough to see which one it is.
const MARK_LIMIT: usize = 200;

/// A literal of a file, as messages show it: between backticks, cut, and without control characters.
#[must_use]
pub fn quoted(literal: &str) -> String {
    format!("`{}`", printable(literal, QUOTE_LIMIT))
}

/// The start of a text, on one line, without what acts on a terminal or turns the direction of reading.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let start = cut(text, limit);
    let letters = start.chars().map(|letter| match letter {
        '\n' | '\r' | '\t' => ' ',
        _ if acts_on_terminal(letter) => char::REPLACEMENT_CHARACTER,
        _ => letter,
    });
    letters.chain((start.len() < text.len()).then_some('…')).collect()
}

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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FindingLocation {
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
    pub at: FindingLocation,
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
    pub fn error(file: &str, at: FindingLocation, rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: cut(file, PATH_LIMIT).to_owned(),
            at,
            rule,
            message: printable(&message.into(), MESSAGE_LIMIT),
            hint: None,
        }
    }

    /// A finding that does not.
    #[must_use]
    pub fn warning(file: &str, at: FindingLocation, rule: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, at, rule, message) }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(printable(&hint.into(), MESSAGE_LIMIT));
        self
    }

    /// Path, place and message on one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let file = printable(&self.file, MARK_LIMIT);
        match &self.at {
            FindingLocation::Value(pointer) if !pointer.is_empty() => {
                format!("{file}: `{}`: {}", printable(pointer, MARK_LIMIT), self.message)
            }
            _ => format!("{file}: {}", self.message),
        }
    }
}

/// The findings of one report: each is said once, in its first wording, and of many only the first are kept.
/// Errors and warnings are kept apart, so that no flood of warnings can hide an error.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
    said: HashSet<(String, FindingLocation, String)>,
    /// How many errors and warnings were not kept.
    left_out: (usize, usize),
}

impl Findings {
    /// Takes a finding, unless it was said before or there are enough of its kind.
    pub(crate) fn push(&mut self, finding: Finding) {
        self.push_with(finding.severity, || finding);
    }

    /// The same for a finding that is only worked out if it is kept.
    pub(crate) fn push_with(&mut self, severity: Severity, finding: impl FnOnce() -> Finding) {
        let (kept, left_out) = match severity {
            Severity::Error => (&mut self.errors, &mut self.left_out.0),
            Severity::Warning => (&mut self.warnings, &mut self.left_out.1),
        };
        if kept.len() >= MAX_FINDINGS {
            *left_out = left_out.saturating_add(1);
            return;
        }
        let finding = finding();
        if self.said.insert((finding.file.clone(), finding.at.clone(), finding.message.clone())) {
            kept.push(finding);
        }
    }

    /// Takes what another list kept, and what it left out.
    pub(crate) fn append(&mut self, other: Self) {
        self.extend(other.errors.into_iter().chain(other.warnings));
        self.left_out.0 = self.left_out.0.saturating_add(other.left_out.0);
        self.left_out.1 = self.left_out.1.saturating_add(other.left_out.1);
    }

    /// Errors first, then warnings; then, about `file`, how many there would have been.
    pub(crate) fn finish(self, file: &str) -> Vec<Finding> {
        let (errors, warnings) = self.left_out;
        let mut shown: Vec<Finding> = self.errors.into_iter().chain(self.warnings).collect();
        let too_many = shown.len().saturating_sub(MAX_FINDINGS);
        shown.truncate(MAX_FINDINGS);
        let more = errors.saturating_add(warnings).saturating_add(too_many);
        if more > 0 {
            let severity = if errors > 0 { Severity::Error } else { Severity::Warning };
            let last = Finding::error(
                file,
                FindingLocation::File,
                "report/more",
                format!("and {more} more findings"),
            );
            shown.push(Finding { severity, ..last });
        }
        shown
    }
}

impl Extend<Finding> for Findings {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, findings: T) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}

/// The texts that findings point into.
#[derive(Debug, Default, Clone)]
pub struct Sources(BTreeMap<String, Arc<SourceText>>);

/// A text, and where its values stand; worked out once, when somebody asks.
#[derive(Debug)]
struct SourceText {
    text: String,
    index: OnceLock<Index>,
    /// Where each line break stands.
    breaks: OnceLock<Vec<usize>>,
}

#[derive(Debug)]
enum Index {
    Json(JsonIndex),
    /// With the offset at which the YAML starts.
    Yaml(usize, YamlIndex),
}

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
    pub(crate) fn repeated(&self, file: &str) -> &[String] {
        match self.0.get(file).map(|source| source.index(file)) {
            Some(Index::Json(index)) => &index.repeated,
            _ => &[],
        }
    }

    /// Where a finding points to, if its file has a text.
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
            FindingLocation::Value(pointer) => source.value_range(&finding.file, pointer)?,
        };
        let breaks = source.breaks();
        let line = breaks.partition_point(|at| *at < range.start);
        let line_start = line.checked_sub(1).and_then(|last| breaks.get(last)).map_or(0, |at| at + 1);
        let column = text.get(line_start..range.start)?.chars().count() + 1;
        Some(Location { line: line + 1, column, range })
    }
}

impl SourceText {
    /// Texts can be long, made of lines alone, and asked about for every finding.
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

    fn value_range(&self, file: &str, pointer: &str) -> Option<Range<usize>> {
        let (range, exact) = match self.index(file) {
            Index::Json(index) => index.nearest(&self.text, pointer)?,
            Index::Yaml(shift, index) => {
                let (span, exact) = index.nearest(pointer)?;
                (span.start + shift..span.end + shift, exact)
            }
        };
        // A parent stands in for a missing member: its first line is enough to find the place. So is the start of
        // a long value.
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
    fn a_text_is_looked_through_once_for_all_of_its_findings() {
        let mut sources = Sources::default();
        sources.insert("schema.json", r#"{"a": 1, "b": 2, "a": 3}"#.to_owned());
        assert_eq!(sources.repeated("schema.json"), ["/a"]);
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

    #[test]
    fn what_a_file_says_is_shown_short_and_without_control_characters() {
        assert_eq!(quoted("a b"), "`a b`");
        assert_eq!(quoted("\u{1b}[2J\n\u{202e}\u{9b}"), "`\u{fffd}[2J \u{fffd}\u{fffd}`");
        assert_eq!(quoted(&"é".repeat(81)), format!("`{}…`", "é".repeat(80)));
        let long = "x".repeat(100_000);
        let finding =
            Finding::error(&long, FindingLocation::Value(long.clone()), "r", long.clone()).hint(long.clone());
        assert!(finding.message.len() < 1_100 && finding.hint.as_ref().unwrap().len() < 1_100);
        assert!(finding.file.len() <= PATH_LIMIT && finding.summary().len() < 2_000);
    }

    #[test]
    fn of_many_findings_the_first_are_kept_and_no_error_is_lost_among_warnings() {
        let warning = |at| Finding::warning("f", FindingLocation::Offset(at), "r", "w");
        let mut found = Findings::default();
        found.extend((0..5_000).map(warning));
        found.push_with(Severity::Warning, || panic!("not to be worked out"));
        found.push(Finding::error("f", FindingLocation::File, "r", "e"));
        found.push(Finding::error("f", FindingLocation::File, "r", "e"));
        let mut all = Findings::default();
        all.append(found);
        let shown = all.finish("f");
        assert_eq!(shown.len(), MAX_FINDINGS + 1);
        assert_eq!((shown[0].severity, shown[0].message.as_str()), (Severity::Error, "e"));
        let last = shown.last().unwrap();
        assert_eq!((last.severity, last.message.as_str()), (Severity::Warning, "and 4802 more findings"));

        let mut few = Findings::default();
        few.extend([warning(1), warning(2), warning(1)]);
        assert_eq!(few.finish("f").len(), 2);
    }
}
