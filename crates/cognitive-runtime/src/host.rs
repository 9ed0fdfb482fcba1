//! The dependencies and the input of a run: the host that a surface builds once, and the request of one run. Builds
//! no provider itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cognitive_contract::compose::CustomAggregate;
use cognitive_contract::context::Sanitiser;
use cognitive_contract::media::{MediaLimits, MediaSource};
use cognitive_contract::policy::Caller;
use cognitive_contract::ports::{AuditLog, ContextStore, ModuleSource, PartJournal, Provider, Timer};
use cognitive_contract::tier::Gate;
use cognitive_contract::tools::ToolBox;
use cognitive_contract::{Capabilities, Failure, Module, RunSettings, Warning};
use cognitive_ports::prices::PriceTable;
use cognitive_ports::spending::{DayBudget, SpendingLedger};
use serde_json::Value;

use crate::clock::Clock;
use crate::ladder::{ClimbRules, Ladder};
use crate::review::Reviewing;
use crate::spans::SpanParent;
use crate::stages::requirements::MEDIA;
use crate::tools::built_in;

/// The environment of all runs of a process. Safe to share between runs; a clone shares all of its contents.
#[derive(Clone)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the settings are independent")]
pub struct Host {
    /// The source of modules.
    pub modules: Arc<dyn ModuleSource>,
    /// The models that answer for modules without models of their own.
    pub models: ModelChain,
    /// The operator's options for all runs.
    pub settings: RunSettings,
    /// The operator's settings for single modules, by name. They apply wherever the module runs, also as a part.
    pub of_module: Arc<BTreeMap<String, ModuleSettings>>,
    /// The operator's thresholds.
    pub gate: Gate,
    /// The audit log.
    pub audit: Option<Arc<dyn AuditLog>>,
    /// Set if a model call that cannot be recorded must not be made.
    pub audit_required: bool,
    /// Set if audit records contain input and envelope.
    pub audit_payloads: bool,
    /// The store of context between runs. Without it, context comes from the caller alone and none is stored.
    pub context: Option<Arc<dyn ContextStore>>,
    /// The rules for members of context that the model must not see.
    pub sanitiser: Sanitiser,
    /// The clock for context that expires.
    pub clock: Clock,
    /// The features of this runtime; an operator may switch some off.
    pub capabilities: Capabilities,
    /// The function for `aggregate: custom`. Without it, modules that need it are not valid here.
    pub aggregate: Option<CustomAggregate>,
    /// The source that fetches and inspects media. Without it, media items are refused, except for saved replies.
    pub media: Option<Arc<dyn MediaSource>>,
    /// The size limits of media.
    pub media_limits: MediaLimits,
    /// Set if image metadata, such as the location, may reach the model. (S-30)
    pub keep_metadata: bool,
    /// Cancels tools and parts that exceed their time. Without it only the provider ends its own calls.
    pub timer: Option<Arc<dyn Timer>>,
    /// The tools that models may call, if the running module requests them and its policies allow them.
    pub tools: ToolBox,
    /// The prices of models.
    pub prices: Arc<PriceTable>,
    /// The daily budget and its ledger.
    pub spending: Option<Spending>,
    /// The rules that select runs for review, and the earlier decisions.
    pub review: Option<Reviewing>,
    /// Set for runs that try something out; see [`Host::for_experiments`].
    pub(crate) is_experimental: bool,
    /// The journal of the answers of a run's parts. It belongs to one run, and so does a host that has one.
    pub journal: Option<Arc<dyn PartJournal>>,
}

/// The model that is asked first and the fallback chain above it. A clone shares both.
#[derive(Clone)]
pub struct ModelChain {
    /// The model that is asked first.
    pub first: Arc<dyn Provider>,
    /// The fallback chain: the models that are called if an answer is not good enough.
    pub ladder: Option<Arc<Ladder>>,
}

impl ModelChain {
    /// A chain of several models.
    #[must_use]
    pub fn with_ladder(first: Arc<dyn Provider>, ladder: Ladder) -> Self {
        Self { first, ladder: Some(Arc::new(ladder)) }
    }

    /// Returns all models, in the order in which they are asked.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        std::iter::once(&self.first).chain(self.ladder.iter().flat_map(|ladder| &ladder.rungs))
    }

    /// The rules for asking the next model.
    pub(crate) fn rules(&self) -> ClimbRules {
        self.ladder.as_ref().map(|ladder| ladder.rules).unwrap_or_default()
    }

    fn wrap_providers(&self, wrap: &mut impl FnMut(&Arc<dyn Provider>) -> Arc<dyn Provider>) -> Self {
        let ladder = self.ladder.as_ref().map(|ladder| {
            let rungs = ladder.rungs.iter().map(&mut *wrap).collect();
            Arc::new(Ladder { rungs, rules: ladder.rules })
        });
        Self { first: wrap(&self.first), ladder }
    }
}

impl From<Arc<dyn Provider>> for ModelChain {
    fn from(first: Arc<dyn Provider>) -> Self {
        Self { first, ladder: None }
    }
}

impl fmt::Debug for ModelChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelChain").field("first", &self.first.name()).field("ladder", &self.ladder).finish()
    }
}

