//! One rule of a schema that a value breaks. Carries no value: only where, which rule, and what was expected.
//! Knows no error codes: which code a broken rule has depends on who wrote the value, and that is not for a schema to say.

use std::sync::Arc;

use serde_json::Value;

/// More violations than this do not help a reader, and a hostile value could cause millions.
pub const MAX_VIOLATIONS: usize = 100;

/// A rule of a schema that a value breaks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SchemaViolation {
    /// JSON pointer to the place; for a missing member, the place where it should be.
    pub path: String,
    /// The keyword, or `schema` where none can be named.
    pub rule: &'static str,
    /// What was expected, as one sentence without the offending value.
    pub message: String,
    /// The declared values when the rule is a closed list.
    pub options: Option<Arc<Value>>,
}

impl SchemaViolation {
    pub(crate) fn new(path: impl Into<String>, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.into(), rule, message: message.into(), options: None }
    }
}
