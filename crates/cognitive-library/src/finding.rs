//! Something to say about a module folder: where, what, and what to do about it.
//! Says nothing on its own; `cogn validate` draws findings, loading turns them into one failure.
//! What a file says is shown cut and without control characters; of many findings only the first are kept.

use std::collections::HashSet;
use std::ops::Range;

use cognitive_contract::text::{acts_on_terminal, cut};
use serde::Serialize;

pub use crate::sources::{Location, Sources};

/// More findings than these help nobody.
pub const MAX_FINDINGS: usize = 200;
/// The longest literal in a message.
const QUOTE_LIMIT: usize = 80;
/// The longest message; no message of ours comes near.
const MESSAGE_LIMIT: usize = 1_000;
/// The longest path of a file; the file systems know no longer one.
const PATH_LIMIT: usize = 4_096;
/// The longest path in a summary.
const SUMMARY_LIMIT: usize = 200;

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
    /// The name of a member, by the JSON pointer of its value.
    Key(Box<str>),
    /// A part of a text value.
    Inside(Box<ValuePart>),
    /// A byte offset, where the text could not be parsed.
    Offset(usize),
    /// Bytes of the file.
    Span(Range<usize>),
}

/// A part of a text value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ValuePart {
    /// JSON pointer of the value.
    pub pointer: String,
    /// The value.
    pub text: String,
    /// The bytes of it that are meant.
    pub range: Range<usize>,
}

impl FindingLocation {
    /// A part of a text value.
    #[must_use]
    pub fn inside(pointer: &str, text: &str, range: Range<usize>) -> Self {
        Self::Inside(Box::new(ValuePart { pointer: pointer.to_owned(), text: text.to_owned(), range }))
    }
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
        let file = printable(&self.file, SUMMARY_LIMIT);
        let pointer = match &self.at {
            FindingLocation::Value(pointer) => pointer.as_str(),
            FindingLocation::Key(pointer) => pointer,
            FindingLocation::Inside(part) => &part.pointer,
            FindingLocation::File | FindingLocation::Offset(_) | FindingLocation::Span(_) => "",
        };
        if pointer.is_empty() {
            format!("{file}: {}", self.message)
        } else {
            format!("{file}: `{}`: {}", printable(pointer, SUMMARY_LIMIT), self.message)
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

#[cfg(test)]
mod tests {
    use super::*;

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
