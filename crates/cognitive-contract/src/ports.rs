//! What the runtime needs from outside, as traits: a model, and someone who watches.
//! No implementation lives here except the sink that ignores everything.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;

use crate::envelope::Envelope;

/// A boxed future, so that ports can be trait objects.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A model behind some service, or in this process. Always streams; a whole answer is one piece.
pub trait Provider: Send + Sync {
    /// The part before the slash in `meta.model`, such as `openai`.
    fn name(&self) -> &str;

    /// Asks the model. Text goes to `pieces` as it arrives; the summary follows at the end.
    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        pieces: &'a mut dyn PieceSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>>;
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelCall {
    /// What to do and how to answer.
    pub instructions: String,
    /// What to do it with; data, never instructions.
    pub input: String,
    /// 0 is deterministic.
    pub temperature: f64,
}

impl ModelCall {
    /// A call with its text.
    #[must_use]
    pub fn new(instructions: String, input: String, temperature: f64) -> Self {
        Self { instructions, input, temperature }
    }
}

/// Receives the text of an answer as it arrives.
pub trait PieceSink: Send {
    /// Takes the next piece.
    fn piece(&mut self, text: &str);
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelEnd {
    /// The model as the service named it.
    pub model: String,
    /// Why there is no more text.
    pub finish: Finish,
    /// Tokens, if the service counted them.
    pub usage: Option<Usage>,
}

impl ModelEnd {
    /// An answer that came to its natural end.
    #[must_use]
    pub fn complete(model: &str) -> Self {
        Self { model: model.to_owned(), finish: Finish::Complete, usage: None }
    }
}

/// Why there is no more text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Complete,
    /// The token limit cut it off.
    CutOff,
    /// The model or its guard refused; the text says why.
    Refused(String),
}

/// Tokens that a call cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

impl Usage {
    /// The `usage` member of an envelope.
    #[must_use]
    pub fn to_value(self) -> Value {
        serde_json::json!({
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        })
    }
}

/// Why a model did not answer. The texts carry no keys and no prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderError {
    /// The service cannot be reached, or answers that it is broken.
    Unavailable(String),
    /// Too many requests.
    RateLimited {
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    Timeout,
    /// The answer broke off.
    Interrupted(String),
    /// The prompt does not fit the model.
    ContextOverflow(String),
    /// The service does not know what went wrong, and neither do we.
    Unexpected(String),
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "provider unavailable: {why}"),
            Self::RateLimited { retry_after: Some(wait) } => {
                write!(f, "rate limit exceeded, retry after {} s", wait.as_secs())
            }
            Self::RateLimited { retry_after: None } => f.write_str("rate limit exceeded"),
            Self::Timeout => f.write_str("no answer within the time limit"),
            Self::Interrupted(why) => write!(f, "the answer broke off: {why}"),
            Self::ContextOverflow(why) => write!(f, "the prompt does not fit the model: {why}"),
            Self::Unexpected(why) => write!(f, "unexpected provider failure: {why}"),
        }
    }
}

impl std::error::Error for ProviderError {}

/// Someone who watches a run.
pub trait EventSink: Send {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);
}

/// What can be seen of a run while it goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A stage begins.
    Stage(&'static str),
    /// Text of the model, as it arrives.
    Text(&'a str),
    /// The run is over.
    Finished(&'a Envelope),
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn event(&mut self, _: Event<'_>) {}
}
