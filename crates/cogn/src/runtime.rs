//! The runtime of a Rust program: modules, a provider, stores and limits, decided once and shared by all runs. Every run
//! ends in an envelope; what is wrong with the provider is said there too, so that a program can start without one.

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
/// [`Runtime::from_env`] decides like the command line: modules, provider, stores and limits come from the environment,
/// `cognitive.yaml` and `~/.cognitive/config.yaml`. [`Runtime::builder`] begins with nothing.
pub struct Runtime {
    host: Arc<Host>,
    settings: Settings,
    /// Notices that every run puts into `meta.warnings`.
    warnings: Vec<Warning>,
    notices: Vec<String>,
}

impl Runtime {
    /// A runtime as the command line would have it in this directory and environment.
    ///
    /// Never prints: what would be a warning on a terminal is in [`notices`](Self::notices). Never downloads: where the
    /// embedded model answers and its weights are not on this machine, every run ends in an envelope with `E4001` and a hint
    /// (`cogn model pull` fetches them). The same holds for a key that is missing. An error is returned for a configuration
    /// that cannot be read, and for one that says nothing sensible.
    pub fn from_env() -> Result<Self> {
        Self::builder().with_env().build()
    }

    /// A runtime of explicit parts. It reads neither environment nor files until [`RuntimeBuilder::with_env`] is called.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    pub(crate) fn new(host: Host, settings: Settings, warnings: Vec<Warning>, notices: Vec<String>) -> Self {
        Self { host: Arc::new(host), settings, warnings, notices }
    }

    /// A run of a module, by name or path, with an input still to be given. Fails with `E4006` where there is no such module,
    /// and with `E4000` where its folder is broken.
    pub fn module(&self, name: &str) -> Result<ModuleRun> {
        Ok(self.run_of(ModuleRef::loaded(name, self.host.modules.module(name)?)))
    }

    /// The same for a caller that wants to hear of a missing or broken module as of everything else: from the envelope.
    pub fn module_or_envelope(&self, name: &str) -> ModuleRun {
        self.run_of(ModuleRef::from(name))
    }

    fn run_of(&self, module: ModuleRef) -> ModuleRun {
        ModuleRun::new(module, Arc::clone(&self.host), self.warnings.clone())
    }

    /// The host of all runs, for what this type does not offer: the router of a server takes one. A provider that could not
    /// be built is in it, and every run that would ask it answers with the reason.
    #[must_use]
    pub fn host(&self) -> Arc<Host> {
        Arc::clone(&self.host)
    }

    /// Where modules come from. They can be looked at also where there is no provider.
    #[must_use]
    pub fn modules(&self) -> Arc<dyn ModuleSource> {
        Arc::clone(&self.host.modules)
    }

    /// What was decided for all modules and for single ones.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What people should know, such as settings of a project's file that do not count because the file is not trusted.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}
