//! Stage 4: find the one JSON object in the model's text. (E1000, E2003, E2004, E3001)
//!
//! Lenient syntax, strict meaning (D-01). The whole text as RFC 8259 has it is tried first, and for `exec` or
//! `strict_parse` only the content of a fence besides, if that is all there is (D-09). Other tiers go on: `outline.rs`
//! lists the objects in the text, `reader.rs` reads each of them with the liberties that have one reading, `choose.rs`
//! says which one is the answer, by the contract.
//!
//! Never completes what was cut off, never accepts `NaN`, never merges two objects, never takes a part of something
//! broken, and keeps no liberty to itself: each is in [`Draft::liberties`] with its place, or counted there where there
//! are many of a kind, and each number that does not keep its value is in [`Draft::rounded`].

mod choose;
mod fence;
mod liberty;
pub(crate) mod outline;
pub(crate) mod reader;
mod skip;
mod strict;
#[cfg(test)]
mod tests;
mod thinking;
mod token;

use cognitive_contract::code::Blame;
use cognitive_contract::manifest::Tier;
use cognitive_contract::numbers::{self, Rounded};
use cognitive_contract::ports::Finish;
use cognitive_contract::{ErrorCode, Failure, Module, Violation, text};
use serde_json::{Map, Value, json};

pub(crate) use self::choose::Fits;
pub(crate) use self::fence::SHORTEST as SHORTEST_FENCE;
pub use self::liberty::{Liberty, LibertyRule};
pub(crate) use self::thinking::{TAGS, Tag};
pub(crate) use self::token::other_blank;

use self::choose::Chosen;
use self::fence::Only;
use self::outline::Outline;
use self::reader::Read;
use self::strict::{Fault, Strict};
use super::call::Reply;
use crate::live::so_far;

/// Nesting beyond this is no answer but an attack or an accident.
pub(crate) const DEEPEST: usize = 100;
/// How much of an unreadable text goes into `partial_data`, in characters.
const RAW_LIMIT: usize = 2_000;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The object that the model wrote, as it wrote it. [`extract`] makes one, and a composition that speaks for its
/// parts.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The object.
    pub object: Map<String, Value>,
    /// The liberties that were taken to read it, in the order of the text.
    pub liberties: Vec<Liberty>,
    /// The numbers in it that are not what the model wrote, because nothing can hold them exactly (D-10).
    pub rounded: Vec<Rounded>,
}

/// Finds the object; `fits` says of an object whether it keeps the contract. Fails with E1000 for text that holds none
/// or several, E2003 if the token limit is to blame, E2004 if the model refused, and E3001 for JSON that is not an
/// object.
pub fn extract(
    module: &Module,
    reply: &Reply,
    strict_parse: bool,
    fits: &dyn Fn(Map<String, Value>) -> bool,
) -> Result<Draft, Failure> {
    if let Finish::Refused(reason) = &reply.end.finish {
        return Err(refused(module, &reply.text, reason));
    }
    let manner = if is_strict(module, strict_parse) { Manner::Strict } else { Manner::Lenient };
    find(&reply.text, manner, &reply.end.finish, fits)
        .map_err(|why| failure(module, reply, why, manner == Manner::Strict))
}

/// Whether no liberty is taken with what a module's model writes.
pub(crate) fn is_strict(module: &Module, strict_parse: bool) -> bool {
    strict_parse || module.manifest.tier == Tier::Exec
}

/// How much is forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Nothing: the whole text, or the content of a fence (PIPE-004).
    Strict,
    /// What has one reading.
    Lenient,
}

/// Why no object was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) reason: Reason,
    pub(crate) at: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There is no text, or nothing but thinking.
    Empty,
    /// There is text, but no object.
    NotJson,
    /// It ends within an object, or within thinking.
    Truncated,
    /// It is nested beyond [`DEEPEST`].
    TooDeep,
    /// There are two answers or more, at these places.
    Ambiguous(Vec<usize>),
    /// Something stands beside the one document that there may be.
    NotAlone,
    /// JSON goes on behind the object.
    ClosedEarly,
    /// A name stands twice in one object, where nothing is forgiven.
    RepeatedName,
    /// It is JSON, but a list or a scalar.
    NotAnObject,
}

impl From<(Reason, Option<usize>)> for Unreadable {
    fn from((reason, at): (Reason, Option<usize>)) -> Self {
        Self { reason, at }
    }
}

