//! A bounded thought before the answer: its length, the operator's limits, and its outcome.
//!
//! A thought is never part of an answer. It is in no text, chunk, envelope or record; only its length is
//! reported, as `thinking_tokens` of `usage`. The contract applies to the text after it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::failure::Failure;

/// The maximum thinking budget, in tokens. Services accept no more for most models, and a task with a contract
/// needs no more.
pub const MAX_THINKING_TOKENS: u32 = 32_768;

/// The minimum thinking budget of some services, in tokens. A smaller request is raised to it there, and billed
/// accordingly.
pub const LEAST_THOUGHT: u32 = 1024;

/// `thinking: {max_tokens: N}`, in `module.yaml` and in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThinkingRule {
    /// The maximum number of thinking tokens before an answer; 0 disables thinking. A longer thought is ended
    /// there.
    #[schemars(range(min = 0, max = 32_768))]
    pub max_tokens: u32,
}

/// The operator's thinking limits: for all modules, and for single ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThinkingLimits {
    /// The limit for modules without their own.
    pub usual: Option<u32>,
    /// The limits of single modules, by name.
    pub of_module: BTreeMap<String, u32>,
}

impl ThinkingLimits {
    /// Returns the limit of a module, if the operator set one; 0 disables thinking.
    #[must_use]
    pub fn for_module(&self, module: &str) -> Option<u32> {
        self.of_module.get(module).copied().or(self.usual)
    }
}

/// The outcome of a request to think, or not to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThoughtOutcome {
    /// The model finished its thought.
    Ended,
    /// The thought reached its limit and was closed there.
    Closed,
    /// The service received the limit and enforces it.
    Bounded,
    /// The service accepts no number; it received an effort level, or only a request to think.
    Effort,
    /// The service was instructed not to think.
    Off,
    /// The model does not support the request, and was called without it.
    Ignored,
}

/// Validates a thinking limit that a caller or an operator wrote.
pub fn checked_bound(tokens: u64) -> Result<u32, Failure> {
    let fits = u32::try_from(tokens).ok().filter(|tokens| *tokens <= MAX_THINKING_TOKENS);
    fits.ok_or_else(|| {
        let message =
            format!("`thinking` must be a number of tokens from 0 to {MAX_THINKING_TOKENS}, found: {tokens}");
        Failure::new(ErrorCode::InvalidInput, message).suggest("Use fewer tokens, or 0 for no thinking")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_for_one_module_stands_above_the_word_for_all() {
        let limits = ThinkingLimits { usual: Some(100), of_module: [("a".to_owned(), 0)].into() };
        assert_eq!((limits.for_module("a"), limits.for_module("b")), (Some(0), Some(100)));
        assert_eq!(ThinkingLimits::default().for_module("a"), None);
    }

    #[test]
    fn a_thought_has_a_largest_bound() {
        assert_eq!(checked_bound(0).ok(), Some(0));
        assert_eq!(checked_bound(u64::from(MAX_THINKING_TOKENS)).ok(), Some(MAX_THINKING_TOKENS));
        let refused = checked_bound(u64::from(MAX_THINKING_TOKENS) + 1).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidInput);
    }
}
