//! One broken rule at one place. Lists of these are what `cogn check`, `cogn validate` and
//! `error.details.violations` show. Carries no input values: only where, which rule, and what was expected.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::code::ErrorCode;

/// More findings than this help nobody, and a hostile value could make millions.
pub const MOST: usize = 100;

/// A rule that a value breaks.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// JSON pointer to the place; for a missing member, the place where it should be.
    pub path: String,
    /// The most specific published code for this rule.
    pub code: ErrorCode,
    /// The rule: a JSON Schema keyword, or a name of ours such as `closed` or `tier`.
    pub rule: &'static str,
    /// What was expected, as one sentence without the offending value.
    pub message: String,
    /// The declared values when the rule is a closed list; repair reads them.
    #[serde(skip)]
    pub(crate) options: Option<Arc<Value>>,
}

impl Violation {
    /// A violation of `rule` at `path`.
    #[must_use]
    pub fn new(
        path: impl Into<String>,
        code: ErrorCode,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), code, rule, message: message.into(), options: None }
    }

    pub(crate) fn with_options(mut self, options: Arc<Value>) -> Self {
        self.options = Some(options);
        self
    }

    /// The same violation seen from further out: `prefix` is put before the path.
    #[must_use]
    pub fn below(mut self, prefix: &str) -> Self {
        self.path.insert_str(0, prefix);
        self
    }

    /// Path and message on one line, the way summaries quote it.
    #[must_use]
    pub fn summary(&self) -> String {
        let place = if self.path.is_empty() { "/" } else { &self.path };
        format!("`{place}`: {}", self.message)
    }
}

/// A member that may be missing, what must hold where it is there, and what to say where it does not.
pub(crate) type OptionalMember = (&'static str, fn(&Value) -> bool, &'static str);

/// The first few violations as one sentence for `error.message`.
#[must_use]
pub fn summarise(violations: &[&Violation]) -> String {
    const SHOWN: usize = 3;
    let mut parts: Vec<String> = violations.iter().take(SHOWN).map(|each| each.summary()).collect();
    if violations.len() > SHOWN {
        parts.push(format!("and {} more", violations.len() - SHOWN));
    }
    parts.join("; ")
}