/// The operator's configuration of one module.
#[derive(Debug, Clone, Default)]
pub struct ModuleSettings {
    /// The models that answer for it.
    pub models: Option<ModelChain>,
    /// The options of its runs.
    pub settings: RunSettings,
    /// Set if it may only ask models on this machine. The same then applies to its parts.
    pub local_only: bool,
}

/// The models and options that were decided for one run.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// The models.
    pub models: ModelChain,
    /// The options, with every source merged.
    pub settings: RunSettings,
}

/// A spending budget and its ledger.
#[derive(Clone)]
pub struct Spending {
    /// The daily budget.
    pub budget: DayBudget,
    /// The ledger, for all processes that share the budget.
    pub ledger: Arc<dyn SpendingLedger>,
}

impl Host {
    /// A host with the default thresholds and the built-in tools.
    #[must_use]
    pub fn new(modules: Arc<dyn ModuleSource>, provider: Arc<dyn Provider>) -> Self {
        let clock = Clock::new();
        Self {
            tools: built_in(&clock),
            modules,
            models: ModelChain::from(provider),
            settings: RunSettings::default(),
            of_module: Arc::default(),
            gate: Gate::default(),
            audit: None,
            audit_required: false,
            audit_payloads: false,
            context: None,
            sanitiser: Sanitiser::default(),
            clock,
            capabilities: Capabilities::default(),
            aggregate: None,
            media: None,
            media_limits: MediaLimits::default(),
            keep_metadata: false,
            timer: None,
            prices: PriceTable::built_in(),
            spending: None,
            review: None,
            is_experimental: false,
            journal: None,
        }
    }

    /// Returns the same host for runs of an author who tries something out. Their records are marked, and none of them is
    /// queued for review: a decision about it would count as one about a real answer.
    #[must_use]
    pub fn for_experiments(&self) -> Self {
        Self { is_experimental: true, ..self.clone() }
    }

    /// Returns the same host with one model for every module. It overrides the models of single modules.
    #[must_use]
    pub fn with_provider(&self, provider: Arc<dyn Provider>) -> Self {
        let mut host = Self { models: provider.into(), ..self.clone() };
        if host.of_module.values().any(|of_module| of_module.models.is_some()) {
            for of_module in Arc::make_mut(&mut host.of_module).values_mut() {
                of_module.models = None;
            }
        }
        host
    }

    /// Configures one module, wherever it runs.
    pub fn configure(&mut self, module: impl Into<String>, of_module: ModuleSettings) {
        Arc::make_mut(&mut self.of_module).insert(module.into(), of_module);
    }

    /// Returns the same host for runs of one module with a model that the caller chose. The parts of the module keep
    /// theirs.
    #[must_use]
    pub fn for_runs_of(&self, module: &str, models: ModelChain) -> Self {
        let mut host = Self { models, ..self.clone() };
        if host.of_module.contains_key(module)
            && let Some(own) = Arc::make_mut(&mut host.of_module).get_mut(module)
        {
            own.models = None;
        }
        host
    }

    /// Returns the models that answer for a module, unless a caller chooses others.
    #[must_use]
    pub fn models_for(&self, module: &str) -> &ModelChain {
        self.of_module.get(module).and_then(|own| own.models.as_ref()).unwrap_or(&self.models)
    }

    /// Replaces every model of this host, for wrappers that watch or limit calls.
    pub fn wrap_models(&mut self, mut wrap: impl FnMut(&Arc<dyn Provider>) -> Arc<dyn Provider>) {
        self.models = self.models.wrap_providers(&mut wrap);
        for of_module in Arc::make_mut(&mut self.of_module).values_mut() {
            of_module.models = of_module.models.as_ref().map(|models| models.wrap_providers(&mut wrap));
        }
    }

    /// Returns whether a module may only ask models on this machine.
    pub(crate) fn is_local_only(&self, mut concerns: impl FnMut(&str) -> bool) -> bool {
        self.of_module.iter().any(|(name, of_module)| of_module.local_only && concerns(name))
    }

    /// Decides the models and options of a root run. Options of the request come first, then those of the module,
    /// then the operator's for all runs. A remote caller cannot loosen the operator's limits. (D-33)
    #[must_use]
    pub fn decide(&self, module: &str, options: &RunOptions) -> RunPlan {
        let own = self.of_module.get(module);
        let operator = own.map_or(self.settings, |own| own.settings.or(self.settings));
        let asked = if options.remote { options.settings.limited_by(operator) } else { options.settings };
        RunPlan { models: self.models_for(module).clone(), settings: asked.or(operator) }
    }

    /// Decides the same for a part: its module's configuration comes first, then the plan of the run above it.
    #[must_use]
    pub fn decide_part(&self, module: &str, above: &RunPlan, is_remote: bool) -> RunPlan {
        let Some(own) = self.of_module.get(module) else { return above.clone() };
        let settings = if is_remote { own.settings.limited_by(above.settings) } else { own.settings };
        let models = own.models.as_ref().unwrap_or(&above.models);
        RunPlan { models: models.clone(), settings: settings.or(above.settings) }
    }

