//! The ports of the runtime: traits for modules, a model, a listener, an audit log and a context store.
//! Contains no implementations, except those that do nothing.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cognitive_schema::{ProviderSchema, SchemaTarget};
use serde::Serialize;
use serde_json::Value;

pub use crate::audit::AuditRecord;
use crate::context::{ContextEntry, ContextFilter, Owner};
use crate::envelope::Envelope;
use crate::failure::Failure;
use crate::media::{AcceptedForm, Category, MediaPart, ReportedMedia};
use crate::module::Module;
pub use crate::part_journal::{PartAnswer, PartJournal, PartQuestion};
pub use crate::port_future::PortFuture;
pub use crate::provider_error::{FailedTry, FailureKind, ProviderError};
use crate::shared_text::SharedText;
use crate::thinking::ThoughtOutcome;
use crate::tools::{ToolCall, ToolRound, ToolSpec, ToolUse};
use crate::trace::{PartEvent, Trace};
use crate::trained_model::TrainedModel;
pub use crate::usage::Usage;
use crate::usage::as_milliseconds;

/// Finds and loads modules by name.
pub trait ModuleSource: Send + Sync {
    /// Loads a module, ready to run.
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure>;

    /// Returns the names of all modules that can be found, in order.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the same names, each with a version stamp that changes whenever the module does; `None` if
    /// unknown.
    fn marks(&self) -> Vec<(String, Option<u64>)> {
        self.names().into_iter().map(|name| (name, None)).collect()
    }

    /// Loads a module for a listing. Caches should not store it: a list must not evict modules that are run.
    fn glance(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.module(name)
    }
}

/// A model behind a service, or in this process. Always streams; a whole answer is one piece.
/// Dropping the future of [`ask`](Provider::ask) cancels the call and closes its connection.
pub trait Provider: Send + Sync {
    /// The part before the slash in `meta.model`, such as `openai`.
    fn name(&self) -> &str;

    /// Returns the provider that this one wraps. It then answers for this one in everything but `name` and `ask`.
    fn inner(&self) -> Option<&dyn Provider> {
        None
    }

    /// Returns the name in traces, `gen_ai.provider.name` of the OpenTelemetry conventions.
    fn telemetry_name(&self) -> &str {
        self.inner().map_or_else(|| self.name(), Provider::telemetry_name)
    }

    /// Returns a cache key that distinguishes providers of the same name, by address and model. Cached answers
    /// are stored under it, because another model may answer differently. Contains no secret.
    fn identity(&self) -> String {
        self.inner().map(Provider::identity).unwrap_or_default()
    }

    /// Why the provider cannot be asked at all, if it could not be built. A run then ends with this failure.
    fn unavailable(&self) -> Option<&Failure> {
        self.inner()?.unavailable()
    }

    /// The schema dialect of the provider; `None` if it takes no schema.
    fn target(&self) -> Option<SchemaTarget> {
        self.inner()?.target()
    }

    /// Returns whether the provider can be made to answer in JSON at all.
    fn structured_output(&self) -> bool {
        self.inner().is_none_or(Provider::structured_output)
    }

    /// Returns its other capabilities, in the words of `preferred_capabilities`. Only a provider that lists
    /// [`FUNCTION_CALLING`](crate::tools::FUNCTION_CALLING) receives tools.
    fn capabilities(&self) -> &[&str] {
        self.inner().map_or(&["json_mode"], |inner| inner.capabilities())
    }

    /// Returns the capabilities that it is known to lack, in the words of `required_capabilities`. A word in
    /// neither list is unknown and never causes a refusal.
    fn lacks(&self) -> &[&str] {
        self.inner().map_or(&[], |inner| inner.lacks())
    }

