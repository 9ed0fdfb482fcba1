//! Stage 3: asks the model and collects its text. (E2002, E2010, E4000–E4003)
//! Forwards every piece as it arrives, without interpreting it. Every request of a run leaves here; if a model may
//! call tools, `tools` only decides the next request.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use cognitive_contract::manifest::Tier;
use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Event, EventSink, FailedTry, FailureKind, Finish, ModelCall, ModelEnd,
    PortFuture, Provider, ProviderError, Stage,
};
use cognitive_contract::thinking::{MAX_THINKING_TOKENS, ThoughtOutcome};
use cognitive_contract::{Enforcement, ErrorCode, Failure, Module, RunSettings, Warning, text};
use cognitive_schema::{SchemaTarget, accepts, drop_stand_ins};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::output::JudgedAnswer;
use super::prompt::Prompt;
use super::{media, parse};
use crate::call_budget::CallPermit;
use crate::cost;
use crate::early_stop::EarlyStop;
use crate::host::Host;
use crate::receipt::{Receipt, ThoughtRecord};
use crate::run::Run;
use crate::stream::listeners::unless_stopped_early;
use crate::tools::{HeldText, ToolLoop};

/// The number of characters of a service's message that callers get. A service may answer with a whole page.
const MAX_QUOTED_CHARS: usize = 300;

/// The longest answer that is checked against the sent schema, in bytes. A longer one would be parsed into a second
/// tree beside the first, which doubles its memory.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Most short replies fit; a longer one grows the buffer.
pub(crate) const DEFAULT_REPLY_CAPACITY: usize = 1024;

/// The reply of the model.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The whole text.
    pub text: String,
    /// The end of the reply.
    pub end: ModelEnd,
    /// `provider/model`.
    pub model: String,
    /// The dialect of the schema that it was written under, if there was one.
    pub dialect: Option<SchemaTarget>,
}

impl Reply {
    /// Returns whether the model requests tools. A turn that broke off requests none: its calls may be incomplete.
    pub(crate) fn wants_tools(&self) -> bool {
        let asks = !self.end.tool_calls.is_empty() || self.end.more_calls > 0;
        asks && self.end.finish == Finish::Complete
    }
}

/// Gets the model's reply to a prompt. `None` if the call was stopped early, because its text could not become a
/// valid answer any more. Most models are offered no tools and are asked once.
pub(crate) async fn reply(
    run: &mut Run<'_, '_>,
    prompt: &Prompt,
    tools: &mut ToolLoop,
) -> Result<Option<Reply>, Failure> {
    run.receipt.sha256.prompt = run.receipt.hash(|| prompt.sha256());
    let may_stop = run.plan.settings.stops_early() && !tools.has_tools() && !prompt.wants_media;
    // Without enforcement there is no contract to break.
    let early_stop = (may_stop && run.plan.settings.enforcement() == Enforcement::Full)
        .then(|| EarlyStop::new(Arc::clone(run.module), run.writes_null_for_absent()));
    run.listeners.begin_call(run.strict(), early_stop);
    run.listeners.event(Event::Stage(Stage::Call));
    let live = run.listeners.live_call();
    let asked = async {
        let mut call = model_call(run.provider, run.module, &run.plan.settings, prompt);
        call.timeout = run.call_timeout;
        cost::hold_to_limit(run, &mut call);
        if tools.has_tools() {
            return Box::pin(tools.answer(run, call)).await;
        }
        call.answer_now = run.receipt.reasked > 0;
        let reply = send(run, &call, false).await?;
        if reply.wants_tools() {
            run.receipt.record_reply(&reply);
            return Err(tools.refusal(run, &reply));
        }
        Ok(reply)
    };
    let replied = unless_stopped_early(pin!(asked), &live).await;
    replied.transpose().map_err(|failure| run.with_stream_code(failure))
}

