//! What the runtime needs from outside, as traits: modules, a model, a listener, an audit log, a store of context.
//! No implementation lives here except the ones that do nothing.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cognitive_schema::{ProviderSchema, SchemaTarget};
use serde::Serialize;
use serde_json::Value;

pub use crate::audit::AuditRecord;
use crate::context::{ContextEntry, ContextFilter, Owner};
use crate::envelope::Envelope;
use crate::failure::Failure;
use crate::media::{AcceptedForm, Category, MediaPart, Reported};
use crate::module::Module;
pub use crate::part_journal::{PartAnswer, PartJournal, PartQuestion};
pub use crate::port_future::PortFuture;
pub use crate::provider_error::{FailedTry, FailureKind, ProviderError};
use crate::shared_text::SharedText;
use crate::thinking::ThoughtOutcome;
use crate::tools::{ToolCall, ToolRound, ToolSpec, ToolUse};
use crate::trace::{PartEvent, Trace};
use crate::trained::TrainedModel;
pub use crate::usage::Usage;
use crate::usage::{as_member, as_milliseconds};

/// Finds and loads modules by name.
pub trait ModuleSource: Send + Sync {
    /// A module, ready to run.
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure>;

    /// The names of all modules that can be found, in order.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// The same with a mark for each that changes whenever the module does; `None` where nobody can tell.
    fn marks(&self) -> Vec<(String, Option<u64>)> {
        self.names().into_iter().map(|name| (name, None)).collect()
    }

    /// A module for somebody who looks at all of them once and runs none.
    fn glance(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.module(name)
    }
}

/// A model behind some service, or in this process. Always streams; a whole answer is one piece.
/// Dropping the future of [`ask`](Provider::ask) cancels the call and closes its connection.
pub trait Provider: Send + Sync {
    /// The part before the slash in `meta.model`, such as `openai`.
    fn name(&self) -> &str;

    /// What tells it apart from others of its name: where it is asked, and which model. Another one may answer otherwise, so
    /// what is kept of its answers is kept under this. Holds no secret.
    fn identity(&self) -> String {
        String::new()
    }

    /// Why the provider cannot be asked at all, if it could not be built. A run then ends with this failure.
    fn unavailable(&self) -> Option<&Failure> {
        None
    }

    /// What an answer can be bound to; `None` if the provider takes no schema.
    fn target(&self) -> Option<SchemaTarget> {
        None
    }

    /// Whether the provider can be brought to answer in JSON at all.
    fn structured_output(&self) -> bool {
        true
    }

    /// What it can do besides, in the words of `preferred_capabilities`. Only a provider that names
    /// [`FUNCTION_CALLING`](crate::tools::FUNCTION_CALLING) is handed tools.
    fn capabilities(&self) -> &[&str] {
        &["json_mode"]
    }

    /// What it is known not to be able to do, in the words of `required_capabilities`. What is neither here nor among the
    /// capabilities is not known, and nobody is refused for it.
    fn lacks(&self) -> &[&str] {
        &[]
    }

    /// What it takes of a kind of media; `None` if it takes none of it.
    fn takes(&self, _: Category) -> Option<AcceptedForm> {
        None
    }

    /// Whether its answers may come with a kind of media beside their text.
    fn gives(&self, _: Category) -> bool {
        false
    }

    /// Where requests go, for the audit. `None` if nothing ever leaves, as with saved replies.
    fn destination(&self) -> Option<Destination> {
        Some(Destination::default())
    }

    /// The request that it would send for a call, for people who want to see it; `None` if it sends none. A name of a
    /// variable stands in the place of every secret.
    fn rendered(&self, _: &ModelCall) -> Option<RenderedRequest> {
        None
    }

    /// Whether what it is asked stays on this machine.
    fn stays_here(&self) -> bool {
        self.destination().is_none()
    }

    /// Asks the model. Text and attempts go to `sink` as they happen; the summary follows at the end.
    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>>;
}

/// Where a request goes, as far as a provider says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Destination {
    /// The model that is asked for.
    pub model: Option<String>,
    /// The address, without anything secret in it.
    pub address: Option<String>,
}

impl Destination {
    /// The model as records and figures name it: `provider/model`, or the provider alone where it names none.
    #[must_use]
    pub fn asked(&self, provider: &str) -> String {
        self.model.as_ref().map_or_else(|| provider.to_owned(), |model| format!("{provider}/{model}"))
    }
}

