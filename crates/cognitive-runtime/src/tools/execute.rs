//! Executes one tool call: checks permission and arguments, and limits its time and the size of its result. Never
//! ends a run: every error becomes a reply that the model can read.

use std::pin::pin;
use std::time::{Duration, Instant};

use cognitive_contract::policy::{OfferedTool as Asked, ToolLaw};
use cognitive_contract::tools::{
    MAX_CALLS, ToolBox, ToolCall, ToolOutcome, ToolReply, ToolSpec, ToolUse, tool_question,
};
use serde_json::{Value, json};

use crate::host::Host;
use crate::{panics, time_limit};

/// The longest tool result for the model, in bytes of JSON. More would crowd out the input.
const MAX_RESULT_BYTES: usize = 64 * 1024;

/// Calls one tool within the remaining time, if the policies allow it.
pub(crate) async fn execute(
    host: &Host,
    law: &ToolLaw<'_>,
    call: &ToolCall,
    remaining: Duration,
) -> (ToolReply, ToolUse) {
    let started = Instant::now();
    let outcome = match find_allowed(&host.tools, law, &call.name) {
        Ok(spec) => run(host, spec, call, remaining).await,
        Err(refused) => Err(refused),
    };
    let (reply, word) = match outcome {
        Ok(content) => (ToolReply::new(content, true), ToolOutcome::Ok),
        Err((outcome, reason)) => (error(&reason), outcome),
    };
    (reply, ToolUse::new(&call.name, word, started.elapsed()))
}

/// The reply to surplus calls of a turn: `call` is the first of `count` calls that are not made.
pub(crate) fn surplus_reply(call: &ToolCall, count: u64) -> (ToolReply, ToolUse) {
    let reply = error(&format!("at most {MAX_CALLS} calls of one turn are made; {count} more were not made"));
    (reply, ToolUse::new(&call.name, ToolOutcome::TooMany, Duration::ZERO).standing_for(count))
}

/// Returns the tool of this name, if it may be used. Checked for every call, whatever the model was offered.
/// (POL-004)
pub(crate) fn find_allowed<'a>(
    tools: &'a ToolBox,
    law: &ToolLaw<'_>,
    name: &str,
) -> Result<&'a ToolSpec, ToolRefusal> {
    let spec = tools.spec(name);
    let tool = spec.map_or(Asked { name, classes: &[] }, tool_question);
    if let Some(refusal) = law.refusal(tool) {
        let reason = format!("{}: {}", refusal.code().number(), refusal.message());
        return Err((ToolOutcome::Denied, reason));
    }
    spec.ok_or_else(|| (ToolOutcome::Unknown, "there is no such tool".to_owned()))
}

/// The outcome, and the message for the model.
type ToolRefusal = (ToolOutcome, String);

async fn run(
    host: &Host,
    spec: &ToolSpec,
    call: &ToolCall,
    remaining: Duration,
) -> Result<String, ToolRefusal> {
    let arguments = arguments(&host.tools, call).map_err(|reason| (ToolOutcome::InvalidArguments, reason))?;
    let Some(tool) = host.tools.get(&call.name) else {
        return Err((ToolOutcome::Unknown, "there is no such tool".to_owned()));
    };
    let time = spec.timeout.min(remaining);
    // The call starts inside the future, so that a panic there is caught as well.
    let calling = pin!(async { tool.call(&arguments).await });
    let result = match time_limit::with_time_limit(host, time, panics::catch(calling)).await {
        None => return Err((ToolOutcome::TimedOut, "the tool took too long".to_owned())),
        Some(Err(panics::PanicError)) => return Err((ToolOutcome::Failed, "the tool failed".to_owned())),
        Some(Ok(Err(reason))) => return Err((ToolOutcome::Failed, reason.to_string())),
        Some(Ok(Ok(result))) => result.to_string(),
    };
    if result.len() > MAX_RESULT_BYTES {
        let reason =
            format!("the result has {} bytes, at most {MAX_RESULT_BYTES} are passed on", result.len());
        return Err((ToolOutcome::TooLarge, reason));
    }
    Ok(result)
}

/// Parses the arguments and checks them against the schema. Some models send an empty text for no arguments.
fn arguments(tools: &ToolBox, call: &ToolCall) -> Result<Value, String> {
    if call.too_long {
        return Err("the arguments are too long and were not read; the tool was not called".to_owned());
    }
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let value = serde_json::from_str(text).map_err(|_| "the arguments are not JSON".to_owned())?;
    tools.objection(&call.name, &value).map_or(Ok(value), |why| Err(format!("wrong arguments: {why}")))
}

fn error(reason: &str) -> ToolReply {
    let short: String = reason.chars().take(MAX_REASON_CHARS).collect();
    ToolReply::new(json!({ "error": short }).to_string(), false)
}

/// The longest error message for the model, in characters. A tool's own message may be arbitrarily long.
const MAX_REASON_CHARS: usize = 2_000;
