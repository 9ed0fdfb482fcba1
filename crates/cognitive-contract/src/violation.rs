//! One broken rule at one place, as listed by `cogn check`, `cogn validate` and `error.details.violations`.
//! Contains no input values: only the place, the rule and the expectation.

use std::sync::Arc;

use cognitive_schema::{SchemaViolation, Section};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::code::ErrorCode;

/// The side of a run that a value comes from. It determines the specific code of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The caller's input.
    Input,
    /// The model's answer.
    Output,
}

impl Side {
    /// Returns the code of a rule broken on this side; `rule` is a JSON Schema keyword.
    fn code(self, rule: &str) -> ErrorCode {
        match (self, rule) {
            (Self::Input, "required") => ErrorCode::MissingRequiredField,
            (Self::Input, "type") => ErrorCode::TypeMismatch,
            (Self::Input, "enum" | "const") => ErrorCode::UnsupportedValue,
            (Self::Input, _) => ErrorCode::InvalidInput,
            (Self::Output, "enum") => ErrorCode::InvalidEnum,
            (Self::Output, _) => ErrorCode::SchemaValidationFailed,
        }
    }
}

/// A rule that a value breaks.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Violation {
    /// JSON pointer to the place; for a missing member, its expected place.
    pub path: String,
    /// The most specific published code for this rule.
    #[schemars(with = "String")]
    pub code: ErrorCode,
    /// The rule: a JSON Schema keyword, or a name of ours such as `closed` or `tier`.
    pub rule: &'static str,
    /// The expectation, as one sentence without the offending value.
    pub message: String,
    /// The declared values if the rule is a closed list; the repair pass uses them.
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

    /// Returns all violations of a value in a section of a contract. Paths are relative to the value.
    #[must_use]
    pub fn find(section: &Section, value: &Value, side: Side) -> Vec<Self> {
        section.violations(value).into_iter().map(|found| Self::from_schema(found, side)).collect()
    }

    /// Converts a schema violation, with the code of this side of a run.
    #[must_use]
    pub fn from_schema(found: SchemaViolation, side: Side) -> Self {
        let SchemaViolation { path, rule, message, options, .. } = found;
        Self { path, code: side.code(rule), rule, message, options }
    }

    pub(crate) fn with_options(mut self, options: Arc<Value>) -> Self {
        self.options = Some(options);
        self
    }

    /// Returns the same violation with `prefix` put before its path.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.path.insert_str(0, prefix);
        self
    }

    /// Returns path and message on one line, for summaries.
    #[must_use]
    pub fn summary(&self) -> String {
        let place = if self.path.is_empty() { "/" } else { &self.path };
        format!("`{place}`: {}", self.message)
    }
}

/// An optional member: its name, a check of its value, and the message if the check fails.
pub(crate) type OptionalMember = (&'static str, fn(&Value) -> bool, &'static str);

/// Returns the first few violations as one sentence for `error.message`.
#[must_use]
pub fn summarise(violations: &[&Violation]) -> String {
    // A message is one line; `details.violations` lists all of them.
    const SHOWN: usize = 3;
    let mut parts: Vec<String> = violations.iter().take(SHOWN).map(|each| each.summary()).collect();
    if violations.len() > SHOWN {
        parts.push(format!("and {} more", violations.len() - SHOWN));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use cognitive_schema::{Contract, Layout, SCHEMA_FILE, SchemaFiles};
    use serde_json::json;

    use super::*;

    #[test]
    fn err_006_specific_codes_depend_on_the_side() {
        let data =
            json!({ "required": ["a"], "properties": { "b": { "type": "string" }, "c": { "enum": [1] } } });
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), json!({ "input": {}, "data": data }))]);
        let contract = Contract::compile(&files, &Layout::default()).unwrap();
        let value = json!({ "b": 1, "c": 2 });
        let codes = |side| {
            let found = Violation::find(contract.data(), &value, side);
            let mut codes: Vec<&str> = found.iter().map(|each| each.code.number()).collect();
            codes.sort_unstable();
            codes
        };
        assert_eq!(codes(Side::Input), ["E1002", "E1003", "E1004"]);
        assert_eq!(codes(Side::Output), ["E3001", "E3001", "E3005"]);
        assert_eq!(ErrorCode::find("E3005"), Some(ErrorCode::InvalidEnum));
    }
}