/// A request to a service as people may see it.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedRequest {
    /// Such as `POST`.
    pub method: String,
    /// Where it goes.
    pub url: String,
    /// Name and value of each header, in order. `$NAME` stands where the value of a secret variable would.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Value,
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the call")]
pub struct ModelCall {
    /// What to do and how to answer. Most calls of a module share it.
    pub instructions: SharedText,
    /// Worked examples, oldest first. Each is a turn of the conversation before the real input.
    pub examples: Vec<Example>,
    /// What models have learned from labelled cases of the module. Only those that run in this process can use it.
    pub trained: Arc<[TrainedModel]>,
    /// What to do it with; data, never instructions.
    pub input: String,
    /// The module that asks. Not for the model; recorded replies are told apart by it.
    pub module: String,
    /// Media that belong to the input, in its order, each in a form that the provider [takes](Provider::takes).
    pub media: Vec<MediaPart>,
    /// Whether the answer may come with media beside its text.
    pub wants_media: bool,
    /// 0 is deterministic.
    pub temperature: f64,
    /// Seed of the model, where the provider supports one.
    pub seed: Option<u64>,
    /// Maximum length of the answer, in tokens.
    pub max_output_tokens: Option<u64>,
    /// Whether that limit has to be kept, because somebody pays by it: a service that does not take it is not asked without.
    pub keeps_limit: bool,
    /// Whether instructions and examples are the same in every call of the module, so that a service may keep them.
    pub has_stable_prefix: bool,
    /// How long the model may think before it answers, in tokens, besides the answer; 0 is not at all. Without it the
    /// model does what it does unasked.
    pub thinking: Option<u32>,
    /// The time for the whole call, all attempts together.
    pub timeout: Duration,
    /// The contract in the provider's own words.
    pub schema: Option<Arc<ProviderSchema>>,
    /// What the model may call before it answers; usually nothing.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The turns since the input in which it did, oldest first.
    pub rounds: Vec<ToolRound>,
    /// Whether it has called enough and has to answer now.
    pub answer_now: bool,
}

impl ModelCall {
    /// A call with its text and the usual limits.
    #[must_use]
    pub fn new(instructions: impl Into<SharedText>, input: String, temperature: f64) -> Self {
        Self {
            instructions: instructions.into(),
            examples: Vec::new(),
            trained: Arc::default(),
            input,
            module: String::new(),
            media: Vec::new(),
            wants_media: false,
            temperature,
            seed: None,
            max_output_tokens: None,
            keeps_limit: false,
            has_stable_prefix: false,
            thinking: None,
            timeout: Duration::from_mins(1),
            schema: None,
            tools: Vec::new(),
            rounds: Vec::new(),
            answer_now: false,
        }
    }
}

/// One worked example: what somebody sent and what the model should have said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The turn of the user, in the form of [`ModelCall::input`].
    pub input: String,
    /// The turn of the model: one whole envelope.
    pub answer: String,
}

/// Receives what happens during a call.
pub trait CallSink: Send {
    /// Takes the next piece of text. Pieces come from one attempt only, the last.
    fn piece(&mut self, text: &str);

    /// Takes note of an attempt that is over, good or bad.
    fn attempt(&mut self, attempt: Attempt);

    /// Takes note of how the text that follows is bound to the contract. A provider that does not say leaves it open.
    fn bound(&mut self, _: DecodeMode) {}

    /// Asked before a provider repeats a request: whether one more may leave. The runtime itself has let the first one
    /// leave. After an error nothing is sent, and the call ends with it.
    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// One try at a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Attempt {
    /// How the answer was bound to the contract.
    pub decode: DecodeMode,
    /// The HTTP status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `ok`, or what went wrong, without secrets.
    pub outcome: String,
    /// What is known of it besides, if it failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedTry>,
    /// Tokens that a failed try cost, if the service counted them. Those of a good one are in [`ModelEnd`].
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_member")]
    pub usage: Option<Usage>,
    /// The model that a failed try heard of.
    #[serde(skip)]
    pub model: Option<String>,
    /// How long it took.
    #[serde(rename = "elapsed_ms", serialize_with = "as_milliseconds")]
    pub elapsed: Duration,
}

impl Attempt {
    /// An attempt.
    #[must_use]
    pub fn new(decode: DecodeMode, outcome: impl Into<String>, elapsed: Duration) -> Self {
        let (status, failed, usage, model) = (None, None, None, None);
        Self { decode, status, outcome: outcome.into(), failed, usage, model, elapsed }
    }
}

/// How the model was held to the contract while it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecodeMode {
    /// The service enforced the provider schema.
    NativeSchema,
    /// A grammar allowed only valid tokens.
    Grammar,
    /// The service promised JSON of any shape.
    JsonMode,
    /// Only the prompt asked for it.
    Prompt,
    /// A saved reply.
    Replay,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelEnd {
    /// The model as the service named it.
    pub model: String,
    /// Why there is no more text.
    pub finish: Finish,
    /// How the answer was bound to the contract.
    pub decode: DecodeMode,
    /// Tokens, if the service counted them.
    pub usage: Option<Usage>,
    /// What `meta.confidence` was measured from, if the model did not make it up itself: `calibrated_decisions`,
    /// `label_probability` or `token_probability`.
    pub confidence_from: Option<&'static str>,
    /// The hash of the weights, where the model is a file on this machine.
    pub weights_sha256: Option<String>,
    /// The tools that it wants called before it goes on. With any, the text is no answer yet.
    /// No more than [`MAX_CALLS`](crate::tools::MAX_CALLS) and one.
    pub tool_calls: Vec<ToolCall>,
    /// How many calls the turn had beside these. Nothing of them is kept.
    pub more_calls: u64,
    /// That turn in the service's own words, for [`ToolRound::turn`], with `tool_calls` and no other call; null if there is
    /// nothing special about it.
    pub turn: Value,
    /// Whether the service turned out to take no tools and was asked without them.
    pub without_tools: bool,
    /// What became of [`ModelCall::thinking`], if the provider says.
    pub thinking: Option<ThoughtOutcome>,
    /// Media that came beside the text, in their order.
    pub media: Vec<Reported>,
}

