//! The builder of a runtime. Parts that are not set are resolved as on the command line. Without the environment, they
//! are absent.

use std::path::PathBuf;
use std::sync::Arc;

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::ports::Provider;
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::Host;

use crate::Result;
use crate::config::Config;
use crate::embedded::EmbeddedUse;
use crate::media::MediaAccess;
use crate::runtime::Runtime;
use crate::settings::{Environment, OverrideScope, SettingOverrides, Settings};
use crate::stores::Stores;
use crate::wiring::{self, ChosenModels, HostParts};

/// A change to the finished host.
type HostChange = dyn Fn(&mut Host) + Send + Sync;

/// The parts of a [`Runtime`].
#[derive(Clone, Default)]
#[must_use]
pub struct RuntimeBuilder {
    reads_env: bool,
    folders: Vec<PathBuf>,
    modules: Option<Arc<dyn ModuleSource>>,
    provider: Option<Arc<dyn Provider>>,
    overrides: SettingOverrides,
    config: Option<Config>,
    stores: Option<Stores>,
    media: MediaAccess,
    tuned: Option<Arc<HostChange>>,
}

impl RuntimeBuilder {
    /// Reads environment and configuration files for every part that is not set.
    pub fn with_env(mut self) -> Self {
        self.reads_env = true;
        self
    }

    /// Adds a module folder that takes precedence over all other places. The bundled modules are always available.
    pub fn modules(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Uses this module source and no other.
    pub fn module_source(mut self, source: impl ModuleSource + 'static) -> Self {
        self.modules = Some(Arc::new(source));
        self
    }

    /// Uses this provider, regardless of the settings.
    pub fn provider(mut self, provider: impl Provider + 'static) -> Self {
        self.provider = Some(Arc::new(provider));
        self
    }

    /// Sets overrides for environment and configuration: provider name, model and limits.
    pub fn overrides(mut self, overrides: SettingOverrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// Uses this configuration instead of the files.
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Uses these stores instead of the configured database.
    pub fn stores(mut self, stores: Stores) -> Self {
        self.stores = Some(stores);
        self
    }

    /// Sets the path of the `cogn` program, which reads documents in a separate process. Without it a document fails
    /// with `E4000`.
    pub fn document_reader(mut self, program: impl Into<PathBuf>) -> Self {
        self.media.document_reader = Some(program.into());
        self
    }

    /// Changes the finished host: tools, thresholds, capabilities.
    pub fn tune(mut self, change: impl Fn(&mut Host) + Send + Sync + 'static) -> Self {
        self.tuned = Some(Arc::new(change));
        self
    }

    /// Builds the runtime. Fails if the configuration cannot be read or is invalid. A provider that cannot be built
    /// does not fail here; every run that would call it reports the reason.
    pub fn build(mut self) -> Result<Runtime> {
        let mut notices = Vec::new();
        if self.config.is_none() && self.reads_env {
            let layers = wiring::layers(None, None)?;
            notices.extend(layers.notice());
            self.config = Some(layers.config());
        }
        let nothing: Environment<'_> = &|_| None;
        let environment: Environment<'_> = if self.reads_env { &wiring::environment } else { nothing };
        let config = self.config.take().unwrap_or_default();
        let scope = OverrideScope::Process;
        let settings = Settings::resolve(&self.overrides, &config, environment, scope)?;
        let (stores, warning) = match self.stores.take() {
            Some(stores) => (stores, None),
            // Without the environment, only the configuration can name a database.
            None if !self.reads_env && settings.database.is_none() => (Stores::default(), None),
            None => Stores::open_or_warn(&settings, true)?,
        };
        notices.extend(warning.iter().map(|warning| warning.message.clone()));
        let models = match self.provider.take() {
            Some(provider) => ChosenModels::from(provider),
            None => wiring::models_or_reason(&settings, environment, EmbeddedUse::Server, None),
        };
        let modules = self.source();
        let parts = HostParts { modules, models, stores, media: self.media };
        let mut host = wiring::host(&settings, parts)?;
        if let Some(change) = &self.tuned {
            change(&mut host);
        }
        Ok(Runtime::new(host, settings, warning.into_iter().collect(), notices))
    }

    /// Returns the source of modules.
    fn source(&self) -> Arc<dyn ModuleSource> {
        self.modules.clone().unwrap_or_else(|| {
            let library = if self.reads_env { wiring::library() } else { Library::default() };
            Arc::new(ModuleCache::new(library.with_folders(&self.folders)))
        })
    }
}
