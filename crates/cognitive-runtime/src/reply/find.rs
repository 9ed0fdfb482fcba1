//! Finds the one JSON object in a reply. Lenient syntax, strict meaning (D-01): the whole text as RFC 8259 has it is tried
//! first, and for `exec` or `strict_parse` only the content of a fence besides, if that is all there is (D-09). Other tiers go
//! on: `outline.rs` lists the objects in the text, with the liberties that have one reading, `choose.rs` says which one is
//! the answer, by the contract.
//!
//! Never completes what was cut off, never accepts `NaN`, never merges two objects, never takes a part of something
//! broken, and keeps no liberty to itself: each is in [`Draft::liberties`] with its offset, or counted there where there
//! are many of a kind, and each number that does not keep its value is in [`Draft::rounded`].

use cognitive_contract::numbers::{self, Rounded};
use cognitive_contract::ports::Finish;
use serde_json::{Map, Value};

use super::choose::{self, ChosenObject, Fits};
use super::fence::{self, OnlyFence};
use super::grammar::{BYTE_ORDER_MARK, is_blank};
use super::liberty::{Liberty, LibertyRule};
use super::outline::{OutlineReader, ReadValue, ReplyOutline, read_object};
use super::strict::{self, StrictFault, StrictValue};

/// The object that the model wrote, as it wrote it. [`extract`](crate::stages::parse::extract) makes one, and a composition
/// that speaks for its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The object.
    pub object: Map<String, Value>,
    /// The liberties that were taken to read it, in the order of the text.
    pub liberties: Vec<Liberty>,
    /// The numbers in it that are not what the model wrote, because nothing can hold them exactly (D-10).
    pub rounded: Vec<Rounded>,
}

/// How much is forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leniency {
    /// Nothing: the whole text, or the content of a fence (PIPE-004).
    Strict,
    /// What has one reading.
    Lenient,
}

/// Why no object was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadableReply {
    pub(crate) reason: UnreadableReason,
    pub(crate) at: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnreadableReason {
    /// There is no text, or nothing but thinking.
    Empty,
    /// There is text, but no object.
    NotJson,
    /// It ends within an object, or within thinking.
    Truncated,
    /// It is nested too deep.
    TooDeep,
    /// There are two answers or more, at these offsets.
    Ambiguous(Vec<usize>),
    /// There is something beside the one document that there may be.
    NotAlone,
    /// JSON goes on behind the object.
    ClosedEarly,
    /// A name is there twice in one object, where nothing is forgiven.
    RepeatedName,
    /// It is JSON, but a list or a scalar.
    NotAnObject,
}

impl From<(UnreadableReason, Option<usize>)> for UnreadableReply {
    fn from((reason, at): (UnreadableReason, Option<usize>)) -> Self {
        Self { reason, at }
    }
}

/// Finds the object; `fits` says of an object whether it keeps the contract.
pub(crate) fn find(
    text: &str,
    leniency: Leniency,
    finish: &Finish,
    fits: Fits<'_>,
) -> Result<Draft, UnreadableReply> {
    let (start, end) = bounds(text);
    let body = text.get(start..end).unwrap_or_default();
    if body.is_empty() {
        return Err((UnreadableReason::Empty, None).into());
    }
    let whole = match strict::parse(body) {
        Ok(whole) => object(whole, text, start, body, leniency),
        Err(fault) if leniency == Leniency::Strict => in_fence(text, (start, end), fault),
        Err(_) => {
            let text = text.get(..end).unwrap_or(text);
            in_text(text, OutlineReader::new().finish(text), finish, fits)
        }
    };
    whole.map(|draft| complete(draft, text, start))
}

/// The draft with what was skipped before the reply. Several steps name the same offsets; people read them from top to bottom.
pub(super) fn complete(mut draft: Draft, text: &str, start: usize) -> Draft {
    let mark = text.get(..start).and_then(|before| before.find(BYTE_ORDER_MARK));
    draft.liberties.extend(mark.map(|at| Liberty::of(LibertyRule::Bom, at)));
    draft.liberties.sort_by_key(|liberty| liberty.at);
    draft
}

/// Start and end of the text without white space and byte order marks around it (PIPE-004).
pub(crate) fn bounds(text: &str) -> (usize, usize) {
    let body = text.trim_start_matches(is_blank);
    let start = text.len() - body.len();
    (start, start + body.trim_end_matches(is_blank).len())
}

