//! What a run needs and what it is asked: the host that a surface builds once, and the request of one run.
//! Builds no provider itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cognitive_contract::compose::CustomAggregate;
use cognitive_contract::context::Sanitiser;
use cognitive_contract::media::{MediaLimits, MediaSource};
use cognitive_contract::policy::Caller;
use cognitive_contract::ports::{AuditLog, ContextStore, ModuleSource, PartJournal, Provider, Timer};
use cognitive_contract::prices::PriceTable;
use cognitive_contract::spending::{DayBudget, SpendingLedger};
use cognitive_contract::tier::Gate;
use cognitive_contract::tools::ToolBox;
use cognitive_contract::{Capabilities, Failure, Module, RunSettings, Warning};
use serde_json::Value;

use crate::clock::Clock;
use crate::ladder::{ClimbRules, Ladder};
use crate::review::Reviewing;
use crate::spans::SpanParent;
use crate::stages::requirements::MEDIA;
use crate::tools::built_in;

/// The surroundings of all runs of a process. Safe to share between runs; a copy shares all that is in it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Host {
    /// Where modules come from.
    pub modules: Arc<dyn ModuleSource>,
    /// The models that answer for modules without models of their own.
    pub models: ModelChain,
    /// The operator's options for all runs.
    pub settings: RunSettings,
    /// What the operator configured for single modules, by name. It holds wherever the module runs, also as a part.
    pub of_module: Arc<BTreeMap<String, ModuleSettings>>,
    /// The operator's thresholds.
    pub gate: Gate,
    /// Who keeps the audit.
    pub audit: Option<Arc<dyn AuditLog>>,
    /// Whether a model call that cannot be recorded is not made.
    pub audit_required: bool,
    /// Whether records carry input and envelope.
    pub audit_payloads: bool,
    /// Who keeps context between runs. Without, context comes from the caller alone and nothing is kept.
    pub context: Option<Arc<dyn ContextStore>>,
    /// Which members of context are kept from the model.
    pub sanitiser: Sanitiser,
    /// What time it is for context that expires.
    pub clock: Clock,
    /// What this runtime offers; an operator may switch parts off.
    pub capabilities: Capabilities,
    /// The function for `aggregate: custom`. Without, modules that ask for it are not valid here.
    pub aggregate: Option<CustomAggregate>,
    /// Who gets media and looks into them. Without, items are refused, except for saved replies.
    pub media: Option<Arc<dyn MediaSource>>,
    /// What media may weigh.
    pub media_limits: MediaLimits,
    /// Whether notes about an image, such as where it was taken, reach the model. (S-30)
    pub keep_metadata: bool,
    /// Ends tools and parts that take longer than they may. Without one only the provider ends its own calls.
    pub timer: Option<Arc<dyn Timer>>,
    /// What models may call, if the module that runs asks for it and its policies let it.
    pub tools: ToolBox,
    /// What models cost.
    pub prices: Arc<PriceTable>,
    /// What may be spent in a day, and who keeps the books of it.
    pub spending: Option<Spending>,
    /// Which runs people look at, and what they decided before.
    pub review: Option<Reviewing>,
    /// Who remembers what the parts of a run answered. It belongs to one run, and so does a host that has one.
    pub journal: Option<Arc<dyn PartJournal>>,
}

/// The model that is asked first and the fallback chain above it. A clone shares both.
#[derive(Clone)]
pub struct ModelChain {
    /// The model that is asked first.
    pub first: Arc<dyn Provider>,
    /// The models that are asked when its answer is not good enough.
    pub ladder: Option<Arc<Ladder>>,
}

impl ModelChain {
    /// A chain of several models.
    #[must_use]
    pub fn with_ladder(first: Arc<dyn Provider>, ladder: Ladder) -> Self {
        Self { first, ladder: Some(Arc::new(ladder)) }
    }