    /// Declares the features of this host, as far as its models support them. (CAP-001, CAP-002)
    #[must_use]
    pub fn declare_capabilities(&self) -> Capabilities {
        let of_modules = self.of_module.values().flat_map(|of_module| &of_module.models);
        let chains = std::iter::once(&self.models).chain(of_modules);
        let rungs: Vec<&Arc<dyn Provider>> = chains.flat_map(ModelChain::all).collect();
        let replays = rungs.iter().any(|rung| rung.capabilities().contains(&MEDIA));
        let takes = |category| replays || rungs.iter().any(|rung| rung.takes(category).is_some());
        let gives = |category| replays || rungs.iter().any(|rung| rung.gives(category));
        self.capabilities.clone().with_provider(takes, gives)
    }

    /// Enables media from this source, within the limits, and adds them to the declared capabilities.
    pub fn take_media(&mut self, source: Arc<dyn MediaSource>, limits: MediaLimits) {
        self.capabilities.take_media(&limits);
        self.media = Some(source);
        self.media_limits = limits;
    }
}

/// The request of one run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The module to run.
    pub module: ModuleRef,
    /// The caller's input.
    pub input: RunInput,
    /// The options of the run.
    pub options: RunOptions,
}

/// The module to run. A caller that has already looked it up passes it on, so that it is looked up once.
#[derive(Debug, Clone)]
pub enum ModuleRef {
    /// A name or a path; the run loads the module.
    Name(String),
    /// Already loaded.
    Loaded {
        /// The name or path that the caller was given; records and traces carry it.
        name: String,
        /// The module.
        module: Arc<Module>,
    },
    /// Refused by the surface. The run ends with this failure, and has a trace and a record like any other.
    Refused {
        /// The name or path that the caller gave.
        name: String,
        /// The reason.
        failure: Failure,
    },
}

impl ModuleRef {
    /// A module that was found under this name.
    #[must_use]
    pub fn from_module(name: impl Into<String>, module: Arc<Module>) -> Self {
        Self::Loaded { name: name.into(), module }
    }

    /// The name or path that the caller gave.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Loaded { name, .. } | Self::Refused { name, .. } => name,
        }
    }

    /// The module's own name, as far as it is known before the module is loaded.
    pub(crate) fn own_name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Refused { name, .. } => name,
            Self::Loaded { module, .. } => &module.manifest.name,
        }
    }

    /// Returns the module, from the source unless it is already loaded.
    pub(crate) fn load(&self, modules: &dyn ModuleSource) -> Result<Arc<Module>, Failure> {
        match self {
            Self::Name(name) => modules.module(name),
            Self::Loaded { module, .. } => Ok(Arc::clone(module)),
            Self::Refused { failure, .. } => Err(failure.clone()),
        }
    }
}

impl From<&str> for ModuleRef {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<&String> for ModuleRef {
    fn from(name: &String) -> Self {
        Self::Name(name.clone())
    }
}

impl From<String> for ModuleRef {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

/// The caller's input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunInput {
    /// An object for the input schema.
    Json(Value),
    /// An object for the input schema, shared with other runs without a copy.
    Shared(Arc<Value>),
    /// Unparsed JSON; the run reports its faults in the usual order.
    Raw(String),
    /// Free text (`--args`), which no schema judges.
    Text(String),
    /// An input that the surface could not read, with the reason. The run fails with it.
    Unreadable(Failure),
}

/// The caller's options of a run. A run inherits nothing from the runs above it through these options, except if the
/// runtime itself starts a part.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The options that the caller set for this run.
    pub settings: RunSettings,
    /// The models of the run above, for a part.
    pub(crate) models: Option<ModelChain>,
    /// The kind of caller.
    pub caller: Caller,
    /// The trace id in logs and audit records; generated if absent.
    pub trace_id: Option<String>,
    /// Set to refuse a run whose answer would not be streamed (E4010), instead of sending it whole. (CAP-013)
    pub require_streaming: bool,
    /// Notices of the surface for `meta.warnings`.
    pub warnings: Vec<Warning>,
    /// The name of the caller's key, for the audit.
    pub key: Option<String>,
    /// The owner of the context that is read and stored. A surface takes it from an authenticated caller, never from
    /// the input.
    pub user: Option<String>,
    /// The owner of the uploads that an input may name, if not the user: a server may accept uploads from callers
    /// that it cannot authenticate.
    pub uploads_of: Option<String>,
    /// The tenant of the user, if the service has tenants.
    pub tenant: Option<String>,
    /// The session that context is read from and stored for.
    pub session: Option<String>,
    /// True for a remote caller: it has no access to files of this machine (SEC-010) and cannot
    /// loosen the operator's limits.
    pub remote: bool,
    /// The parent span of this run's spans. Without it the run makes no spans and reads no clock for them.
    pub spans: Option<Arc<SpanParent>>,
}

impl RunRequest {
    /// A run with the default options.
    #[must_use]
    pub fn new(module: impl Into<ModuleRef>, input: Value) -> Self {
        Self { module: module.into(), input: RunInput::Json(input), options: RunOptions::default() }
    }
}
