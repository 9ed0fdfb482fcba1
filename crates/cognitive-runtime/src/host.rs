//! What a run needs and what it is asked: the host that a surface builds once, and the request of one run.
//! Builds no provider itself.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::compose::CustomAggregate;
use cognitive_contract::context::Sanitiser;
use cognitive_contract::media::{MediaLimits, MediaSource};
use cognitive_contract::money::Money;
use cognitive_contract::policy::Caller;
use cognitive_contract::ports::{AuditLog, ContextStore, ModuleSource, PartJournal, Provider, Timer};
use cognitive_contract::prices::PriceTable;
use cognitive_contract::spending::{DayBudget, SpendingLedger};
use cognitive_contract::thinking::ThinkingLimits;
use cognitive_contract::tier::Gate;
use cognitive_contract::tools::ToolBox;
use cognitive_contract::{Capabilities, Enforcement, Failure, Module, Warning};
use serde_json::Value;

use crate::call_budget::DEFAULT_MAX_CALLS;
use crate::clock::Clock;
use crate::ladder::Ladder;
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
    /// The model; with a ladder, the lowest rung of it.
    pub provider: Arc<dyn Provider>,
    /// The models that are asked when its answer is not good enough.
    pub ladder: Option<Ladder>,
    /// Modules that may only ask models on this machine, and so may all that they are made of.
    pub local_only: Vec<String>,
    /// How long models may think before they answer, as the operator says; above what modules say themselves.
    pub thinking: ThinkingLimits,
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
            provider,
            ladder: None,
            local_only: Vec::new(),
            thinking: ThinkingLimits::default(),
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

    /// The same surroundings with another model, and nobody above it. What the operator says of modules, money and records
    /// holds there too.
    #[must_use]
    pub fn asking(&self, provider: Arc<dyn Provider>) -> Self {
        Self { provider, ladder: None, ..self.clone() }
    }

    /// What this host says of itself: what the runtime offers, as far as its provider goes along. (CAP-001, CAP-002)
    #[must_use]
    pub fn declared(&self) -> Capabilities {
        let above = self.ladder.iter().flat_map(|ladder| &ladder.rungs);
        let rungs: Vec<&Arc<dyn Provider>> = std::iter::once(&self.provider).chain(above).collect();
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

/// How a caller wants a run to be done. What a run inherits from the runs above it is no option.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct RunOptions {
    /// Who asks.
    pub caller: Caller,
    /// Whether schemas are enforced; the envelope contract always is.
    pub enforcement: Enforcement,
    /// The id under which logs and audit know the run; made up if absent.
    pub trace_id: Option<String>,
    /// Take no liberties with the model's syntax in any tier.
    pub strict_parse: bool,
    /// How often the model is asked again after an answer that breaks the contract. Each costs another call.
    pub reask: u32,
    /// The most model calls of the run, those of its parts, repetitions and tools included (E4100).
    pub max_calls: u64,
    /// The most that the run may cost, with its parts and repetitions. One that could cost more does not begin (E4101).
    pub max_cost: Option<Money>,
    /// Put the receipt into `meta.provenance`.
    pub receipt: bool,
    /// The time for each call.
    pub timeout: Duration,
    /// Seed of the model, where the provider supports one.
    pub seed: Option<u64>,
    /// Maximum length of the answer, in tokens.
    pub max_output_tokens: Option<u64>,
    /// How long models may think before they answer, in tokens; 0 is not at all. It holds for the parts too, and stands
    /// above what operator and module say.
    pub thinking: Option<u32>,
    /// Stop a call as soon as its answer cannot become valid any more, where the model is bound to one document (D-08).
    /// Without it every call is read to its end, so that a failure holds the whole answer.
    pub early_stop: bool,
    /// Refuse to answer where the answer would not go out in pieces (E4010), instead of giving it whole. (CAP-013)
    pub require_streaming: bool,
    /// Notices of the surface for `meta.warnings`.
    pub warnings: Vec<Warning>,
    /// Why the surface could not get what the run needs, such as its input or a provider. The run then ends with this, and
    /// has its trace and its record like any other.
    pub unprepared: Option<Failure>,
    /// The name of the key that the caller has shown, for the audit.
    pub key: Option<String>,
    /// Whose context is read and kept. A surface takes it from whom it has recognised, never from the input.
    pub user: Option<String>,
    /// Whose uploads an input may name, where that is not the user: a server may take them from callers that it does not
    /// recognise.
    pub uploads_of: Option<String>,
    /// The tenant of the user, where there are tenants.
    pub tenant: Option<String>,
    /// The session that context is read from and stored for.
    pub session: Option<String>,
    /// Ask the model even if an answer to the same input is cached.
    pub no_cache: bool,
    /// Whether the caller is at the other end of a network: the files of this machine are not theirs. (SEC-010)
    pub remote: bool,
    /// Where the spans of this run belong. Without it the run has no spans and reads no clock for them.
    pub spans: Option<Arc<SpanParent>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            caller: Caller::User,
            enforcement: Enforcement::Full,
            trace_id: None,
            strict_parse: false,
            reask: 0,
            max_calls: DEFAULT_MAX_CALLS,
            max_cost: None,
            receipt: false,
            timeout: Duration::from_mins(1),
            seed: None,
            max_output_tokens: None,
            thinking: None,
            early_stop: false,
            require_streaming: false,
            warnings: Vec::new(),
            unprepared: None,
            key: None,
            user: None,
            uploads_of: None,
            tenant: None,
            session: None,
            no_cache: false,
            remote: false,
            spans: None,
        }
    }
}

impl RunRequest {
    /// A run with the usual options.
    #[must_use]
    pub fn new(module: impl Into<ModuleRef>, input: Value) -> Self {
        Self { module: module.into(), input: RunInput::Json(input), options: RunOptions::default() }
    }
}
