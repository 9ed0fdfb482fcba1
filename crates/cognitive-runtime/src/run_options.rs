//! Builder methods for the options of a run: `RunOptions::default().with_settings(…)`. Decides nothing.

use cognitive_contract::{RunSettings, Warning};

use crate::host::RunOptions;

impl RunOptions {
    /// Sets the settings of the run.
    #[must_use]
    pub fn with_settings(mut self, settings: RunSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets whether the receipt is returned in `meta.provenance`.
    #[must_use]
    pub fn with_receipt(mut self, receipt: bool) -> Self {
        self.settings.receipt = Some(receipt);
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
