//! Stage 3: ask the model and gather its text. (E2002, E2010, E4000–E4003)
//! Passes every piece on as it arrives. Interprets nothing of it.

use std::sync::Arc;
use std::time::Instant;

use cognitive_contract::manifest::Tier;
use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Event, EventSink, FailedTry, FailureKind, Finish, ModelCall, ModelEnd,
    PortFuture, Provider, ProviderError,
};
use cognitive_contract::{ErrorCode, Failure, Module, Warning, text};
use cognitive_schema::{Target, accepts, drop_stand_ins};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::output::Answer;
use super::parse;
use super::prompt::Prompt;
use crate::departure::Departure;
use crate::host::RunOptions;
use crate::receipt::Receipt;

/// How much of what a service says is repeated to callers, in characters.
const LONGEST_QUOTE: usize = 300;

/// The longest answer that is held against the schema that was sent, in bytes.
const LONGEST_COMPARED: usize = 1 << 20;

/// Most short replies are not longer; one that is grows.
pub(crate) const USUAL_REPLY: usize = 1024;

/// What the model said.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its text, whole.
    pub text: String,
    /// How it ended.
    pub end: ModelEnd,
    /// `provider/model`.
    pub model: String,
}

/// What the model is asked: the prompt, bound to the contract in the provider's words.
#[must_use]
pub fn compose(provider: &dyn Provider, module: &Module, prompt: &Prompt, options: &RunOptions) -> ModelCall {
    let mut call =
        ModelCall::new(prompt.instructions.clone(), prompt.input.clone(), temperature(module.manifest.tier));
    call.module.clone_from(&module.manifest.name);
    call.examples.clone_from(&prompt.examples);
    call.media.clone_from(&prompt.media.parts);
    call.wants_media = prompt.wants_media;
    call.seed = options.seed;
    call.timeout = options.timeout;
    call.max_output_tokens = options.max_output_tokens;
    call.schema = provider.target().map(|target| module.provider_schema(target));
    call
}

/// Asks the model once. Attempts go into the receipt, also when none of them worked; what it had said by then goes into
/// the failure.
pub(crate) async fn ask(
    departure: Departure<'_>,
    call: &ModelCall,
    sink: &mut dyn EventSink,
    receipt: &mut Receipt,
) -> Result<Reply, Failure> {
    let Departure { host, module, request } = departure;
    let (provider, strict_parse) = (host.provider.as_ref(), request.options.strict_parse);
    departure.leave().await?;
    let text = String::with_capacity(USUAL_REPLY);
    let mut gathered = Gathered { text, sink, receipt, departure, stopped: None };
    let before = gathered.receipt.attempts.len();
    let asked = Instant::now();
    let outcome = provider.ask(call, &mut gathered).await;
    let Gathered { text, receipt, stopped, .. } = gathered;
    receipt.took(asked.elapsed());
    let end = match outcome {
        Ok(end) => end,
        Err(error) => {
            receipt.broke_off(provider.name(), &text, before);
            if let Some(stopped) = stopped {
                return Err(stopped);
            }
            let tried = receipt.attempts.get(before..).and_then(<[Attempt]>::last);
            let strict = parse::is_strict(module, strict_parse);
            let partial = parse::interrupted(module, &text, strict);
            return Err(failure(&error, provider.name(), tried, module).with_partial(partial));
        }
    };
    if let (Some(lowered), DecodeMode::NativeSchema | DecodeMode::Grammar) = (&call.schema, end.decode) {
        receipt.lowered = Some(Arc::clone(lowered));
    }
    let model = format!("{}/{}", provider.name(), end.model);
    Ok(Reply { text, end, model })
}

/// Takes out the nulls that a lowered contract made the model write in place of optional members. They are ours, not the
/// model's, so nobody needs to hear of them.
pub fn undo_stand_ins(
    provider: &dyn Provider,
    module: &Module,
    reply: &Reply,
    object: &mut Map<String, Value>,
) {
    let nullable = matches!(provider.target(), Some(Target::OpenAi | Target::Anthropic));
    if nullable && reply.end.decode == DecodeMode::NativeSchema {
        drop_stand_ins(&module.contract, object);
    }
}

/// Whether a service that was given a schema answered as if it had not been: the answer breaks the contract, and
/// also breaks the very schema that was sent.
#[must_use]
pub fn schema_ignored(provider: &dyn Provider, module: &Module, reply: &Reply, answer: &Answer) -> bool {
    let clean = answer.outcome.is_ok() && answer.repairs.is_empty() && answer.liberties.is_empty();
    if clean || reply.end.decode != DecodeMode::NativeSchema {
        return false;
    }
    let Some(target) = provider.target() else { return false };
    // A long answer is there as a tree already, and a second one would double what it costs. Then only text that is no JSON
    // at all shows that nobody was bound.
    if reply.text.len() > LONGEST_COMPARED {
        return serde_json::from_str::<IgnoredAny>(&reply.text).is_err();
    }
    let written: Option<Value> = serde_json::from_str(&reply.text).ok();
    written.is_none_or(|value| !accepts(&module.provider_schema(target).schema, &value))
}

/// Says that characters of an answer were lost on the way: bytes that are no text, or a character that was cut in two by
/// somebody before us.
#[must_use]
pub fn lost_characters(reply: &str) -> Option<Warning> {
    let at = reply.find(char::REPLACEMENT_CHARACTER)?;
    let count = reply.matches(char::REPLACEMENT_CHARACTER).count();
    let message = format!(
        "the answer has {count} × U+FFFD, which stands for what could not be read; the first at byte {at}"
    );
    Some(Warning::new("ENCODING", message))
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
    sink: &'a mut dyn EventSink,
    receipt: &'a mut Receipt,
    departure: Departure<'a>,
    /// Why no further request may leave.
    stopped: Option<Failure>,
}

