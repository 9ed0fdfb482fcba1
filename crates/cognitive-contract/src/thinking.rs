//! A bounded thought before the answer: how long it may be, who decides that, and what became of it.
//!
//! A thought is never part of an answer. It is no text of a reply, goes into no chunk, no envelope and no record; only its
//! length does, as `thinking_tokens` of `usage`. The contract binds what comes after it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::failure::Failure;

/// The longest thought that can be asked for, in tokens. Services take no more of most models, and whoever needs more has
/// no task with a contract.
pub const MAX_THINKING_TOKENS: u32 = 32_768;

/// The shortest thought that some service can be asked for, in tokens. Who asks for less gets, and pays for, this much there.
pub const LEAST_THOUGHT: u32 = 1024;

/// `thinking: {max_tokens: N}`, in `module.yaml` and in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThinkingRule {
    /// The longest thought before an answer, in tokens; 0 is none. A thought that does not end by then is ended.
    #[schemars(range(min = 0, max = 32_768))]
    pub max_tokens: u32,
}

/// What the operator says about thoughts: for all modules, and for single ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThinkingLimits {
    /// For modules that are not named.
    pub usual: Option<u32>,
    /// For single modules, by name.
    pub of_module: BTreeMap<String, u32>,
}

impl ThinkingLimits {
    /// How long a module may think, if the operator says so; 0 is not at all.
    #[must_use]
    pub fn of(&self, module: &str) -> Option<u32> {
        self.of_module.get(module).copied().or(self.usual)
    }
}

/// What became of the wish that a model thinks, or that it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThoughtOutcome {
    /// The model came to the end of its thought.
    Ended,
    /// The thought reached its bound, and was closed there.
    Closed,
    /// The service was given the bound and keeps it.
    Bounded,
    /// The service takes no number; it was told how hard to think, or only to do so.
    Effort,
    /// The service was told not to think.
    Off,
    /// The model cannot be asked for it, and was asked without.
    Ignored,
}

/// Judges a bound that a caller or an operator wrote.
pub fn checked_bound(tokens: u64) -> Result<u32, Failure> {
    let fits = u32::try_from(tokens).ok().filter(|tokens| *tokens <= MAX_THINKING_TOKENS);
    fits.ok_or_else(|| {
        let message = format!(
            "`thinking` has to be a number of tokens from 0 to {MAX_THINKING_TOKENS}, found: {tokens}"
        );
        Failure::new(ErrorCode::InvalidInput, message)
            .suggest("Ask for a shorter thought, or for none with 0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_for_one_module_stands_above_the_word_for_all() {
        let limits = ThinkingLimits { usual: Some(100), of_module: [("a".to_owned(), 0)].into() };
        assert_eq!((limits.of("a"), limits.of("b")), (Some(0), Some(100)));
        assert_eq!(ThinkingLimits::default().of("a"), None);
    }

    #[test]
    fn a_thought_has_a_largest_bound() {
        assert_eq!(checked_bound(0).ok(), Some(0));
        assert_eq!(checked_bound(u64::from(MAX_THINKING_TOKENS)).ok(), Some(MAX_THINKING_TOKENS));
        let refused = checked_bound(u64::from(MAX_THINKING_TOKENS) + 1).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidInput);
    }
}