pub(crate) fn find(text: &str, manner: Manner, finish: &Finish, fits: Fits<'_>) -> Result<Draft, Unreadable> {
    let (start, end) = bounds(text);
    let body = text.get(start..end).unwrap_or_default();
    if body.is_empty() {
        return Err((Reason::Empty, None).into());
    }
    let whole = match strict::parse(body) {
        Ok(whole) => object(whole, text, start, body, manner),
        Err(fault) if manner == Manner::Strict => in_fence(text, (start, end), fault),
        Err(_) => in_text(text.get(..end).unwrap_or(text), start, finish, fits),
    };
    whole.map(|mut draft| {
        draft.liberties.extend(byte_order_mark(text, start));
        // The same places are named by several steps; people read them from top to bottom.
        draft.liberties.sort_by_key(|liberty| liberty.at);
        draft
    })
}

/// Start and end of the text without white space and byte order marks around it (PIPE-004).
fn bounds(text: &str) -> (usize, usize) {
    let is_blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
    let body = text.trim_start_matches(is_blank);
    let start = text.len() - body.len();
    (start, start + body.trim_end_matches(is_blank).len())
}

fn byte_order_mark(text: &str, start: usize) -> Option<Liberty> {
    let at = text.get(..start)?.find(BYTE_ORDER_MARK)?;
    Some(Liberty::new(at, LibertyRule::Bom, "a byte order mark was skipped"))
}

/// The object that was read strictly from `body`, which stands in `text` at `start`. Repeated names are rare, so their
/// places are looked up only then, by reading once more: to the same value, so that the first can go before.
fn object(read: Strict, text: &str, start: usize, body: &str, manner: Manner) -> Result<Draft, Unreadable> {
    let Strict { value, repeats, floats } = read;
    let (value, liberties) = if repeats {
        drop(value);
        match reader::read(text, start) {
            Ok(Read { value, liberties, .. }) => (value, liberties),
            // Both read the same language; should they ever differ, the strict one counts.
            Err(_) => (strict::parse(body).map(|read| read.value).unwrap_or_default(), Vec::new()),
        }
    } else {
        (value, Vec::new())
    };
    let Value::Object(object) = value else {
        return Err((Reason::NotAnObject, None).into());
    };
    if let Some(repeated) = liberties.first().filter(|_| manner == Manner::Strict) {
        return Err((Reason::RepeatedName, Some(repeated.at)).into());
    }
    let rounded = if floats { numbers::rounded(body) } else { Vec::new() };
    Ok(Draft { object, liberties, rounded })
}

fn unreadable(fault: Fault, start: usize, end: usize) -> Unreadable {
    let (reason, at) = match fault {
        Fault::Syntax { at } => (Reason::NotJson, Some(start + at)),
        Fault::End => (Reason::Truncated, Some(end)),
        Fault::TooDeep => (Reason::TooDeep, None),
    };
    Unreadable { reason, at }
}

/// The content of a fence that is all there is, strictly.
fn in_fence(text: &str, (start, end): (usize, usize), fault: Fault) -> Result<Draft, Unreadable> {
    let (from, to) = match fence::only(text) {
        Only::Missing => return overflowing(text, (start, end)).ok_or_else(|| unreadable(fault, start, end)),
        Only::Accompanied(at) => return Err((Reason::NotAlone, Some(at)).into()),
        Only::Alone(from, to) => (from, to),
    };
    let content = text.get(from..to).unwrap_or_default();
    let open = from + content.len() - content.trim_start().len();
    let inside = (open, open + content.trim().len());
    let mut draft = match strict::parse(content) {
        Ok(read) => object(read, text, open, content, Manner::Strict)?,
        Err(fault) => overflowing(text, inside).ok_or_else(|| unreadable(fault, from, to))?,
    };
    draft.liberties.push(Liberty::new(from, LibertyRule::Fence, "the answer was taken out of a code fence"));
    Ok(draft)
}

/// An object that is as RFC 8259 has it, but for a number that nothing can hold. It is read so that the number can be
/// named.
fn overflowing(text: &str, (start, end): (usize, usize)) -> Option<Draft> {
    let read = reader::read(text, start).ok()?;
    let overflows = read.rounded.iter().any(|number| number.overflows);
    match read.value {
        Value::Object(object) if overflows && read.end == end && read.liberties.is_empty() => {
            Some(Draft { object, liberties: Vec::new(), rounded: read.rounded })
        }
        _ => None,
    }
}

