//! The runtime of a Rust program: modules, a provider, stores and limits, resolved once and shared by all runs. Every
//! run returns an envelope. Provider errors are reported there too, so a program can start without a provider.

use std::sync::Arc;

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{Failure, Warning};
use cognitive_runtime::host::ModuleRef;
use cognitive_runtime::{Host, RunOptions};

use crate::Result;
use crate::builder::RuntimeBuilder;
use crate::module_run::ModuleRun;
use crate::settings::Settings;
use crate::stores::Stores;

/// Runs modules. Safe to share between tasks and threads.
///
/// [`Runtime::from_env`] resolves like the command line: modules, provider, stores and limits come from the
/// environment,
/// `cognitive.yaml` and `~/.cognitive/config.yaml`. [`Runtime::builder`] starts empty.
pub struct Runtime {
    host: Arc<Host>,
    settings: Settings,
    /// Warnings that every run adds to `meta.warnings`.
    warnings: Vec<Warning>,
    notices: Vec<String>,
    stores: Stores,
}

impl Runtime {
    /// Creates the runtime that the command line would use in this directory and environment.
    ///
    /// Never prints: warnings that a terminal would show are in [`notices`](Self::notices). Never downloads: if the
    /// embedded
    /// model would answer and its weights are missing, every run returns an envelope with `E4001` and a hint (`cogn
    /// model pull`
    /// downloads them). The same applies to a missing key. Returns an error if the configuration cannot be read or is
    /// invalid.
    pub fn from_env() -> Result<Self> {
        Self::builder().with_env().build()
    }

    /// Starts a runtime from explicit parts. It reads neither environment nor files until [`RuntimeBuilder::with_env`]
    /// is called.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    pub(crate) fn new(
        host: Host,
        settings: Settings,
        stores: Stores,
        warnings: Vec<Warning>,
        notices: Vec<String>,
    ) -> Self {
        Self { host: Arc::new(host), settings, warnings, notices, stores }
    }

    /// Prepares a run of a module, by name or path; set its input next. Fails with `E4006` if the module does not
    /// exist, and with `E4000` if its folder is invalid.
    pub fn module(&self, name: &str) -> Result<ModuleRun> {
        Ok(self.module_run(ModuleRef::from_module(name, self.host.modules.module(name)?)))
    }

    /// Prepares a run like [`module`](Self::module), but reports a missing or invalid module in the envelope.
    pub fn module_or_envelope(&self, name: &str) -> ModuleRun {
        self.module_run(ModuleRef::from(name))
    }

    fn module_run(&self, module: ModuleRef) -> ModuleRun {
        ModuleRun::new(module, Arc::clone(&self.host), self.run_options())
    }

    /// Returns the options of a run before the caller adds any: the overrides of these runs, and the warnings that each
    /// of them reports.
    #[doc(hidden)]
    #[must_use]
    pub fn run_options(&self) -> RunOptions {
        RunOptions::default().with_settings(self.settings.asked).with_warnings(self.warnings.clone())
    }

    /// Returns why the first model cannot be called, if so. Every run that would call it reports this.
    #[must_use]
    pub fn unavailable(&self) -> Option<&Failure> {
        self.host.models.first.unavailable()
    }

    /// Returns this runtime if its first model can be called.
    pub fn usable(self) -> Result<Self> {
        match self.unavailable() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self),
        }
    }

    /// Returns the host of all runs, for APIs that need one, such as the router of a server. It includes a provider
    /// that could not be built; every run that would call that provider reports the reason.
    #[doc(hidden)]
    #[must_use]
    pub fn host(&self) -> Arc<Host> {
        Arc::clone(&self.host)
    }

    /// Returns the host for an API that changes it, without a copy if no run shares it.
    #[doc(hidden)]
    #[must_use]
    pub fn into_host(self) -> Host {
        Arc::unwrap_or_clone(self.host)
    }

    /// Returns the source of modules. It works without a provider.
    #[must_use]
    pub fn modules(&self) -> Arc<dyn ModuleSource> {
        Arc::clone(&self.host.modules)
    }

    /// Returns the stores that outlive a run.
    #[doc(hidden)]
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Returns the resolved settings of all modules and of single ones.
    #[doc(hidden)]
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns notices for users, such as settings of an untrusted project file that are not in effect, a database that
    /// cannot be opened, or a fallback model that cannot be called.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}
