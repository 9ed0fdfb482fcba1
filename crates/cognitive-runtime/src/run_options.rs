//! The options of a run, one after the other: `RunOptions::default().with_timeout(…).with_reask(1)`. Decides nothing.

use std::time::Duration;

use cognitive_contract::money::Money;
use cognitive_contract::{Enforcement, RunSettings, Warning};

use crate::host::RunOptions;

impl RunOptions {
    /// With these options of the run.
    #[must_use]
    pub fn with_settings(mut self, settings: RunSettings) -> Self {
        self.settings = settings;
        self
    }

    /// With this time for each call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Asking the model again so often after an answer that breaks the contract.
    #[must_use]
    pub fn with_reask(mut self, times: u32) -> Self {
        self.settings.reask = Some(times);
        self
    }

    /// With so many model calls at most.
    #[must_use]
    pub fn with_max_calls(mut self, calls: u64) -> Self {
        self.settings.max_calls = Some(calls);
        self
    }

    /// Costing no more than this.
    #[must_use]
    pub fn with_max_cost(mut self, most: Option<Money>) -> Self {
        self.settings.max_cost = most;
        self
    }

    /// With this seed.
    #[must_use]
    pub fn with_seed(mut self, seed: Option<u64>) -> Self {
        self.settings.seed = seed;
        self
    }

    /// With an answer of so many tokens at most.
    #[must_use]
    pub fn with_max_output_tokens(mut self, tokens: Option<u64>) -> Self {
        self.settings.max_output_tokens = tokens;
        self
    }

    /// With thoughts of so many tokens at most.
    #[must_use]
    pub fn with_thinking(mut self, tokens: Option<u32>) -> Self {
        self.settings.thinking = tokens;
        self
    }

    /// With the receipt in `meta.provenance`, or without.
    #[must_use]
    pub fn with_receipt(mut self, receipt: bool) -> Self {
        self.settings.receipt = Some(receipt);
        self
    }

    /// Taking no liberties with the model's syntax.
    #[must_use]
    pub fn with_strict_parse(mut self, strict: bool) -> Self {
        self.settings.strict_parse = Some(strict);
        self
    }

    /// Stopping calls whose answer cannot become valid any more.
    #[must_use]
    pub fn with_early_stop(mut self, early: bool) -> Self {
        self.settings.early_stop = Some(early);
        self
    }

    /// Enforcing this much of the contract.
    #[must_use]
    pub fn with_enforcement(mut self, enforcement: Enforcement) -> Self {
        self.settings.enforcement = Some(enforcement);
        self
    }

    /// For this user, in this tenant and session. Take them from a caller that was recognised, never from the input.
    #[must_use]
    pub fn for_user(mut self, user: Option<String>, tenant: Option<String>, session: Option<String>) -> Self {
        (self.user, self.tenant, self.session) = (user, tenant, session);
        self
    }

    /// With these notices of the surface in `meta.warnings`.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<Warning>) -> Self {
        self.warnings = warnings;
        self
    }
}
