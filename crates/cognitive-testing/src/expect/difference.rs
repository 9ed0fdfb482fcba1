//! What an answer lacks of what was expected: one place, what should be there, what is there.
//! Holds texts only, already cut to a readable length.

use serde::Serialize;
use serde_json::Value;

use super::value::{pair, shown};

/// More differences than this help nobody.
const MAX_DIFFERENCES: usize = 50;

/// One place in which an answer is not as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The place in the envelope, such as `data.issues[0].type`.
    pub path: String,
    /// Which kind of expectation it breaks: `equals`, a rule such as `$in`, `_contains` or `_validate.<rule>`.
    pub rule: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub got: String,
}

/// Differences as they are found, up to a number that people read.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    found: Vec<Difference>,
}

impl Differences {
    /// A place with another value than expected.
    pub(crate) fn unequal(&mut self, path: &str, expected: &Value, got: &Value) {
        let (expected, got) = pair(expected, got);
        self.push(Difference { path: path.to_owned(), rule: "equals".to_owned(), expected, got });
    }

    /// A place that breaks a rule.
    pub(crate) fn broken(
        &mut self,
        path: &str,
        rule: &str,
        expected: impl Into<String>,
        got: Option<&Value>,
    ) {
        let got = got.map_or_else(|| "nothing".to_owned(), shown);
        self.worded(path, rule, expected, got);
    }

    /// A place that breaks a rule, where the value itself would say little.
    pub(crate) fn worded(
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

    /// Whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// One more.
    pub(crate) fn push(&mut self, difference: Difference) {
        if self.found.len() < MAX_DIFFERENCES {
            self.found.push(difference);
        }
    }

    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<Difference> {
        self.found
    }
}
