//! One rule of a schema that a value breaks: the location, the rule and what was expected. Never carries the value.
//! Knows no error codes, since the code depends on who wrote the value.

use std::sync::Arc;

use serde_json::Value;

/// The most violations that are reported. More do not help a reader, and a hostile value could cause millions.
pub const MAX_VIOLATIONS: usize = 100;

/// A rule of a schema that a value breaks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SchemaViolation {
    /// JSON pointer to the location; for a missing member, the location where it should be.
    pub path: String,
    /// The keyword, or `schema` where none can be named.
    pub rule: &'static str,
    /// One sentence about the expected value without the offending value.
    pub message: String,
    /// The declared values when the rule is a closed list.
    pub options: Option<Arc<Value>>,
}

impl SchemaViolation {
    pub(crate) fn new(path: impl Into<String>, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.into(), rule, message: message.into(), options: None }
    }
}