impl ModelEnd {
    /// An answer that came to its natural end.
    #[must_use]
    pub fn complete(model: &str, decode: DecodeMode) -> Self {
        Self {
            model: model.to_owned(),
            finish: Finish::Complete,
            decode,
            usage: None,
            confidence_from: None,
            weights_sha256: None,
            tool_calls: Vec::new(),
            more_calls: 0,
            turn: Value::Null,
            without_tools: false,
            thinking: None,
            media: Vec::new(),
        }
    }
}

/// Why there is no more text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model was done.
    Complete,
    /// The token limit cut it off.
    CutOff,
    /// The model or its guard refused; the text says why.
    Refused(String),
}

/// Waits. Surfaces implement it with the timer of their runtime, so that tests can stop the clock and no thread sleeps.
pub trait Timer: Send + Sync {
    /// Resolves when this time has passed. Dropping the future ends the wait.
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()>;
}

/// Someone who watches a run.
pub trait EventSink: Send {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);

    /// Whether anybody hears of it. What nobody hears need not be told.
    fn is_heard(&self) -> bool {
        true
    }
}

/// What can be seen of a run while it goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A stage begins.
    Stage(Stage),
    /// How the text that follows is bound to the contract.
    Bound(DecodeMode),
    /// Text of the model, as it arrives.
    Text(&'a str),
    /// Something happened to a module that this one is made of.
    Part(PartEvent<'a>),
    /// What all of it took and cost. Comes right before the end.
    Trace(&'a Trace),
    /// A tool was called, or was not to be called.
    Tool(&'a ToolUse),
    /// The run is over.
    Finished(&'a Envelope),
}

/// What a run is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Find and load the module.
    Load,
    /// Ask the model.
    Call,
    /// Call the tools that the model asked for.
    Tools,
    /// Judge the model's answer.
    Check,
    /// Hand over the answer of an earlier run.
    Kept,
    /// Hand over the answer of the module's parts.
    Composed,
}

impl Stage {
    /// The word that readers of a stream and of a progress line see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Call => "call",
            Self::Tools => "tools",
            Self::Check => "check",
            Self::Kept => "kept",
            Self::Composed => "composed",
        }
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn event(&mut self, _: Event<'_>) {}

    fn is_heard(&self) -> bool {
        false
    }
}

/// Someone who keeps context between requests. Nobody sees the context of another owner; what has expired at `now` is
/// never given out and goes on access; the store is bounded, and the oldest goes first. Time is handed in.
pub trait ContextStore: Send + Sync {
    /// The entry with this key, if there is one that may still be used.
    fn get(
        &self,
        owner: &Owner,
        kind: &str,
        key: &str,
        now: SystemTime,
    ) -> Result<Option<ContextEntry>, String>;

    /// Keeps an entry in the place of one with the same owner, type and key. What is for the request only is not kept.
    fn put(&self, owner: &Owner, entry: &ContextEntry, now: SystemTime) -> Result<(), String>;

    /// The entries of an owner that the filter means, the newest first.
    fn list(
        &self,
        owner: &Owner,
        filter: ContextFilter<'_>,
        now: SystemTime,
    ) -> Result<Vec<ContextEntry>, String>;

    /// Removes an entry; says whether there was one.
    fn remove(&self, owner: &Owner, kind: &str, key: &str) -> Result<bool, String>;

    /// Removes what has expired, of all owners, and says how much it was.
    fn gc(&self, now: SystemTime) -> Result<u64, String>;
}

/// Someone who keeps the audit. A record that cannot be kept never fails the run it is about, unless the operator wants
/// that.
pub trait AuditLog: Send + Sync {
    /// Keeps a record; the error says why it could not.
    fn record(&self, record: &AuditRecord) -> Result<(), String>;

    /// Keeps several at once, in their order, which may cost no more than one.
    fn record_all(&self, records: &[AuditRecord]) -> Vec<Result<(), String>> {
        records.iter().map(|record| self.record(record)).collect()
    }

    /// Keeps a record, and resolves only when the death of the process cannot take it away any more.
    fn commit<'a>(&'a self, record: &'a AuditRecord) -> PortFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(self.record(record)))
    }

    /// What was dropped to keep within limits, since the process began.
    fn drop_counts(&self) -> DropCounts {
        DropCounts::default()
    }
}

/// What an audit dropped to keep within its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DropCounts {
    /// Records.
    pub records: u64,
    /// Payloads whose records stayed.
    pub payloads: u64,
    /// Owners for whom the dropping of records or payloads began.
    pub owners: u64,
}