/// The call for a prompt, with the contract in the provider's form. The limits of a run are not in it.
pub(crate) fn model_call(
    provider: &dyn Provider,
    module: &Module,
    settings: &RunSettings,
    prompt: &Prompt,
) -> ModelCall {
    let mut call =
        ModelCall::new(prompt.instructions.clone(), prompt.input.clone(), temperature(module.manifest.tier));
    call.module.clone_from(&module.manifest.name);
    call.examples.clone_from(&prompt.examples);
    call.trained = Arc::clone(&module.trained);
    call.media.clone_from(&prompt.media.parts);
    call.wants_media = prompt.wants_media;
    call.seed = settings.seed;
    call.timeout = settings.call_timeout();
    call.max_output_tokens = settings.max_output_tokens;
    call.has_stable_prefix = prompt.is_stable;
    call.thinking = thinking(settings, module);
    call.schema = provider.target().map(|target| module.provider_schema(target));
    call
}

/// Sends one call to the model and collects its text. Text before a tool call is not sent to the listeners.
pub(crate) async fn send(run: &mut Run<'_, '_>, call: &ModelCall, has_tools: bool) -> Result<Reply, Failure> {
    run.listeners.record_asking(run.provider);
    let sent = gather(run, call, has_tools).await;
    run.listeners.record_outcome(sent.as_ref().map(|reply| &reply.end));
    sent
}

/// Attempts are recorded in the receipt, even if all failed; the text that arrived before a failure goes into the
/// failure.
async fn gather(run: &mut Run<'_, '_>, call: &ModelCall, has_tools: bool) -> Result<Reply, Failure> {
    let (permit, provider, host) = (run.permit(call), run.provider, run.host);
    permit.obtain().await?;
    let roomier = cost::with_room(call, permit.cost.as_ref());
    let call = roomier.as_ref().unwrap_or(call);
    let mut held = HeldText::new(&mut *run.listeners, has_tools);
    let text = String::with_capacity(DEFAULT_REPLY_CAPACITY);
    let receipt = &mut *run.receipt;
    let before = receipt.attempts.len();
    let cost = permit.cost.clone();
    let mut gathered = ReplyCollector { text, sink: &mut held, receipt, host, permit, stopped: None };
    let asked = Instant::now();
    let outcome = provider.ask(call, &mut gathered).await;
    let ReplyCollector { text, stopped, .. } = gathered;
    run.receipt.add_time(asked.elapsed());
    let end = match outcome {
        Ok(mut end) => {
            if let Some(cost) = cost {
                cost.settle_answer(end.usage);
            }
            end.usage = end.usage.map(|usage| cost::with_cost(host, provider, usage));
            end
        }
        Err(error) => {
            run.receipt.record_interruption(provider.name(), &text, before);
            let tried = run.receipt.attempts.get(before..).and_then(<[Attempt]>::last);
            let partial = || parse::partial_data(run.module, &text, run.strict());
            return Err(stopped.unwrap_or_else(|| failure(run, &error, tried).with_partial(partial())));
        }
    };
    let dialect = call.dialect_of(&end);
    if let Some(lowered) = call.schema.as_ref().filter(|_| end.decode.is_bound()) {
        run.receipt.lowered = Some(Arc::clone(lowered));
    }
    let outcome = end.thinking;
    run.receipt.thinking = call.thinking.map(|max_tokens| ThoughtRecord { max_tokens, outcome });
    let model = format!("{}/{}", provider.name(), end.model);
    let reply = Reply { text, end, model, dialect };
    if !reply.wants_tools() {
        held.release();
    } else if held.heard {
        // It started like an answer but was none: the text already sent was provisional, and the next turn starts
        // over.
        run.listeners.begin_call(run.strict(), None);
    }
    Ok(reply)
}

