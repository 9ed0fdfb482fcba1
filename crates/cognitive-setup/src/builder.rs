//! The builder of a runtime: the way in for every surface. Parts that are not set are resolved as on the command line.
//! Without the environment, they are absent.
//!
//! Methods that only the surfaces of this repository need are hidden from the documentation. The crate `cogn` promises
//! the others, which are in its `public-api.txt`.

use std::path::PathBuf;
use std::sync::Arc;

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::ports::Provider;
use cognitive_contract::tools::Tool;
use cognitive_contract::{Failure, RunSettings, Warning};
use cognitive_library::{Library, ModuleCache};
use cognitive_ports::spending::DayBudget;
use cognitive_runtime::Host;

use crate::config::Config;
use crate::embedded_model::{EmbeddedUse, WeightsFetch};
use crate::media::MediaAccess;
use crate::runtime::Runtime;
use crate::settings::{Environment, OverrideScope, SettingOverrides, Settings};
use crate::stores::Stores;
use crate::weights::PullProgress;
use crate::wiring::{self, ChosenModels, HostParts};
use crate::{Result, planned_models};

/// A change to the finished host.
type HostChange = dyn Fn(&mut Host) + Send + Sync;
/// A change to the resolved settings.
type SettingsChange = dyn Fn(&mut Settings) + Send + Sync;
/// Opens the stores. The warning is for `meta.warnings` of every run.
type OpenStores = dyn Fn(&Settings) -> Result<(Stores, Option<Warning>)> + Send + Sync;

/// The source of the models.
#[derive(Clone, Default)]
enum ModelOrigin {
    /// The settings.
    #[default]
    Settings,
    /// The caller.
    Given(Arc<dyn Provider>),
    /// The settings, for a plan: no model is opened and none can answer.
    Planned,
}

/// Permission to download missing weights while a runtime is built.
#[derive(Clone, Copy)]
pub struct WeightsDownload<'a> {
    /// Receives the progress.
    pub progress: &'a dyn PullProgress,
    /// Called before a download starts: a run that would fail before its call should not trigger one.
    pub before: &'a (dyn Fn(&Stores) -> Result<()> + 'a),
}

/// The parts of a [`Runtime`].
#[derive(Clone)]
#[must_use]
pub struct RuntimeBuilder {
    reads_env: bool,
    folders: Vec<PathBuf>,
    modules: Option<Arc<dyn ModuleSource>>,
    models: ModelOrigin,
    workload: EmbeddedUse,
    overrides: SettingOverrides,
    module: Option<String>,
    config: Option<Config>,
    stores: Option<Arc<OpenStores>>,
    media: MediaAccess,
    tools: Vec<Arc<dyn Tool>>,
    resettled: Option<Arc<SettingsChange>>,
    tuned: Option<Arc<HostChange>>,
}

impl Default for RuntimeBuilder {
    fn default() -> Self {
        Self {
            reads_env: false,
            folders: Vec::new(),
            modules: None,
            models: ModelOrigin::default(),
            workload: EmbeddedUse::Server,
            overrides: SettingOverrides::default(),
            module: None,
            config: None,
            stores: None,
            media: MediaAccess::default(),
            tools: Vec::new(),
            resettled: None,
            tuned: None,
        }
    }
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
    pub fn module_source(self, source: impl ModuleSource + 'static) -> Self {
        self.shared_modules(Arc::new(source))
    }

    /// Uses this module source and no other.
    pub fn shared_modules(mut self, source: Arc<dyn ModuleSource>) -> Self {
        self.modules = Some(source);
        self
    }

    /// Sets the name of the provider, such as `openai` or `embedded`.
    pub fn provider_name(mut self, name: impl Into<String>) -> Self {
        self.overrides.provider = Some(name.into());
        self
    }