    /// Returns the accepted form of a media kind; `None` if it accepts none.
    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        self.inner()?.takes(category)
    }

    /// Returns whether its answers may contain this media kind in addition to text.
    fn gives(&self, category: Category) -> bool {
        self.inner().is_some_and(|inner| inner.gives(category))
    }

    /// Returns the destination of requests, for the audit. `None` if nothing leaves the process, as with saved
    /// replies.
    fn destination(&self) -> Option<Destination> {
        self.inner().map_or_else(|| Some(Destination::default()), Provider::destination)
    }

    /// Returns the request that it would send for a call, for display; `None` if it sends none. Each secret is
    /// replaced by the name of its variable.
    fn render_request(&self, call: &ModelCall) -> Option<RenderedRequest> {
        self.inner()?.render_request(call)
    }

    /// Returns whether requests stay on this machine.
    fn is_local(&self) -> bool {
        self.inner().map_or_else(|| self.destination().is_none(), Provider::is_local)
    }

    /// Calls the model. Text and attempts go to `sink` as they happen; the summary follows at the end.
    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>>;
}

/// The destination of a request, as far as a provider reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Destination {
    /// The requested model.
    pub model: Option<String>,
    /// The address, without secrets.
    pub address: Option<String>,
}

impl Destination {
    /// Returns the model in the form of records and statistics: `provider/model`, or the provider alone if no
    /// model is set.
    #[must_use]
    pub fn model_label(&self, provider: &str) -> String {
        self.model.as_ref().map_or_else(|| provider.to_owned(), |model| format!("{provider}/{model}"))
    }
}

/// A request to a service, in a form for display.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedRequest {
    /// The HTTP method, such as `POST`.
    pub method: String,
    /// The target URL.
    pub url: String,
    /// Name and value of each header, in order. `$NAME` replaces the value of a secret variable.
    pub headers: Vec<(String, String)>,
    /// The request body.
    pub body: Value,
}

/// A call to a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the fields are independent facts about the call")]
pub struct ModelCall {
    /// The task and the form of the answer. Most calls of a module share this text.
    pub instructions: SharedText,
    /// Worked examples, oldest first. Each is a turn of the conversation before the real input.
    pub examples: Vec<Example>,
    /// Trained models of the module. Only providers that run in this process can use them.
    pub trained: Arc<[TrainedModel]>,
    /// The input of the task; data, never instructions.
    pub input: String,
    /// The calling module. Not sent to the model; recorded replies are matched by it.
    pub module: String,
    /// Media of the input, in its order, each in a form that the provider [takes](Provider::takes).
    pub media: Vec<MediaPart>,
    /// True if the answer may contain media in addition to text.
    pub wants_media: bool,
    /// The sampling temperature; 0 is deterministic.
    pub temperature: f64,
    /// The random seed, if the provider supports one.
    pub seed: Option<u64>,
    /// The maximum length of the answer, in tokens.
    pub max_output_tokens: Option<u64>,
    /// True if `max_output_tokens` is a hard limit, because a budget depends on it. A service that rejects the
    /// limit is not called without it.
    pub keeps_limit: bool,
    /// True if instructions and examples are the same in every call of the module, so that a service may cache
    /// them.
    pub has_stable_prefix: bool,
    /// The thinking budget in tokens, in addition to the answer; 0 disables thinking. `None` leaves the model's
    /// default.
    pub thinking: Option<u32>,
    /// The timeout of the whole call, including all attempts.
    pub timeout: Duration,
    /// The contract in the provider's schema dialect.
    pub schema: Option<Arc<ProviderSchema>>,
    /// The tools that the model may call before it answers; usually none.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The turns since the input in which the model called tools, oldest first.
    pub rounds: Vec<ToolRound>,
    /// True if the model may call no more tools and has to answer now.
    pub answer_now: bool,
}

impl ModelCall {
    /// A call with its text and default limits.
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

    /// The dialect of the schema that an answer to this call was written under; `None` if the provider was sent none in the
    /// end. Reading a reply and recording it both ask here, so that a recording is read as the reply was. (D-18)
    #[must_use]
    pub fn dialect_of(&self, end: &ModelEnd) -> Option<SchemaTarget> {
        match end.decode {
            DecodeMode::Replay => end.replayed,
            decode => self.schema.as_ref().filter(|_| decode.is_bound()).map(|schema| schema.target),
        }
    }
}

/// One worked example: an input and the expected answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The user turn, in the form of [`ModelCall::input`].
    pub input: String,
    /// The model turn: one whole envelope.
    pub answer: String,
}

