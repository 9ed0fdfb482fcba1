//! Builder methods for the options of a run: `RunOptions::default().with_timeout(…).with_reask(1)`. Decides nothing.

use std::time::Duration;

use cognitive_contract::money::Money;
use cognitive_contract::{Enforcement, RunSettings, Warning};

use crate::host::RunOptions;

impl RunOptions {
    /// Sets the settings of the run.
    #[must_use]
    pub fn with_settings(mut self, settings: RunSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the timeout of each call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Sets the number of repair prompts after an answer that breaks the contract.
    #[must_use]
    pub fn with_reask(mut self, times: u32) -> Self {
        self.settings.reask = Some(times);
        self
    }

    /// Sets the maximum number of model calls.
    #[must_use]
    pub fn with_max_calls(mut self, calls: u64) -> Self {
        self.settings.max_calls = Some(calls);
        self
    }

    /// Sets the cost limit.
    #[must_use]
    pub fn with_max_cost(mut self, most: Option<Money>) -> Self {
        self.settings.max_cost = most;
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn with_seed(mut self, seed: Option<u64>) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets the maximum number of tokens of an answer.
    #[must_use]
    pub fn with_max_output_tokens(mut self, tokens: Option<u64>) -> Self {
        self.settings.max_output_tokens = tokens;
        self
    }

    /// Sets the maximum number of thinking tokens.
    #[must_use]
    pub fn with_thinking(mut self, tokens: Option<u32>) -> Self {
        self.settings.thinking = tokens;
        self
    }

    /// Sets whether the receipt is returned in `meta.provenance`.
    #[must_use]
    pub fn with_receipt(mut self, receipt: bool) -> Self {
        self.settings.receipt = Some(receipt);
        self
    }

    /// Sets whether the model's syntax is parsed strictly.
    #[must_use]
    pub fn with_strict_parse(mut self, strict: bool) -> Self {
        self.settings.strict_parse = Some(strict);
        self
    }

    /// Sets whether calls are stopped early if their answer cannot become valid any more.
    #[must_use]
    pub fn with_early_stop(mut self, early: bool) -> Self {
        self.settings.early_stop = Some(early);
        self
    }

    /// Sets how much of the contract is enforced.
    #[must_use]
    pub fn with_enforcement(mut self, enforcement: Enforcement) -> Self {
        self.settings.enforcement = Some(enforcement);
        self
    }

    /// Sets user, tenant and session. Take them from an authenticated caller, never from the input.
    #[must_use]
    pub fn for_user(mut self, user: Option<String>, tenant: Option<String>, session: Option<String>) -> Self {
        (self.user, self.tenant, self.session) = (user, tenant, session);
        self
    }

    /// Sets notices of the surface for `meta.warnings`.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<Warning>) -> Self {
        self.warnings = warnings;
        self
    }
}
