//! Stage 4: finds the one JSON object in the model's text. (E1000, E2003, E2004, E3001)
//! `reply/` reads the text. This stage builds the failure of a reply without an answer, and its partial data.

#[cfg(test)]
mod tests;

use cognitive_contract::code::Blame;
use cognitive_contract::ports::Finish;
use cognitive_contract::{ErrorCode, Failure, Module, Violation, text};
use serde_json::{Map, Value, json};

use super::call::Reply;
pub use crate::reply::{Draft, Liberty, LibertyRule};
use crate::reply::{Leniency, UnreadableReason, UnreadableReply, bounds, find};
use crate::stream::partial::so_far;

/// The number of characters of an unreadable text in `partial_data`. The text is for people who look for the cause,
/// and its beginning is enough.
const MAX_RAW: usize = 2_000;

/// Finds the object, without liberties if `strict`; `fits` returns whether an object keeps the contract. Fails with
/// E1000 if the text has no object or several different ones, and with E2003 if the token limit cut it off. Fails
/// with E2004 if the model refused, and with E3001 for JSON that is not an object.
pub fn extract(
    module: &Module,
    reply: &Reply,
    strict: bool,
    fits: &dyn Fn(Map<String, Value>) -> bool,
) -> Result<Draft, Failure> {
    if let Finish::Refused(reason) = &reply.end.finish {
        return Err(refusal_failure(module, &reply.text, reason));
    }
    let leniency = if strict { Leniency::Strict } else { Leniency::Lenient };
    find(&reply.text, leniency, &reply.end.finish, fits).map_err(|why| failure(module, reply, why, strict))
}

/// Returns an unreadable text as `partial_data`.
pub(super) fn raw(text: &str) -> Map<String, Value> {
    let mut partial = Map::new();
    partial.insert("raw".to_owned(), Value::from(text::cut(text, MAX_RAW)));
    partial
}

fn partial(module: &Module, text: &str) -> Option<Map<String, Value>> {
    let (start, end) = bounds(text);
    (module.manifest.failure.partial_allowed && start < end).then(|| raw(text))
}

fn refusal_failure(module: &Module, text: &str, reason: &str) -> Failure {
    let reason = if reason.trim().is_empty() { "the model refused to answer" } else { reason };
    Failure::new(ErrorCode::NoActionPossible, text::cut(reason, MAX_RAW))
        .with_detail("source", json!("model"))
        .with_partial(partial(module, text))
}

fn failure(module: &Module, reply: &Reply, why: UnreadableReply, strict: bool) -> Failure {
    let (word, message) = match &why.reason {
        UnreadableReason::NotAnObject => return not_an_object(module, &reply.text),
        UnreadableReason::Empty => ("empty", "the model's answer is empty"),
        UnreadableReason::NotJson => ("not_json", "the model's answer is not JSON"),
        UnreadableReason::Truncated => ("truncated", "the model's answer ends too early"),
        UnreadableReason::TooDeep => ("too_deep", "the model's answer is nested too deep"),
        UnreadableReason::Ambiguous(_) => ("ambiguous", "the model gave several answers that differ"),
        UnreadableReason::NotAlone => ("not_alone", "strict parsing allows no text outside the JSON object"),
        UnreadableReason::ClosedEarly => ("closed_early", "the model's answer was closed before its end"),
        UnreadableReason::RepeatedName => ("repeated_name", "duplicate key in the model's answer"),
    };
    let cut_off = reply.end.finish == Finish::CutOff;
    let (code, message) = if cut_off {
        (ErrorCode::TokenLimit, "the model's answer was cut off by the token limit")
    } else {
        (ErrorCode::ParseError, message)
    };
    let partial =
        if cut_off { partial_data(module, &reply.text, strict) } else { partial(module, &reply.text) };
    let mut failure = Failure::new(code, message)
        .with_blame(Blame::Model)
        .with_detail("source", json!("model"))
        .with_detail("reason", json!(word))
        .with_partial(partial)
        .suggest(OTHER_WAY);
    if let Some(at) = why.at {
        failure = failure.with_detail("offset", json!(at));
    }
    match why.reason {
        UnreadableReason::Ambiguous(places) => failure.with_detail("candidates", json!(places)),
        _ => failure,
    }
}

/// The partial data of an interrupted answer (D-12): the members of the data as a stream shows them, or the text if
/// no object had started.
pub(crate) fn partial_data(module: &Module, text: &str, strict: bool) -> Option<Map<String, Value>> {
    if !module.manifest.failure.partial_allowed {
        return None;
    }
    so_far(module, text, strict).or_else(|| partial(module, text))
}

/// The suggestion for an answer that cannot be read. The same request may fail in the same way.
const OTHER_WAY: &str =
    "Use a provider with native structured output, or let the model answer again with `reask`";

fn not_an_object(module: &Module, text: &str) -> Failure {
    let code = ErrorCode::SchemaValidationFailed;
    let violation = Violation::new("", code, "type", "expected an object");
    Failure::new(code, "the model answered with JSON that is not an object")
        .with_detail("violations", json!([violation]))
        .with_partial(partial(module, text))
        .suggest(OTHER_WAY)
}