    /// All models, in the order in which they are asked.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        std::iter::once(&self.first).chain(self.ladder.iter().flat_map(|ladder| &ladder.rungs))
    }

    /// The rules for asking the next model.
    pub(crate) fn rules(&self) -> ClimbRules {
        self.ladder.as_ref().map(|ladder| ladder.rules).unwrap_or_default()
    }

    fn wrapped(&self, wrap: &mut impl FnMut(&Arc<dyn Provider>) -> Arc<dyn Provider>) -> Self {
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
    /// Whether it may only ask models on this machine. The same then holds for its parts.
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

/// A budget of money, and its books.
#[derive(Clone)]
pub struct Spending {
    /// What may be spent in a day.
    pub budget: DayBudget,
    /// Who keeps the books, for all processes that share the budget.
    pub ledger: Arc<dyn SpendingLedger>,
}

impl Host {
    /// A host with the usual thresholds and the tools that come along.
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
            journal: None,
        }
    }

    /// The same host with one model for every module, whatever is configured for single modules.
    #[must_use]
    pub fn asking(&self, provider: Arc<dyn Provider>) -> Self {
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

    /// The same host for runs of one module with a model that their caller chose. The parts of the module keep theirs.
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

    /// The models that answer for a module, unless a caller chooses others.
    #[must_use]
    pub fn models_for(&self, module: &str) -> &ModelChain {
        self.of_module.get(module).and_then(|own| own.models.as_ref()).unwrap_or(&self.models)
    }

    /// Replaces every model of this host, for wrappers that watch or limit calls.
    pub fn wrap_models(&mut self, mut wrap: impl FnMut(&Arc<dyn Provider>) -> Arc<dyn Provider>) {
        self.models = self.models.wrapped(&mut wrap);
        for of_module in Arc::make_mut(&mut self.of_module).values_mut() {
            of_module.models = of_module.models.as_ref().map(|models| models.wrapped(&mut wrap));
        }
    }

    /// Returns whether a module may only ask models on this machine.
    pub(crate) fn is_local_only(&self, mut concerns: impl FnMut(&str) -> bool) -> bool {
        self.of_module.iter().any(|(name, of_module)| of_module.local_only && concerns(name))
    }

    /// Decides the models and options of a run that a surface asks for. Options of the request come first, then those of
    /// the module, then the operator's for all runs. A remote caller cannot loosen the operator's limits. (D-33)
    #[must_use]
    pub fn decide(&self, module: &str, options: &RunOptions) -> RunPlan {
        let own = self.of_module.get(module);
        let operator = own.map_or(self.settings, |own| own.settings.over(self.settings));
        let asked = if options.remote { options.settings.within(operator) } else { options.settings };
        RunPlan { models: self.models_for(module).clone(), settings: asked.over(operator) }
    }

    /// Decides the same for a part: what is configured for its module comes first, then what holds for the run above it.
    #[must_use]
    pub fn decide_part(&self, module: &str, above: &RunPlan, is_remote: bool) -> RunPlan {
        let Some(own) = self.of_module.get(module) else { return above.clone() };
        let settings = if is_remote { own.settings.within(above.settings) } else { own.settings };
        let models = own.models.as_ref().unwrap_or(&above.models);
        RunPlan { models: models.clone(), settings: settings.over(above.settings) }
    }

    /// Describes what this host offers: the features of the runtime, as far as its models support them. (CAP-001, CAP-002)
    #[must_use]
    pub fn declared(&self) -> Capabilities {
        let of_modules = self.of_module.values().flat_map(|of_module| &of_module.models);
        let chains = std::iter::once(&self.models).chain(of_modules);
        let rungs: Vec<&Arc<dyn Provider>> = chains.flat_map(ModelChain::all).collect();
        let replays = rungs.iter().any(|rung| rung.capabilities().contains(&MEDIA));
        let takes = |category| replays || rungs.iter().any(|rung| rung.takes(category).is_some());
        let gives = |category| replays || rungs.iter().any(|rung| rung.gives(category));
        self.capabilities.clone().with_provider(takes, gives)
    }

    /// Lets modules have media: those of the source, within the limits. What the host says of itself says so too.
    pub fn take_media(&mut self, source: Arc<dyn MediaSource>, limits: MediaLimits) {
        self.capabilities.take_media(&limits);
        self.media = Some(source);
        self.media_limits = limits;
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The module that is to run.
    pub module: ModuleRef,
    /// What the caller sends.
    pub input: RunInput,
    /// How it is to be run.
    pub options: RunOptions,
}

/// Which module is to run. A caller that has looked it up hands it over, so that it is looked up once.
#[derive(Debug, Clone)]
pub enum ModuleRef {
    /// By its name or its path; the run finds it.
    Name(String),
    /// Already loaded.
    Loaded {
        /// The name or path that the caller was given; records and traces carry it.
        name: String,
        /// The module.
        module: Arc<Module>,
    },
}

impl ModuleRef {
    /// A module that was found under this name.
    #[must_use]
    pub fn loaded(name: impl Into<String>, module: Arc<Module>) -> Self {
        Self::Loaded { name: name.into(), module }
    }

    /// The name or path that the caller gave.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Loaded { name, .. } => name,
        }
    }

    /// The module's own name, as far as it is known before the module is loaded.
    pub(crate) fn own_name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Loaded { module, .. } => &module.manifest.name,
        }
    }

    /// The module itself, from the source unless it is here already.
    pub(crate) fn load(&self, modules: &dyn ModuleSource) -> Result<Arc<Module>, Failure> {
        match self {
            Self::Name(name) => modules.module(name),
            Self::Loaded { module, .. } => Ok(Arc::clone(module)),
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

/// What the caller sends.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunInput {
    /// An object for the input schema.
    Json(Value),
    /// The same, shared with other runs; none of them copies it.
    Shared(Arc<Value>),
    /// JSON that nobody has parsed yet; what is wrong with it is found in the order of the run.
    Raw(String),
    /// Free text (`--args`), which no schema judges.
    Text(String),
}

/// How a caller wants a run to be done. A run inherits nothing of the runs above it through these options, except where
/// the runtime itself starts a part.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The options that the caller set for this very run.
    pub settings: RunSettings,
    /// The models of the run above, for a part.
    pub(crate) models: Option<ModelChain>,
    /// Who asks.
    pub caller: Caller,
    /// The id under which logs and audit know the run; generated if absent.
    pub trace_id: Option<String>,
    /// Refuse to answer if the answer would not be streamed (E4010), instead of sending it whole. (CAP-013)
    pub require_streaming: bool,
    /// Notices of the surface for `meta.warnings`.
    pub warnings: Vec<Warning>,
    /// Why the surface could not get what the run needs, such as its input or a provider. The run then ends with this, and
    /// has its trace and its record like any other.
    pub unprepared: Option<Failure>,
    /// The name of the key that the caller has shown, for the audit.
    pub key: Option<String>,
    /// Whose context is read and stored. A surface takes it from a caller that it has authenticated, never from the input.
    pub user: Option<String>,
    /// Whose uploads an input may name, if not the user's: a server may take uploads from callers that it cannot
    /// authenticate.
    pub uploads_of: Option<String>,
    /// The tenant of the user, if the service has tenants.
    pub tenant: Option<String>,
    /// The session that context is read from and stored for.
    pub session: Option<String>,
    /// Set for a caller at the other end of a network: it has no access to files of this machine (SEC-010) and cannot loosen
    /// the operator's limits.
    pub remote: bool,
    /// The span that the spans of this run belong to. Without it the run makes no spans and reads no clock for them.
    pub spans: Option<Arc<SpanParent>>,
}

impl RunRequest {
    /// A run with the usual options.
    #[must_use]
    pub fn new(module: impl Into<ModuleRef>, input: Value) -> Self {
        Self { module: module.into(), input: RunInput::Json(input), options: RunOptions::default() }
    }
}