/// The answer among all that stands in the text.
fn in_text(text: &str, start: usize, finish: &Finish, fits: Fits<'_>) -> Result<Draft, Unreadable> {
    let mut outline = outline::outline(text, start);
    let Chosen { candidate, read, passed_over } = choose::choose(text, &mut outline, finish, fits)?;
    let Read { value, mut liberties, rounded, .. } = read;
    liberties.extend(surroundings(&outline, candidate.fence, passed_over));
    match value {
        Value::Object(object) => Ok(Draft { object, liberties, rounded }),
        _ => Err((Reason::NotAnObject, None).into()),
    }
}

/// What was left out around the answer.
fn surroundings(
    outline: &Outline,
    fence: Option<usize>,
    passed_over: Option<(usize, usize)>,
) -> impl Iterator<Item = Liberty> {
    let places = [
        (outline.thinking, LibertyRule::Thinking, "the model's thinking was left out"),
        (fence, LibertyRule::Fence, "the answer was taken out of a code fence"),
        (outline.prose, LibertyRule::Prose, "the answer was taken out of the text around it"),
    ];
    let places = places.into_iter().filter_map(|(at, rule, what)| Some(Liberty::new(at?, rule, what)));
    let passed_over = passed_over.map(|(at, count)| {
        let objects =
            if count == 1 { "another object was".to_owned() } else { format!("{count} other objects were") };
        Liberty::new(at, LibertyRule::PassedOver, format!("{objects} not taken for the answer"))
    });
    places.chain(passed_over)
}

/// Text that is no object, as `partial_data`.
pub(super) fn raw(text: &str) -> Map<String, Value> {
    let mut partial = Map::new();
    partial.insert("raw".to_owned(), Value::from(text::cut(text, RAW_LIMIT)));
    partial
}

fn partial(module: &Module, text: &str) -> Option<Map<String, Value>> {
    let (start, end) = bounds(text);
    (module.manifest.failure.partial_allowed && start < end).then(|| raw(text))
}

fn refused(module: &Module, text: &str, reason: &str) -> Failure {
    let reason = if reason.trim().is_empty() { "the model refused to answer" } else { reason };
    Failure::new(ErrorCode::NoActionPossible, text::cut(reason, RAW_LIMIT))
        .with_detail("source", json!("model"))
        .with_partial(partial(module, text))
}

fn failure(module: &Module, reply: &Reply, why: Unreadable, strict: bool) -> Failure {
    let (word, message) = match &why.reason {
        Reason::NotAnObject => return not_an_object(module, &reply.text),
        Reason::Empty => ("empty", "the model answered with nothing"),
        Reason::NotJson => ("not_json", "the model's answer is not JSON"),
        Reason::Truncated => ("truncated", "the model's answer breaks off"),
        Reason::TooDeep => ("too_deep", "the model's answer is nested too deep"),
        Reason::Ambiguous(_) => ("ambiguous", "the model gave several answers that differ"),
        Reason::NotAlone => ("not_alone", "something stands beside the model's answer, and nothing may"),
        Reason::ClosedEarly => ("closed_early", "the model's answer was closed before its end"),
        Reason::RepeatedName => ("repeated_name", "a member of the model's answer stands there twice"),
    };
    let cut_off = reply.end.finish == Finish::CutOff;
    let (code, message) = if cut_off {
        (ErrorCode::TokenLimit, "the model's answer was cut off by the token limit")
    } else {
        (ErrorCode::ParseError, message)
    };
    let partial =
        if cut_off { interrupted(module, &reply.text, strict) } else { partial(module, &reply.text) };
    let mut failure = Failure::new(code, message)
        .blaming(Blame::Model)
        .with_detail("source", json!("model"))
        .with_detail("reason", json!(word))
        .with_partial(partial)
        .suggest("Run it again, or use a provider with native structured output");
    if let Some(at) = why.at {
        failure = failure.with_detail("offset", json!(at));
    }
    match why.reason {
        Reason::Ambiguous(places) => failure.with_detail("candidates", json!(places)),
        _ => failure,
    }
}

/// What there is of an answer that never came to its end (D-12): the members of the data as a stream shows them, or the
/// text where no object had begun.
pub(crate) fn interrupted(module: &Module, text: &str, strict: bool) -> Option<Map<String, Value>> {
    if !module.manifest.failure.partial_allowed {
        return None;
    }
    so_far(module, text, strict).or_else(|| partial(module, text))
}

fn not_an_object(module: &Module, text: &str) -> Failure {
    let code = ErrorCode::SchemaValidationFailed;
    let violation = Violation::new("", code, "type", "expected an object");
    Failure::new(code, "the model answered with JSON that is not an object")
        .with_detail("violations", json!([violation]))
        .with_partial(partial(module, text))
        .suggest("Run it again, or use a provider with native structured output")
}