/// Receives the events of a call.
pub trait CallSink: Send {
    /// Receives the next piece of text. All pieces come from one attempt, the last.
    fn piece(&mut self, text: &str);

    /// Records a finished attempt, successful or not.
    fn attempt(&mut self, attempt: Attempt);

    /// Records how the following text is bound to the contract. Providers that do not report it never call
    /// this.
    fn decode_mode(&mut self, _: DecodeMode) {}

    /// Called before a provider repeats a request, to ask for permission. The runtime has already permitted the
    /// first request. After an error nothing is sent, and the call ends with that error.
    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// One attempt of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Attempt {
    /// The way in which the answer was bound to the contract.
    pub decode: DecodeMode,
    /// The HTTP status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `ok`, or the error, without secrets.
    pub outcome: String,
    /// Details of a failed attempt.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedTry>,
    /// Tokens of a failed attempt, if the service counted them. Those of a successful one are in [`ModelEnd`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// True if the service counted before the end of the answer, so that the attempt may have cost more.
    #[serde(skip)]
    pub counted_midway: bool,
    /// The model that the service reported in a failed attempt.
    #[serde(skip)]
    pub model: Option<String>,
    /// The duration.
    #[serde(rename = "elapsed_ms", serialize_with = "as_milliseconds")]
    pub elapsed: Duration,
}

impl Attempt {
    /// An attempt.
    #[must_use]
    pub fn new(decode: DecodeMode, outcome: impl Into<String>, elapsed: Duration) -> Self {
        let (status, failed, usage, model) = (None, None, None, None);
        Self { decode, status, outcome: outcome.into(), failed, usage, counted_midway: false, model, elapsed }
    }
}

/// The way in which the model was bound to the contract while it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecodeMode {
    /// The service enforced the provider schema.
    NativeSchema,
    /// A grammar allowed only valid tokens.
    Grammar,
    /// The service guaranteed JSON of any shape.
    JsonMode,
    /// Only the prompt requested it.
    Prompt,
    /// A saved reply.
    Replay,
}

impl DecodeMode {
    /// Returns whether the model could write only what the schema of the call allows.
    #[must_use]
    pub fn is_bound(self) -> bool {
        matches!(self, Self::NativeSchema | Self::Grammar)
    }
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelEnd {
    /// The model name that the service returned.
    pub model: String,
    /// The reason why the text ends.
    pub finish: Finish,
    /// The way in which the answer was bound to the contract.
    pub decode: DecodeMode,
    /// Tokens, if the service counted them.
    pub usage: Option<Usage>,
    /// The source of `meta.confidence`, unless the model stated it itself: `calibrated_decisions`,
    /// `label_probability` or `token_probability`.
    pub confidence_from: Option<&'static str>,
    /// The hash of the weights, if the model is a local file.
    pub weights_sha256: Option<String>,
    /// The tools that the model wants to call before it continues. If there are any, the text is not the answer
    /// yet. At most [`MAX_CALLS`](crate::tools::MAX_CALLS) plus one.
    pub tool_calls: Vec<ToolCall>,
    /// The number of further calls in the turn, which are discarded.
    pub more_calls: u64,
    /// The turn in the service's own format, for [`ToolRound::turn`], with exactly the calls of `tool_calls`;
    /// null if the service needs none.
    pub turn: Value,
    /// True if the service rejected tools and was called again without them.
    pub without_tools: bool,
    /// The effect of [`ModelCall::thinking`], if the provider reports it.
    pub thinking: Option<ThoughtOutcome>,
    /// Media that came with the text, in order.
    pub media: Vec<ReportedMedia>,
    /// The dialect that a saved reply was recorded with. Other providers leave it to [`ModelCall::dialect_of`].
    pub replayed: Option<SchemaTarget>,
}

impl ModelEnd {
    /// An answer that ended normally.
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
            replayed: None,
        }
    }
}

/// The reason why the text ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model finished.
    Complete,
    /// The token limit truncated the text.
    CutOff,
    /// The model or its safety filter refused; the text says why.
    Refused(String),
}

