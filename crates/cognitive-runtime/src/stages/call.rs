//! Stage 3: ask the model and gather its text. (E2002, E2010, E4000–E4003)
//! Passes every piece on as it arrives. Interprets nothing of it.

use cognitive_contract::manifest::Tier;
use cognitive_contract::ports::{
    Attempt, CallSink, Event, EventSink, ModelCall, ModelEnd, Provider, ProviderError,
};
use cognitive_contract::{ErrorCode, Failure, Module};
use serde_json::json;

use super::prompt::Prompt;

/// What the model said.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its text, whole.
    pub text: String,
    /// How it ended.
    pub end: ModelEnd,
    /// Every try, good or bad.
    pub attempts: Vec<Attempt>,
    /// `provider/model`.
    pub model: String,
}

/// Asks the model once.
pub async fn ask(
    provider: &dyn Provider,
    module: &Module,
    prompt: &Prompt,
    sink: &mut dyn EventSink,
) -> Result<Reply, Failure> {
    let temperature = temperature(module.manifest.tier);
    let call = ModelCall::new(prompt.instructions.clone(), prompt.input.clone(), temperature);
    let mut gathered = Gathered { text: String::new(), attempts: Vec::new(), sink };
    let outcome = provider.ask(&call, &mut gathered).await;
    let Gathered { text, attempts, .. } = gathered;
    match outcome {
        Ok(end) => {
            let model = format!("{}/{}", provider.name(), end.model);
            Ok(Reply { text, end, attempts, model })
        }
        Err(error) => Err(failure(&error, module, &text)),
    }
}

/// How freely the model may speak. Exec is deterministic; exploration is not.
fn temperature(tier: Tier) -> f64 {
    match tier {
        Tier::Exec => 0.0,
        Tier::Decision => 0.2,
        Tier::Exploration => 0.7,
    }
}

struct Gathered<'a> {
    text: String,
    attempts: Vec<Attempt>,
    sink: &'a mut dyn EventSink,
}

impl CallSink for Gathered<'_> {
    fn piece(&mut self, text: &str) {
        self.text.push_str(text);
        self.sink.event(Event::Text(text));
    }

    fn attempt(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
    }
}

fn failure(error: &ProviderError, module: &Module, text: &str) -> Failure {
    let message = error.to_string();
    let failure = match error {
        ProviderError::Unavailable(_) => Failure::new(ErrorCode::ProviderUnavailable, message)
            .suggest("Check that the provider is reachable and configured"),
        ProviderError::Misconfigured(_) => Failure::new(ErrorCode::ProviderUnavailable, message)
            .suggest("Check the key and the name of the model; `cogn doctor` shows what is configured"),
        ProviderError::RateLimited { retry_after } => {
            let seconds = retry_after.map_or(30, |wait| wait.as_secs());
            Failure::new(ErrorCode::RateLimited, message)
                .suggest(format!("Wait {seconds} seconds and run it again"))
                .with_detail("retry_after_seconds", json!(seconds))
        }
        ProviderError::Timeout => {
            Failure::new(ErrorCode::Timeout, message).suggest("Run it again, or allow more time")
        }
        ProviderError::Interrupted(_) => {
            Failure::new(ErrorCode::StreamInterrupted, message).suggest("Run it again")
        }
        ProviderError::ContextOverflow(_) => Failure::new(ErrorCode::ContextOverflow, message)
            .suggest("Send less input, or choose a model with a larger context window"),
        // An unknown failure may quote what it was given; its text is for the log only.
        _ => Failure::new(ErrorCode::InternalError, "the provider failed in an unexpected way"),
    };
    let partial =
        (!text.is_empty() && module.manifest.failure.partial_allowed).then(|| super::parse::raw(text));
    failure.with_partial(partial)
}