    /// Sets the model, by the name that its provider uses.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.overrides.model = Some(name.into());
        self
    }

    /// Sets the options of all runs. A run can override them.
    #[doc(hidden)]
    pub fn run_settings(mut self, settings: RunSettings) -> Self {
        self.overrides.run = settings;
        self
    }

    /// Uses this provider, regardless of the settings.
    pub fn provider(self, provider: impl Provider + 'static) -> Self {
        self.shared_provider(Arc::new(provider))
    }

    /// Uses this provider, regardless of the settings.
    pub fn shared_provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.models = ModelOrigin::Given(provider);
        self
    }

    /// Builds a runtime that only estimates: no model is opened, no budget is spent and nothing is stored.
    #[doc(hidden)]
    pub fn for_estimates(mut self) -> Self {
        self.models = ModelOrigin::Planned;
        self.stores(Stores::default()).settle(|settings| settings.budget = DayBudget::default())
    }

    /// Sets whether runs are recorded, regardless of the settings.
    #[doc(hidden)]
    pub fn with_audit(self, is_audited: bool) -> Self {
        if is_audited {
            return self;
        }
        self.settle(|settings| (settings.audit_enabled, settings.store) = (false, None))
    }

    /// Prepares the embedded model for one answer at a time instead of many callers.
    #[doc(hidden)]
    pub fn one_by_one(mut self) -> Self {
        self.workload = EmbeddedUse::OneByOne;
        self
    }

    /// Adds a tool that modules may call.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Sets overrides for environment and configuration.
    #[doc(hidden)]
    pub fn overrides(mut self, overrides: SettingOverrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// Says that all runs are runs of this module, by its own name. The overrides are then options of these runs, and
    /// take precedence over the configuration of the module. (D-33)
    #[doc(hidden)]
    pub fn for_module(mut self, name: impl Into<String>) -> Self {
        self.module = Some(name.into());
        self
    }

    /// Uses this configuration instead of the files.
    #[doc(hidden)]
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Uses these stores instead of the configured database.
    #[doc(hidden)]
    pub fn stores(self, stores: Stores) -> Self {
        self.stores_by(move |_| Ok((stores.clone(), None)))
    }

    /// Opens the stores this way instead of the usual one.
    #[doc(hidden)]
    pub fn stores_by(
        mut self,
        open: impl Fn(&Settings) -> Result<(Stores, Option<Warning>)> + Send + Sync + 'static,
    ) -> Self {
        self.stores = Some(Arc::new(open));
        self
    }

    /// Sets the path of the `cogn` program, which reads documents in a separate process. Without it a document fails
    /// with `E4000`.
    pub fn document_reader(mut self, program: impl Into<PathBuf>) -> Self {
        self.media.document_reader = Some(program.into());
        self
    }

    /// Accepts uploads in inputs.
    #[doc(hidden)]
    #[cfg(feature = "media")]
    pub fn uploads(mut self, uploads: Option<cognitive_media::Uploads>) -> Self {
        self.media.uploads = uploads;
        self
    }

    /// Changes the resolved settings.
    #[doc(hidden)]
    pub fn settle(mut self, change: impl Fn(&mut Settings) + Send + Sync + 'static) -> Self {
        let earlier = self.resettled.take();
        self.resettled = Some(Arc::new(move |settings| {
            if let Some(earlier) = &earlier {
                earlier(settings);
            }
            change(settings);
        }));
        self
    }

    /// Changes the finished host: thresholds, capabilities.
    #[doc(hidden)]
    pub fn tune(mut self, change: impl Fn(&mut Host) + Send + Sync + 'static) -> Self {
        self.tuned = Some(Arc::new(change));
        self
    }

    /// Resolves the settings and builds nothing.
    #[doc(hidden)]
    pub fn settings(&self) -> Result<Settings> {
        Ok(self.resolve_settings()?.0)
    }

    /// Builds the runtime. Fails if the configuration cannot be read or is invalid. A provider that cannot be built
    /// does not fail here; every run that would call it reports the reason.
    pub fn build(self) -> Result<Runtime> {
        self.build_with(None)
    }

    /// Builds the runtime like [`build`](Self::build), and downloads missing weights of the embedded model if permitted.
    #[doc(hidden)]
    pub fn build_with(mut self, download: Option<WeightsDownload<'_>>) -> Result<Runtime> {
        let (settings, mut notices) = self.resolve_settings()?;
        let (stores, warning) = match &self.stores {
            Some(open) => open(&settings)?,
            // Without the environment, only the configuration can name a database.
            None if !self.reads_env && settings.database.is_none() => (Stores::default(), None),
            None => Stores::open_or_warn(&settings, true)?,
        };
        notices.extend(warning.iter().map(|warning| warning.message.clone()));
        let models = match &self.models {
            ModelOrigin::Given(provider) => ChosenModels::from(Arc::clone(provider)),
            ModelOrigin::Planned => planned_models::models(&settings)?,
            ModelOrigin::Settings => {
                let before = || download.map_or(Ok(()), |download| (download.before)(&stores));
                let fetch =
                    download.map(|download| WeightsFetch { progress: download.progress, before: &before });
                wiring::models(&settings, self.environment(), self.workload, fetch)
            }
        };
        notices.extend(models.left_out.iter().cloned());
        let parts = HostParts {
            modules: self.source(),
            models,
            stores: stores.clone(),
            media: std::mem::take(&mut self.media),
        };
        let mut host = wiring::host(&settings, parts)?;
        for tool in &self.tools {
            host.tools
                .add(Arc::clone(tool))
                .map_err(|error| Failure::config_fault(format!("a tool cannot be used: {error}")))?;
        }
        if let Some(change) = &self.tuned {
            change(&mut host);
        }
        Ok(Runtime::new(host, settings, stores, warning.into_iter().collect(), notices))
    }

    /// Returns the resolved settings, and notices about files that are not in effect.
    fn resolve_settings(&self) -> Result<(Settings, Vec<String>)> {
        let mut notices = Vec::new();
        let config = match &self.config {
            Some(config) => config.clone(),
            None if self.reads_env => {
                let layers = wiring::layers(None, None)?;
                notices.extend(layers.notice());
                layers.config()
            }
            None => Config::default(),
        };
        let scope = self.module.as_deref().map_or(OverrideScope::Process, OverrideScope::Runs);
        let mut settings = Settings::resolve(&self.overrides, &config, self.environment(), scope)?;
        if let Some(change) = &self.resettled {
            change(&mut settings);
        }
        Ok((settings, notices))
    }

    fn environment(&self) -> Environment<'static> {
        if self.reads_env { &wiring::environment } else { &|_| None }
    }

    /// Returns the source of modules.
    fn source(&self) -> Arc<dyn ModuleSource> {
        self.modules.clone().unwrap_or_else(|| {
            let library = if self.reads_env { wiring::library() } else { Library::default() };
            Arc::new(ModuleCache::new(library.with_folders(&self.folders)))
        })
    }
}