/// A timer. Surfaces implement it with the timer of their async runtime, so that tests can stop the clock and
/// no thread sleeps.
pub trait Timer: Send + Sync {
    /// Resolves after this time. Dropping the future cancels the wait.
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()>;
}

/// Receives the events of a run.
pub trait EventSink: Send {
    /// Receives one event.
    fn event(&mut self, event: Event<'_>);

    /// Returns whether events are used. If not, the runtime need not prepare them.
    fn is_heard(&self) -> bool {
        true
    }
}

/// An event of a run in progress.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A stage starts.
    Stage(Stage),
    /// The decode mode of the following text.
    Bound(DecodeMode),
    /// Text of the model, as it arrives.
    Text(&'a str),
    /// A part of this module changed its state.
    Part(PartEvent<'a>),
    /// The trace of the whole run, with time and cost. Comes right before the end.
    Trace(&'a Trace),
    /// A tool call ended or was refused.
    Tool(&'a ToolUse),
    /// The run ended.
    Finished(&'a Envelope),
}

/// A stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Find and load the module.
    Load,
    /// Call the model.
    Call,
    /// Call the tools that the model requested.
    Tools,
    /// Validate the model's answer.
    Check,
    /// Return a cached answer of an earlier run.
    Kept,
    /// Return the answer of the module's parts.
    Composed,
}

impl Stage {
    /// Returns the word for streams and progress lines.
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

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn event(&mut self, _: Event<'_>) {}

    fn is_heard(&self) -> bool {
        false
    }
}

/// A store of context between requests. Each owner sees only its own context. An entry that has expired at
/// `now` is never returned and is removed on access. The store is bounded and evicts the oldest entries first.
/// Callers pass in the time.
pub trait ContextStore: Send + Sync {
    /// Returns the entry with this key, if it exists and has not expired.
    fn get(
        &self,
        owner: &Owner,
        kind: &str,
        key: &str,
        now: SystemTime,
    ) -> Result<Option<ContextEntry>, String>;

    /// Stores an entry and replaces one with the same owner, type and key. Entries for a single request are not
    /// stored.
    fn put(&self, owner: &Owner, entry: &ContextEntry, now: SystemTime) -> Result<(), String>;

    /// Returns the entries of an owner that match the filter, newest first.
    fn list(
        &self,
        owner: &Owner,
        filter: ContextFilter<'_>,
        now: SystemTime,
    ) -> Result<Vec<ContextEntry>, String>;

    /// Removes an entry; returns whether it existed.
    fn remove(&self, owner: &Owner, kind: &str, key: &str) -> Result<bool, String>;

    /// Removes the expired entries of all owners and returns their number.
    fn gc(&self, now: SystemTime) -> Result<u64, String>;
}

/// An audit log. A record that cannot be stored does not fail its run, unless the operator configures that.
pub trait AuditLog: Send + Sync {
    /// Stores a record, or returns the reason why it could not.
    fn record(&self, record: &AuditRecord) -> Result<(), String>;

    /// Stores a record that the caller no longer needs, which spares a copy.
    fn submit(&self, record: AuditRecord) -> Result<(), String> {
        self.record(&record)
    }

    /// Returns the reason why records cannot be stored now, if that is known.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Stores several records in order, possibly at the cost of one.
    fn record_all(&self, records: &[AuditRecord]) -> Vec<Result<(), String>> {
        records.iter().map(|record| self.record(record)).collect()
    }

    /// Stores a record. Resolves when the record would survive a crash of the process.
    fn commit(&self, record: AuditRecord) -> PortFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(self.record(&record)))
    }

    /// Returns the numbers of evicted and lost items since the process started.
    fn drop_counts(&self) -> DropCounts {
        DropCounts::default()
    }
}

/// Counts of items that an audit log evicted to stay within its limits, and of records that it could not store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DropCounts {
    /// Evicted records.
    pub records: u64,
    /// Evicted payloads whose records remain.
    pub payloads: u64,
    /// Owners for whom eviction has started.
    pub owners: u64,
    /// Records that could not be stored and are lost.
    pub lost: u64,
}
