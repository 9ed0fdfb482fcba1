//! The runtime of a Rust program: modules, a provider, stores and limits, resolved once and shared by all runs. Every
//! run returns an envelope. Provider errors are reported there too, so a program can start without a provider.

use std::sync::Arc;

use cognitive_contract::Warning;
use cognitive_contract::ports::ModuleSource;
use cognitive_runtime::Host;
use cognitive_runtime::host::ModuleRef;

use crate::Result;
use crate::builder::RuntimeBuilder;
use crate::module_run::ModuleRun;
use crate::settings::Settings;

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

    pub(crate) fn new(host: Host, settings: Settings, warnings: Vec<Warning>, notices: Vec<String>) -> Self {
        Self { host: Arc::new(host), settings, warnings, notices }
    }

    /// Prepares a run of a module, by name or path; set its input next. Fails with `E4006` if the module does not
    /// exist, and with `E4000` if its folder is invalid.
    pub fn module(&self, name: &str) -> Result<ModuleRun> {
        Ok(self.run_of(ModuleRef::loaded(name, self.host.modules.module(name)?)))
    }

    /// Prepares a run like [`module`](Self::module), but reports a missing or invalid module in the envelope.
    pub fn module_or_envelope(&self, name: &str) -> ModuleRun {
        self.run_of(ModuleRef::from(name))
    }

    fn run_of(&self, module: ModuleRef) -> ModuleRun {
        ModuleRun::new(module, Arc::clone(&self.host), self.warnings.clone())
    }

    /// Returns the host of all runs, for APIs that need one, such as the router of a server. It includes a provider
    /// that could not be built; every run that would call that provider reports the reason.
    #[must_use]
    pub fn host(&self) -> Arc<Host> {
        Arc::clone(&self.host)
    }

    /// Returns the source of modules. It works without a provider.
    #[must_use]
    pub fn modules(&self) -> Arc<dyn ModuleSource> {
        Arc::clone(&self.host.modules)
    }

    /// Returns the resolved settings of all modules and of single ones.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns notices for users, such as settings of an untrusted project file that are not in effect.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}