impl CallSink for Gathered<'_> {
    fn piece(&mut self, text: &str) {
        self.text.push_str(text);
        self.sink.event(Event::Text(text));
    }

    fn attempt(&mut self, attempt: Attempt) {
        if let Some(usage) = attempt.usage {
            self.receipt.spent(usage);
        }
        self.receipt.attempts.push(attempt);
    }

    fn bound(&mut self, decode: DecodeMode) {
        self.sink.event(Event::Bound(decode));
    }

    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        Box::pin(async {
            self.departure.leave().await.map_err(|why| {
                self.stopped = Some(why);
                ProviderError::Stopped
            })
        })
    }
}

/// What a call that did not work is to the caller. `tried` is its last try, if there was one.
pub(crate) fn failure(
    error: &ProviderError,
    provider: &str,
    tried: Option<&Attempt>,
    module: &Module,
) -> Failure {
    let message = error.to_string();
    let failure = match error {
        ProviderError::Unavailable(_) | ProviderError::Misconfigured(_) | ProviderError::Rejected(_) => {
            Failure::new(ErrorCode::ProviderUnavailable, message)
        }
        ProviderError::RateLimited { retry_after } => {
            let seconds = retry_after.map_or(30, |wait| wait.as_secs());
            Failure::new(ErrorCode::RateLimited, message)
                .suggest(format!("Wait {seconds} seconds and run it again"))
                .with_detail("retry_after_seconds", json!(seconds))
        }
        ProviderError::Timeout => {
            Failure::new(ErrorCode::Timeout, message).suggest("Run it again, or allow more time")
        }
        ProviderError::Interrupted(_) => Failure::new(ErrorCode::StreamInterrupted, message),
        ProviderError::ContextOverflow(_) => Failure::new(ErrorCode::ContextOverflow, message)
            .suggest("Send less input, or choose a model with a larger context window"),
        ProviderError::Unsupported(_) => Failure::new(ErrorCode::ProviderUnavailable, message)
            .with_detail("missing", json!(["contract"]))
            .suggest(format!(
                "Say the rule in other keywords (`cogn lower {} --target grammar` lists all that cannot be kept), or \
                 choose another provider with `--provider`",
                module.manifest.name
            )),
        // A fault of ours may quote what it was given; its text is for the log only.
        _ => Failure::new(ErrorCode::InternalError, "the runtime failed while it asked the provider"),
    };
    let failed =
        tried.and_then(|attempt| attempt.failed.clone()).or_else(|| error.kind().map(FailedTry::new));
    match failed {
        Some(failed) => {
            let advice = failed.remedy.clone().or_else(|| advice(failed.kind).map(str::to_owned));
            let failure = match (failure.suggestion(), advice) {
                (None, Some(advice)) => failure.suggest(advice),
                _ => failure,
            };
            let (status, passes) = (tried.and_then(|attempt| attempt.status), failed.passes);
            routed(failure, provider, status, &failed).with_recoverable(passes)
        }
        None => failure,
    }
}

/// Adds what callers route on: who failed, in which way, with which status, and in which words. (D-16)
fn routed(failure: Failure, provider: &str, status: Option<u16>, failed: &FailedTry) -> Failure {
    let mut failure =
        failure.with_detail("provider", json!(provider)).with_detail("kind", json!(failed.kind.word()));
    if let Some(status) = failed.status.or(status) {
        failure = failure.with_detail("status", json!(status));
    }
    match &failed.said {
        Some(said) => failure.with_detail("provider_message", json!(said)),
        None => failure,
    }
}

/// The same for an answer that the model refused to give, or that the limit of tokens cut off: the service worked, but who
/// routes on failures needs to know of these too.
pub fn unfinished(failure: Failure, provider: &dyn Provider, reply: &Reply, receipt: &Receipt) -> Failure {
    let (kind, said) = match &reply.end.finish {
        Finish::Refused(why) => {
            (FailureKind::Refused, Some(why.clone()).filter(|why| !why.trim().is_empty()))
        }
        Finish::CutOff => (FailureKind::TooLong, None),
        _ => return failure,
    };
    let mut failed = FailedTry::new(kind);
    failed.said = said.map(|said| text::cut(&said, LONGEST_QUOTE).to_owned());
    let status = receipt.attempts.last().and_then(|attempt| attempt.status);
    routed(failure, provider.name(), status, &failed)
}

/// What helps against a kind of failure whose code does not say it.
fn advice(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::Auth => "Check the key; `cogn doctor` shows what is configured",
        FailureKind::ModelNotFound => {
            "Check the name of the model (`--model`); `cogn doctor` shows what is configured"
        }
        FailureKind::Quota => "Check the plan and the balance of the account with the provider",
        FailureKind::BadRequest => {
            "The same request will be refused again; `error.details.provider_message` says why, if the service did"
        }
        FailureKind::Malformed => {
            "Check the address of the provider and what stands between it and this machine"
        }
        FailureKind::Unsuitable => {
            "Choose another model with `--model`, or another provider with `--provider`"
        }
        FailureKind::Network => "Check that the provider is reachable, and run it again",
        FailureKind::Outage => "Wait until the provider is back, and run it again",
        FailureKind::RateLimit | FailureKind::Refused | FailureKind::TooLong | FailureKind::Timeout => {
            return None;
        }
    })
}
