//! Checks that a model fits into memory before it is downloaded or loaded: a swapping machine or a process killed by
//! the system reports no reason. If the available memory is unknown, nothing is refused.

use std::path::Path;

use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

use super::{KNOWN_WEIGHTS, KnownWeights, WeightsChoice, megabytes};
use crate::platform;

/// The memory that a model needs, with its display name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryNeed {
    name: String,
    bytes: u64,
    /// True if only a lower bound is known, because the file was never measured.
    at_least: bool,
}

impl MemoryNeed {
    /// Returns the need of known weights.
    pub(crate) fn for_known(known: &KnownWeights) -> Self {
        Self { name: known.short().to_owned(), bytes: known.memory(), at_least: false }
    }

    /// Returns the lower bound for a file of this length: no encoding shrinks below about half when it is packed.
    pub(crate) fn for_length(name: &str, length: u64) -> Self {
        Self { name: name.to_owned(), bytes: length / 2, at_least: true }
    }

    /// Returns the need of the chosen weights; `None` if the file does not exist.
    pub(crate) fn for_choice(choice: &WeightsChoice, file: Option<&Path>) -> Option<Self> {
        if let Some(known) = choice.known_weights() {
            return Some(Self::for_known(known));
        }
        let length = file?.metadata().ok()?.len();
        Some(Self::for_length(&choice.name(), length))
    }

    /// Refuses a model that does not fit into the available memory.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.compare(platform::available_memory())
    }

    /// Returns the memory for keys and values of all concurrent requests: half of the remainder after the model, so
    /// that other programs are not swapped out. `None` if the available memory is unknown.
    pub(crate) fn text_memory(&self) -> Option<u64> {
        self.remaining_memory(platform::available_memory())
    }

    fn remaining_memory(&self, available: Option<u64>) -> Option<u64> {
        available.map(|available| available.saturating_sub(self.bytes) / 2)
    }

    fn compare(&self, available: Option<u64>) -> Result<(), Failure> {
        let Some(available) = available.filter(|available| *available < self.bytes) else { return Ok(()) };
        let (needed, left) = (megabytes(self.bytes), megabytes(available));
        let needed = if self.at_least { format!("at least {needed}") } else { needed };
        let message = format!(
            "not enough memory for the embedded model `{}`: {needed} needed, {left} available",
            self.name
        );
        Err(Failure::new(ErrorCode::ProviderUnavailable, message)
            .suggest(hint(available.min(self.bytes)))
            .with_detail("provider", json!("embedded"))
            .with_detail("memory", json!({ "needed_bytes": self.bytes, "available_bytes": available })))
    }
}

/// Suggests the largest model that fits, or another provider.
fn hint(available: u64) -> String {
    let fits = KNOWN_WEIGHTS.into_iter().rev().find(|known| known.memory() < available);
    let elsewhere = "use another provider: set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`";
    match fits {
        Some(known) => format!(
            "Use a smaller model, `--provider embedded --model {}` (needs {}); or close other programs; or \
             {elsewhere}",
            known.short(),
            megabytes(known.memory())
        ),
        None => format!("Close other programs, or {elsewhere}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{QWEN_1_5B, SMOLLM2};
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers_and_a_smaller_model() {
        let need = MemoryNeed::for_known(&QWEN_1_5B);
        assert!(need.compare(None).is_ok(), "nobody knows");
        assert!(need.compare(Some(QWEN_1_5B.memory())).is_ok());
        let refused = need.compare(Some(QWEN_1_5B.memory() - 1)).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ProviderUnavailable);
        assert!(refused.message().starts_with("not enough memory for the embedded model `qwen-1.5b`: "));
        let shown = megabytes(QWEN_1_5B.memory());
        assert!(refused.message().contains(&format!("{shown} needed")), "{}", refused.message());
        assert!(refused.suggestion().unwrap().contains("--model qwen-0.5b"), "{:?}", refused.suggestion());
        let less = need.compare(Some(SMOLLM2.memory() + 1)).unwrap_err();
        assert!(less.suggestion().unwrap().contains("--model smollm2"), "{:?}", less.suggestion());
        let nothing = need.compare(Some(1)).unwrap_err();
        assert!(
            nothing.suggestion().unwrap().starts_with("Close other programs"),
            "{:?}",
            nothing.suggestion()
        );
    }

    #[test]
    fn texts_have_half_of_what_is_left_beside_the_model() {
        let need = MemoryNeed::for_length("mine", 2_000);
        assert_eq!(
            [None, Some(5_000), Some(10)].map(|left| need.remaining_memory(left)),
            [None, Some(2_000), Some(0)]
        );
    }

    #[test]
    fn of_a_file_of_ones_own_the_least_is_known() {
        let need = MemoryNeed::for_length("mine", 4_000_000_000);
        assert!(need.compare(Some(2_000_000_000)).is_ok());
        let refused = need.compare(Some(1_000_000_000)).unwrap_err();
        assert!(refused.message().ends_with("`mine`: at least 2000 MB needed, 1000 MB available"));
    }
}