/// An object of a reply, complete: without the nulls that the schema of the call made the model write, which are ours and
/// not the model's, and with the media that came beside the text.
pub(crate) fn complete(
    run: &Run<'_, '_>,
    reply: &Reply,
    mut object: Map<String, Value>,
) -> Map<String, Value> {
    if let Some(dialect) = reply.dialect {
        drop_stand_ins(&run.module.contract, dialect, &mut object);
    }
    media::insert(&mut object, &reply.end.media);
    object
}

/// Returns whether a service received a schema and answered as if it had not: the answer breaks both the contract and
/// the sent schema.
pub(crate) fn schema_ignored(run: &Run<'_, '_>, reply: &Reply, answer: &JudgedAnswer) -> bool {
    let clean = answer.outcome.is_ok() && answer.repairs.is_empty() && answer.liberties.is_empty();
    if clean || reply.end.decode != DecodeMode::NativeSchema {
        return false;
    }
    let Some(target) = run.provider.target() else { return false };
    // A long answer is already in memory as a tree, and a second tree would double the cost. Then only text that is
    // not JSON proves that the model was not bound to the schema.
    if reply.text.len() > MAX_COMPARED_BYTES {
        return serde_json::from_str::<IgnoredAny>(&reply.text).is_err();
    }
    let written: Option<Value> = serde_json::from_str(&reply.text).ok();
    written.is_none_or(|value| !accepts(&run.module.provider_schema(target).schema, &value))
}

/// Warns about lost characters in an answer: invalid bytes, or a character that was split by an earlier proxy or
/// service.
pub(crate) fn lost_characters(reply: &str) -> Option<Warning> {
    let at = reply.find(char::REPLACEMENT_CHARACTER)?;
    let count = reply.matches(char::REPLACEMENT_CHARACTER).count();
    let message =
        format!("the answer has {count} × U+FFFD, which replaces unreadable bytes; the first at byte {at}");
    Some(Warning::new("ENCODING", message))
}

/// The thinking budget: from the options, else from the module's manifest.
pub(crate) fn thinking(settings: &RunSettings, module: &Module) -> Option<u32> {
    let tokens = settings.thinking.or_else(|| module.manifest.thinking.map(|rule| rule.max_tokens));
    tokens.map(|tokens| tokens.min(MAX_THINKING_TOKENS))
}

/// Warns if the request could not set thinking as requested: the service has no setting, or refuses it, for example
/// beside tools.
pub(crate) fn ignored_thinking(run: &Run<'_, '_>, reply: &Reply) -> Option<Warning> {
    if reply.end.thinking != Some(ThoughtOutcome::Ignored) {
        return None;
    }
    let message = match thinking(&run.plan.settings, run.module)? {
        0 => "thinking could not be switched off for this request".to_owned(),
        tokens => format!("thinking could not be set for this request; asked for: {tokens} tokens"),
    };
    Some(Warning::new("THINKING", message))
}

/// The temperature of a tier. Exec is deterministic; exploration is not.
fn temperature(tier: Tier) -> f64 {
    match tier {
        Tier::Exec => 0.0,
        Tier::Decision => 0.2,
        Tier::Exploration => 0.7,
    }
}

struct ReplyCollector<'a> {
    text: String,
    sink: &'a mut dyn EventSink,
    receipt: &'a mut Receipt,
    host: &'a Host,
    permit: CallPermit<'a>,
    /// The reason why no further request is allowed.
    stopped: Option<Failure>,
}

impl CallSink for ReplyCollector<'_> {
    fn piece(&mut self, text: &str) {
        self.text.push_str(text);
        self.sink.event(Event::Text(text));
    }

    fn attempt(&mut self, mut attempt: Attempt) {
        if let Some(cost) = self.permit.cost.as_ref().filter(|_| attempt.outcome != "ok") {
            cost.settle_failure(&attempt);
        }
        // A count before the end has no price: the sum would look complete and be too low.
        if !attempt.counted_midway {
            attempt.usage =
                attempt.usage.map(|usage| cost::with_cost(self.host, self.permit.provider, usage));
        }
        if let Some(usage) = attempt.usage {
            self.receipt.add_usage(usage);
        }
        self.receipt.attempts.push(attempt);
    }

    fn decode_mode(&mut self, decode: DecodeMode) {
        self.sink.event(Event::Bound(decode));
    }

    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        Box::pin(async {
            self.permit.obtain().await.map_err(|why| {
                self.stopped = Some(why);
                ProviderError::Stopped
            })
        })
    }
}

