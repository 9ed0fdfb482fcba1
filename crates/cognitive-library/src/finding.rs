//! A finding about a module folder: the place, the fault and the remedy. Prints nothing: `cogn validate` renders
//! findings, and loading turns them into one failure. Quotes from files are truncated and stripped of control
//! characters; of many findings only the first are stored.

use std::collections::HashSet;
use std::ops::Range;

use cognitive_contract::text::{acts_on_terminal, cut};

pub use crate::sources::{Location, Sources};

/// The limit for findings of one severity, and for one report. An author starts with the first of them.
pub const MAX_FINDINGS: usize = 200;
/// The longest quote in a message. A value of a module may be a whole document.
const QUOTE_LIMIT: usize = 80;
/// The longest message. No built-in message comes near it.
const MESSAGE_LIMIT: usize = 1_000;
/// The longest path of a file. File systems accept no longer one.
const PATH_LIMIT: usize = 4_096;
/// The longest path in a summary. Longer ones would hide the rest of the line.
const SUMMARY_LIMIT: usize = 200;

/// Formats a quote from a file: between backticks, truncated, and without control characters.
#[must_use]
pub fn quote(literal: &str) -> String {
    format!("`{}`", printable(literal, QUOTE_LIMIT))
}

/// Returns the start of a text on one line. Replaces characters that control a terminal or the text direction.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let start = cut(text, limit);
    let letters = start.chars().map(|letter| match letter {
        '\n' | '\r' | '\t' => ' ',
        _ if acts_on_terminal(letter) => char::REPLACEMENT_CHARACTER,
        _ => letter,
    });
    letters.chain((start.len() < text.len()).then_some('…')).collect()
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A hint; the module is valid.
    Warning,
    /// The module is not valid.
    Error,
}

impl Severity {
    /// Returns the word of the JSON form.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A location in a file of the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FindingLocation {
    /// The whole file, or a missing file.
    File,
    /// A value, by JSON pointer. A missing value is shown at its nearest parent.
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
    /// The byte range inside the text.
    pub range: Range<usize>,
}

impl FindingLocation {
    /// Returns the location of a part of a text value.
    #[must_use]
    pub fn in_text_value(pointer: &str, text: &str, range: Range<usize>) -> Self {
        Self::Inside(Box::new(ValuePart { pointer: pointer.to_owned(), text: text.to_owned(), range }))
    }
}

/// A fault in a module folder, or a hint about it.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The path relative to the module.
    pub file: String,
    /// The location in that file.
    pub at: FindingLocation,
    /// The stable name of the rule, such as `manifest/closed-list`.
    pub rule: &'static str,
    /// The fault and what was expected.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

impl Finding {
    /// Creates a finding that makes the module invalid.
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

    /// Creates a finding that leaves the module valid.
    #[must_use]
    pub fn warning(file: &str, at: FindingLocation, rule: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, at, rule, message) }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(printable(&hint.into(), MESSAGE_LIMIT));
        self
    }

    /// Formats path, location and message on one line.
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

/// The findings of one report. Duplicates are dropped, and of many findings only the first are stored. Errors and
/// warnings have separate limits, so that many warnings cannot hide an error.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
    said: HashSet<(String, FindingLocation, String)>,
    /// The number of errors and warnings that were dropped by the limit.
    left_out: (usize, usize),
}

impl Findings {
    /// Adds a finding, unless it is a duplicate or its severity has reached the limit.
    pub(crate) fn push(&mut self, finding: Finding) {
        self.push_with(finding.severity, || finding);
    }

    /// Adds a finding that is computed only if it will be stored.
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

    /// Adds the findings of another list and its counts of dropped ones.
    pub(crate) fn append(&mut self, other: Self) {
        self.extend(other.errors.into_iter().chain(other.warnings));
        self.left_out.0 = self.left_out.0.saturating_add(other.left_out.0);
        self.left_out.1 = self.left_out.1.saturating_add(other.left_out.1);
    }

    /// Returns errors, then warnings, then a finding about `file` that counts the dropped ones.
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
        assert_eq!(quote("a b"), "`a b`");
        assert_eq!(quote("\u{1b}[2J\n\u{202e}\u{9b}"), "`\u{fffd}[2J \u{fffd}\u{fffd}`");
        assert_eq!(quote(&"é".repeat(81)), format!("`{}…`", "é".repeat(80)));
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
