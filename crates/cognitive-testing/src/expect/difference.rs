//! Differences between an answer and its expectation: one place, the expected value, the actual value.
//! Contains only strings, already cut to a readable length.

use serde::Serialize;
use serde_json::Value;

use super::value::{pair, value_text};

/// The most differences that are reported. A longer list would not be read.
const MAX_DIFFERENCES: usize = 50;

/// One place where an answer differs from the expectation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The place in the envelope, such as `data.issues[0].type`.
    pub path: String,
    /// The kind of expectation it breaks: `equals`, a rule such as `$in`, `_contains` or `_validate.<rule>`.
    pub rule: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

/// Collects differences, up to `MAX_DIFFERENCES`.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    found: Vec<Difference>,
}

impl Differences {
    /// Adds a place with an unexpected value.
    pub(crate) fn unequal(&mut self, path: &str, expected: &Value, got: &Value) {
        let (expected, got) = pair(expected, got);
        self.push(Difference { path: path.to_owned(), rule: "equals".to_owned(), expected, got });
    }

    /// Adds a place that breaks a rule.
    pub(crate) fn add_broken(
        &mut self,
        path: &str,
        rule: &str,
        expected: impl Into<String>,
        got: Option<&Value>,
    ) {
        let got = got.map_or_else(|| "nothing".to_owned(), value_text);
        self.add_described(path, rule, expected, got);
    }

    /// Adds a place that breaks a rule, with a description instead of the value.
    pub(crate) fn add_described(
        &mut self,
        path: &str,
        rule: &str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) {
        self.push(Difference {
            path: path.to_owned(),
            rule: rule.to_owned(),
            expected: expected.into(),
            got: got.into(),
        });
    }

    /// Returns whether there are no differences.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Adds one difference, unless the limit is reached.
    pub(crate) fn push(&mut self, difference: Difference) {
        if self.found.len() < MAX_DIFFERENCES {
            self.found.push(difference);
        }
    }

    /// Returns all differences.
    pub(crate) fn into_vec(self) -> Vec<Difference> {
        self.found
    }
}