/// Converts a failed call to the caller's failure. `tried` is its last try, if any.
pub(crate) fn failure(run: &Run<'_, '_>, error: &ProviderError, tried: Option<&Attempt>) -> Failure {
    let code = error.code();
    let message = match code {
        // An internal error may quote its input; its text is for the log only.
        ErrorCode::InternalError => "internal error of the runtime while it called the provider".to_owned(),
        _ => error.to_string(),
    };
    let failure = Failure::new(code, message);
    let failure = match error {
        ProviderError::RateLimited { retry_after } => {
            let seconds = retry_after.map_or(30, |wait| wait.as_secs());
            failure
                .suggest(format!("Wait {seconds} seconds and run it again"))
                .with_detail("retry_after_seconds", json!(seconds))
        }
        ProviderError::Timeout => failure.suggest("Run it again, or allow more time"),
        ProviderError::ContextOverflow(_) => {
            failure.suggest("Send less input, or choose a model with a larger context window")
        }
        ProviderError::Unsupported(_) => {
            failure.with_detail("missing", json!(["contract"])).suggest(format!(
                "Express the rule with other keywords (`cogn lower {} --target grammar` lists the \
                 unsupported ones), or choose another provider with `--provider`",
                run.module.manifest.name
            ))
        }
        _ => failure,
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
            with_routing_details(failure, run.provider.name(), status, &failed).with_recoverable(passes)
        }
        None => failure,
    }
}

/// Adds the details that callers route on: provider, kind, status and the provider's message. (D-16)
fn with_routing_details(
    failure: Failure,
    provider: &str,
    status: Option<u16>,
    failed: &FailedTry,
) -> Failure {
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

/// Does the same for an answer that the model refused, or that the token limit cut off: the service worked, but
/// callers route on these failures, too.
pub(crate) fn unfinished_failure(run: &Run<'_, '_>, failure: Failure, reply: &Reply) -> Failure {
    let (kind, said) = match &reply.end.finish {
        Finish::Refused(why) => {
            (FailureKind::Refused, Some(why.clone()).filter(|why| !why.trim().is_empty()))
        }
        Finish::CutOff => (FailureKind::TooLong, None),
        _ => return failure,
    };
    let is_held = run.lineage.meter().is_some() && run.plan.settings.max_output_tokens.is_none();
    let failure = if is_held && kind == FailureKind::TooLong {
        failure.suggest(
            "Raise the cost limit, which also limits the length of the answer, or set `max_output_tokens`",
        )
    } else {
        failure
    };
    let mut failed = FailedTry::new(kind);
    failed.said = said.map(|said| text::cut(&said, MAX_QUOTED_CHARS).to_owned());
    let status = run.receipt.attempts.last().and_then(|attempt| attempt.status);
    with_routing_details(failure, run.provider.name(), status, &failed)
}

/// Returns advice for a kind of failure whose code has none.
fn advice(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::Auth => "Check the key; `cogn doctor` shows what is configured",
        FailureKind::ModelNotFound => {
            "Check the name of the model (`--model`); `cogn doctor` shows what is configured"
        }
        FailureKind::Quota => "Check the plan and the balance of the provider's account",
        FailureKind::BadRequest => {
            "The provider will reject the same request again; `error.details.provider_message` gives its \
             reason, if there is one"
        }
        FailureKind::Malformed => "Check the address of the provider and any proxy in between",
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
