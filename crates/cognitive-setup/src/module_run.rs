//! One run of a module from a Rust program: its input, its options, and the ways to get the answer.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::money::Money;
use cognitive_contract::ports::{EventSink, NullSink};
use cognitive_contract::stream::Chunk;
use cognitive_contract::{Enforcement, Envelope, Failure};
use cognitive_runtime::host::{ModuleRef, RunInput};
use cognitive_runtime::{Host, ModuleFailure, RunOptions, RunRequest};
use futures_util::Stream;
use serde_json::{Map, Value};

/// A run that has not started.
#[must_use = "a run begins with `run`, `run_with` or `stream`"]
pub struct ModuleRun {
    host: Arc<Host>,
    request: RunRequest,
}

impl ModuleRun {
    pub(crate) fn new(module: ModuleRef, host: Arc<Host>, options: RunOptions) -> Self {
        let request = RunRequest { module, input: RunInput::Json(Value::Object(Map::new())), options };
        Self { host, request }
    }

    /// Sets the input: an object for the input schema. The default is an empty object.
    pub fn input(mut self, input: Value) -> Self {
        self.request.input = RunInput::Json(input);
        self
    }

    /// Sets the input as JSON text. Syntax errors are reported in the envelope.
    pub fn raw_json(mut self, text: impl Into<String>) -> Self {
        self.request.input = RunInput::Raw(text.into());
        self
    }

    /// Sets free text as the input. It is not validated against a schema.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.request.input = RunInput::Text(text.into());
        self
    }

    /// Sets the timeout for each model call.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.options.settings.timeout = Some(timeout);
        self
    }

    /// Sets how often the model is asked again after an answer that breaks the contract. Each retry costs another call.
    pub fn reask(mut self, times: u32) -> Self {
        self.request.options.settings.reask = Some(times);
        self
    }

    /// Sets the seed of the model, if the provider supports one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.options.settings.seed = Some(seed);
        self
    }

    /// Sets the maximum length of the answer, in tokens.
    pub fn max_output_tokens(mut self, tokens: u64) -> Self {
        self.request.options.settings.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the thinking budget of models, in tokens; 0 disables thinking. Larger values are capped at
    /// [`MAX_THINKING_TOKENS`](cognitive_contract::thinking::MAX_THINKING_TOKENS).
    pub fn thinking(mut self, tokens: u32) -> Self {
        self.request.options.settings.thinking = Some(tokens);
        self
    }

    /// Sets the maximum cost of the run. A run that could cost more does not start. Neither does a run that uses a
    /// model without a known price (E4101).
    pub fn max_cost(mut self, most: Money) -> Self {
        self.request.options.settings.max_cost = Some(most);
        self
    }

    /// Sets the maximum number of model calls, including parts, retries and tools.
    pub fn max_calls(mut self, most: u64) -> Self {
        self.request.options.settings.max_calls = Some(most);
        self
    }

    /// Accepts only valid JSON from the model.
    pub fn strict_parse(mut self) -> Self {
        self.request.options.settings.strict_parse = Some(true);
        self
    }

    /// Stops a call once its answer cannot become valid. A failure then holds only complete members.
    pub fn early_stop(mut self) -> Self {
        self.request.options.settings.early_stop = Some(true);
        self
    }

    /// Asks the model even if the answer is cached.
    pub fn no_cache(mut self) -> Self {
        self.request.options.settings.no_cache = Some(true);
        self
    }

    /// Adds the receipt of the run to `meta.provenance`.
    pub fn receipt(mut self) -> Self {
        self.request.options.settings.receipt = Some(true);
        self
    }

    /// Disables the module's schemas; the envelope contract still applies.
    pub fn without_schemas(mut self) -> Self {
        self.request.options.settings.enforcement = Some(Enforcement::EnvelopeOnly);
        self
    }

    /// Sets the user whose context is read and stored. Take it from an authenticated caller, never from the input.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.request.options.user = Some(user.into());
        self
    }

    /// Sets the session whose context is read and stored.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.request.options.session = Some(session.into());
        self
    }

    /// Changes any option of the run.
    #[doc(hidden)]
    pub fn options(mut self, change: impl FnOnce(&mut RunOptions)) -> Self {
        change(&mut self.request.options);
        self
    }

    /// Changes the host of this run only, for example its store or its journal.
    #[doc(hidden)]
    pub fn tune(mut self, change: impl FnOnce(&mut Host)) -> Self {
        change(Arc::make_mut(&mut self.host));
        self
    }

    /// Runs the module. The answer is always an envelope, even after a failure. Dropping the future cancels the run.
    pub async fn run(self) -> Envelope {
        self.run_with(&mut NullSink).await
    }

    /// Runs the module. The failure of a module whose `failure.contract` is `throw` is an error that has the envelope; every
    /// other answer is an envelope.
    pub async fn run_by_contract(self) -> Result<Envelope, ModuleFailure> {
        cognitive_runtime::run_by_contract(&self.host, self.request, &mut NullSink).await
    }

    /// Runs the module and reports stages, attempts and text to `sink` as they happen.
    pub async fn run_with(self, sink: &mut dyn EventSink) -> Envelope {
        cognitive_runtime::run(&self.host, self.request, sink).await
    }

    /// Runs the module until it ends or `stop` resolves. In the second case the model call is dropped, and the envelope
    /// has the reason.
    pub async fn run_until(self, stop: impl Future<Output = Failure> + Send) -> Envelope {
        cognitive_runtime::run_until(&self.host, self.request, &mut NullSink, stop).await
    }

    /// Runs the module and streams its answer. The run only advances while chunks are polled. The last chunk is the
    /// envelope, even if the module does not stream.
    pub fn stream(self) -> impl Stream<Item = Chunk> + Send + Unpin + use<> {
        cognitive_runtime::chunks(self.host, self.request)
    }
}
