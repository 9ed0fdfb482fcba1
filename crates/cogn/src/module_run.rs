//! One run of a module, from a Rust program: its input, how it is to be done, and the ways to get the answer.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::money::Money;
use cognitive_contract::ports::{EventSink, NullSink};
use cognitive_contract::stream::Chunk;
use cognitive_contract::{Enforcement, Envelope, Failure, Warning};
use cognitive_runtime::host::{ModuleRef, RunInput};
use cognitive_runtime::{Host, RunOptions, RunRequest};
use futures_util::Stream;
use serde_json::{Map, Value};

/// A run that has not begun.
#[must_use = "a run begins with `run`, `run_with` or `stream`"]
pub struct ModuleRun {
    host: Arc<Host>,
    request: RunRequest,
}

impl ModuleRun {
    pub(crate) fn new(module: ModuleRef, host: Arc<Host>, warnings: Vec<Warning>) -> Self {
        let options = RunOptions::default().with_warnings(warnings);
        let request = RunRequest { module, input: RunInput::Json(Value::Object(Map::new())), options };
        Self { host, request }
    }

    /// The input: an object for the input schema. An empty one without this.
    pub fn input(mut self, input: Value) -> Self {
        self.request.input = RunInput::Json(input);
        self
    }

    /// The input as JSON text. What is wrong with it is said by the envelope.
    pub fn raw_json(mut self, text: impl Into<String>) -> Self {
        self.request.input = RunInput::Raw(text.into());
        self
    }

    /// Free text instead of an object; no schema judges it.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.request.input = RunInput::Text(text.into());
        self
    }

    /// The time for each model call.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.options.settings.timeout = Some(timeout);
        self
    }

    /// How often the model is asked again after an answer that breaks the contract. Each costs another call.
    pub fn reask(mut self, times: u32) -> Self {
        self.request.options.settings.reask = Some(times);
        self
    }

    /// Seed of the model, where the provider supports one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.options.settings.seed = Some(seed);
        self
    }

    /// Maximum length of the answer, in tokens.
    pub fn max_output_tokens(mut self, tokens: u64) -> Self {
        self.request.options.settings.max_output_tokens = Some(tokens);
        self
    }

    /// How long models may think before they answer, in tokens; 0 is not at all. What is longer than
    /// [`MAX_THINKING_TOKENS`](cognitive_contract::thinking::MAX_THINKING_TOKENS) counts as that.
    pub fn thinking(mut self, tokens: u32) -> Self {
        self.request.options.settings.thinking = Some(tokens);
        self
    }

    /// The most that the run may cost. One that could cost more does not begin, and one of whose models no price is known
    /// does not either (E4101).
    pub fn max_cost(mut self, most: Money) -> Self {
        self.request.options.settings.max_cost = Some(most);
        self
    }

    /// Puts the receipt of the run into `meta.provenance`.
    pub fn receipt(mut self) -> Self {
        self.request.options.settings.receipt = Some(true);
        self
    }

    /// Does not enforce the module's schemas; the envelope contract still holds.
    pub fn without_schemas(mut self) -> Self {
        self.request.options.settings.enforcement = Some(Enforcement::EnvelopeOnly);
        self
    }

    /// The user whose context is read and kept. Take it from a caller that was recognised, never from the input.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.request.options.user = Some(user.into());
        self
    }

    /// The session that context is read from and stored for.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.request.options.session = Some(session.into());
        self
    }

    /// Changes any option of the run.
    pub fn options(mut self, change: impl FnOnce(&mut RunOptions)) -> Self {
        change(&mut self.request.options);
        self
    }

    /// Changes the host of this run alone: a store of its own, a journal of its parts.
    pub fn tune(mut self, change: impl FnOnce(&mut Host)) -> Self {
        change(Arc::make_mut(&mut self.host));
        self
    }

    /// Runs the module. The answer is an envelope, also where everything failed; dropping the future cancels the run.
    pub async fn run(self) -> Envelope {
        self.run_with(&mut NullSink).await
    }

    /// The same for a program that hears of stages, attempts and text as they happen.
    pub async fn run_with(self, sink: &mut dyn EventSink) -> Envelope {
        cognitive_runtime::run(&self.host, self.request, sink).await
    }

    /// The same for a program that may have to end the run before its time: when `stop` resolves, the call of the model is
    /// dropped, and the envelope says why.
    pub async fn run_until(self, stop: impl Future<Output = Failure> + Send) -> Envelope {
        cognitive_runtime::run_until(&self.host, self.request, &mut NullSink, stop).await
    }

    /// Runs the module and gives its answer in pieces. The run goes on only while chunks are asked for; the last of them is
    /// the envelope, also where the module does not stream.
    pub fn stream(self) -> impl Stream<Item = Chunk> + Send + Unpin + use<> {
        cognitive_runtime::chunks(self.host, self.request)
    }
}
