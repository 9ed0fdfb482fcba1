//! The runtime of a Rust program: modules, a provider, stores and limits, decided once and shared by all runs. Every run
//! ends in an envelope; what is wrong with the provider is said there too, so that a program can start without one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
    plan: RuntimeBuilder,
    general: Arc<Surroundings>,
    /// Modules that the configuration gives a provider of their own.
    special: Mutex<BTreeMap<String, Arc<Surroundings>>>,
    notices: Vec<String>,
}

/// What the runs of one module, or of all modules without settings of their own, have in common.
pub(crate) struct Surroundings {
    pub(crate) settings: Settings,
    /// The host, or why there is none. A run then fails with it.
    pub(crate) host: Result<Arc<Host>>,
    /// What every run says in `meta.warnings`.
    pub(crate) warnings: Vec<Warning>,
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

    pub(crate) fn new(plan: RuntimeBuilder, general: Surroundings, notices: Vec<String>) -> Self {
        Self { plan, general: Arc::new(general), special: Mutex::default(), notices }
    }

    /// A run of a module, by name or path, with an input still to be given. Fails with `E4006` where there is no such module,
    /// and with `E4000` where its folder is broken.
    pub fn module(&self, name: &str) -> Result<ModuleRun> {
        let surroundings = self.surroundings(name)?;
        let module = match &surroundings.host {
            Ok(host) => ModuleRef::loaded(name, host.modules.module(name)?),
            Err(_) => ModuleRef::from(name),
        };
        Ok(ModuleRun::new(module, surroundings))
    }

    /// The same for a caller that wants to hear of a missing or broken module as of everything else: from the envelope.
    pub fn module_or_envelope(&self, name: &str) -> ModuleRun {
        let surroundings = self.surroundings(name).unwrap_or_else(|failure| {
            let settings = self.general.settings.clone();
            Arc::new(Surroundings { settings, host: Err(failure), warnings: Vec::new() })
        });
        ModuleRun::new(ModuleRef::from(name), surroundings)
    }

    /// The host of modules without settings of their own, for what this type does not offer: the router of a server takes
    /// one. The error is why there is none, which every run would answer with.
    pub fn host(&self) -> Result<Arc<Host>> {
        self.general.host.clone()
    }

    /// Where modules come from. They can be looked at also where there is no provider.
    #[must_use]
    pub fn modules(&self) -> Arc<dyn ModuleSource> {
        self.plan.source()
    }

    /// What was decided for modules without settings of their own.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.general.settings
    }

    /// What people should know, such as settings of a project's file that do not count because the file is not trusted.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    fn surroundings(&self, module: &str) -> Result<Arc<Surroundings>> {
        if !self.plan.has_settings_of(module) {
            return Ok(Arc::clone(&self.general));
        }
        let mut special = self.special.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = special.get(module) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(self.plan.surroundings(module)?);
        special.insert(module.to_owned(), Arc::clone(&made));
        Ok(made)
    }
}