/// The object that was read strictly from `body`, which is in `text` at `start`. Repeated names are rare, so their
/// offsets are looked up only then, by reading once more: to the same value, so that the first can go before.
fn object(
    read: StrictValue,
    text: &str,
    start: usize,
    body: &str,
    leniency: Leniency,
) -> Result<Draft, UnreadableReply> {
    let StrictValue { value, repeats, floats } = read;
    let Value::Object(mut object) = value else {
        return Err((UnreadableReason::NotAnObject, None).into());
    };
    let mut liberties = Vec::new();
    if repeats {
        drop(object);
        // Both read the same language, so there is always one.
        ReadValue { object, liberties, .. } = read_object(text, start).unwrap_or_default();
    }
    if let Some(repeated) = liberties.first().filter(|_| leniency == Leniency::Strict) {
        return Err((UnreadableReason::RepeatedName, Some(repeated.at)).into());
    }
    let rounded = if floats { numbers::rounded(body) } else { Vec::new() };
    Ok(Draft { object, liberties, rounded })
}

fn unreadable(fault: StrictFault, start: usize, end: usize) -> UnreadableReply {
    let (reason, at) = match fault {
        StrictFault::Syntax { at } => (UnreadableReason::NotJson, Some(start + at)),
        StrictFault::End => (UnreadableReason::Truncated, Some(end)),
        StrictFault::TooDeep => (UnreadableReason::TooDeep, None),
    };
    UnreadableReply { reason, at }
}

/// The content of a fence that is all there is, strictly.
fn in_fence(text: &str, (start, end): (usize, usize), fault: StrictFault) -> Result<Draft, UnreadableReply> {
    let (from, to) = match fence::only(text) {
        OnlyFence::Missing => {
            return overflowing(text, (start, end)).ok_or_else(|| unreadable(fault, start, end));
        }
        OnlyFence::Accompanied(at) => return Err((UnreadableReason::NotAlone, Some(at)).into()),
        OnlyFence::Alone(from, to) => (from, to),
    };
    let content = text.get(from..to).unwrap_or_default();
    let open = from + content.len() - content.trim_start().len();
    let inside = (open, open + content.trim().len());
    let mut draft = match strict::parse(content) {
        Ok(read) => object(read, text, open, content, Leniency::Strict)?,
        Err(fault) => overflowing(text, inside).ok_or_else(|| unreadable(fault, from, to))?,
    };
    draft.liberties.push(Liberty::of(LibertyRule::Fence, from));
    Ok(draft)
}

/// An object that is as RFC 8259 has it, but for a number that nothing can hold. It is read so that the number can be
/// named.
fn overflowing(text: &str, (start, end): (usize, usize)) -> Option<Draft> {
    let read = read_object(text, start)?;
    let overflows = read.rounded.iter().any(|number| number.overflows);
    (overflows && read.end == end && read.liberties.is_empty()).then(|| Draft {
        object: read.object,
        liberties: Vec::new(),
        rounded: read.rounded,
    })
}

/// The answer among all that is in the text.
pub(super) fn in_text(
    text: &str,
    mut outline: ReplyOutline,
    finish: &Finish,
    fits: Fits<'_>,
) -> Result<Draft, UnreadableReply> {
    let ChosenObject { candidate, read, passed_over } = choose::choose(text, &mut outline, finish, fits)?;
    let ReadValue { object, mut liberties, rounded, .. } = read;
    liberties.extend(surroundings(&outline, candidate.fence, passed_over));
    Ok(Draft { object, liberties, rounded })
}

/// What was left out around the answer.
fn surroundings(
    outline: &ReplyOutline,
    fence: Option<usize>,
    passed_over: Option<(usize, usize)>,
) -> impl Iterator<Item = Liberty> {
    let rules = [
        (outline.thinking, LibertyRule::Thinking),
        (fence, LibertyRule::Fence),
        (outline.prose, LibertyRule::Prose),
    ];
    let around = rules.into_iter().filter_map(|(at, rule)| Some(Liberty::of(rule, at?)));
    let passed_over = passed_over.map(|(at, count)| {
        let objects =
            if count == 1 { "another object was".to_owned() } else { format!("{count} other objects were") };
        Liberty::new(at, LibertyRule::PassedOver, format!("{objects} not taken for the answer"))
    });
    around.chain(passed_over)
}
