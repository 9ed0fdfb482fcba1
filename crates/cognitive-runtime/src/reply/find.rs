//! Finds the one JSON object in a reply. Lenient syntax, strict meaning (D-01): the whole text as RFC 8259 JSON is
//! tried first. `exec` and `strict_parse` also accept a fence that is the whole reply (D-09), and nothing else. Other
//! tiers continue: `outline.rs` lists the objects in the text, with the liberties that have one reading, and
//! `choose.rs` selects the answer by the contract.
//!
//! Never completes truncated text, never accepts `NaN`, never merges two objects, never takes a part of a broken
//! value. Never hides a liberty: each is in [`Draft::liberties`] with its offset, or counted there if one kind is
//! frequent. Each number that does not keep its value is in [`Draft::rounded_numbers`].

use cognitive_contract::numbers::{self, RoundedNumber};
use cognitive_contract::ports::Finish;
use serde_json::{Map, Value};

use super::choose::{self, ChosenObject, Fits};
use super::fence::{self, OnlyFence};
use super::grammar::{BYTE_ORDER_MARK, is_blank};
use super::liberty::{Liberty, LibertyRule};
use super::outline::{OutlineReader, ReadValue, ReplyOutline, read_object};
use super::strict::{self, StrictFault, StrictValue};

/// The object exactly as the model wrote it. Created by [`extract`](crate::stages::parse::extract), and by a
/// composition that answers for its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The object.
    pub object: Map<String, Value>,
    /// The liberties that were taken to read it, in the order of the text.
    pub liberties: Vec<Liberty>,
    /// The numbers in it that differ from the model's text, because no number type holds them exactly (D-10).
    pub rounded: Vec<RoundedNumber>,
}

/// The parsing mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leniency {
    /// Accepts only valid JSON, as the whole text or as the content of a code fence (PIPE-004).
    Strict,
    /// Forgives deviations that have one reading.
    Lenient,
}

/// The reason why no object was found, and the offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadableReply {
    pub(crate) reason: UnreadableReason,
    pub(crate) at: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnreadableReason {
    /// The text is empty, or only thinking.
    Empty,
    /// The text has no object.
    NotJson,
    /// The text ends within an object, or within thinking.
    Truncated,
    /// The value is nested too deep.
    TooDeep,
    /// The reply has two answers or more, at these offsets.
    Ambiguous(Vec<usize>),
    /// The reply has something in addition to the one allowed document.
    NotAlone,
    /// JSON continues after the object.
    ClosedEarly,
    /// A duplicate name in one object, in strict mode.
    RepeatedName,
    /// The text is JSON, but a list or a scalar.
    NotAnObject,
}

impl From<(UnreadableReason, Option<usize>)> for UnreadableReply {
    fn from((reason, at): (UnreadableReason, Option<usize>)) -> Self {
        Self { reason, at }
    }
}

/// Finds the object; `fits` returns whether an object keeps the contract.
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

/// Adds what was skipped before the reply. Several steps add liberties, so they are sorted by offset for the reader.
pub(super) fn complete(mut draft: Draft, text: &str, start: usize) -> Draft {
    let mark = text.get(..start).and_then(|before| before.find(BYTE_ORDER_MARK));
    draft.liberties.extend(mark.map(|at| Liberty::from_rule(LibertyRule::Bom, at)));
    draft.liberties.sort_by_key(|liberty| liberty.at);
    draft
}

/// Returns start and end of the text without the white space and byte order marks around it (PIPE-004).
pub(crate) fn bounds(text: &str) -> (usize, usize) {
    let body = text.trim_start_matches(is_blank);
    let start = text.len() - body.len();
    (start, start + body.trim_end_matches(is_blank).len())
}

/// The object that was read strictly from `body`, which is in `text` at `start`. Duplicate names are rare, so their
/// offsets are only determined then, by reading again. The result is the same value, so the first one is dropped
/// before.
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
        // Both readers accept the same language, so this always finds an object.
        ReadValue { object, liberties, .. } = read_object(text, start).unwrap_or_default();
    }
    if let Some(repeated) = liberties.first().filter(|_| leniency == Leniency::Strict) {
        return Err((UnreadableReason::RepeatedName, Some(repeated.at)).into());
    }
    let rounded = if floats { numbers::rounded_numbers(body) } else { Vec::new() };
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

/// Reads the content of a fence that is the whole reply, strictly.
fn in_fence(text: &str, (start, end): (usize, usize), fault: StrictFault) -> Result<Draft, UnreadableReply> {
    let (from, to) = match fence::sole_fence(text) {
        OnlyFence::Missing => {
            return overflowing_draft(text, (start, end)).ok_or_else(|| unreadable(fault, start, end));
        }
        OnlyFence::Accompanied(at) => return Err((UnreadableReason::NotAlone, Some(at)).into()),
        OnlyFence::Alone(from, to) => (from, to),
    };
    let content = text.get(from..to).unwrap_or_default();
    let open = from + content.len() - content.trim_start().len();
    let inside = (open, open + content.trim().len());
    let mut draft = match strict::parse(content) {
        Ok(read) => object(read, text, open, content, Leniency::Strict)?,
        Err(fault) => overflowing_draft(text, inside).ok_or_else(|| unreadable(fault, from, to))?,
    };
    draft.liberties.push(Liberty::from_rule(LibertyRule::Fence, from));
    Ok(draft)
}

/// An object that follows RFC 8259, except for a number that no type can hold. It is read so that an error can name
/// the number.
fn overflowing_draft(text: &str, (start, end): (usize, usize)) -> Option<Draft> {
    let read = read_object(text, start)?;
    let overflows = read.rounded.iter().any(|number| number.overflows);
    (overflows && read.end == end && read.liberties.is_empty()).then(|| Draft {
        object: read.object,
        liberties: Vec::new(),
        rounded: read.rounded,
    })
}

/// The answer among all objects of the text.
pub(super) fn in_text(
    text: &str,
    mut outline: ReplyOutline,
    finish: &Finish,
    fits: Fits<'_>,
) -> Result<Draft, UnreadableReply> {
    let ChosenObject { candidate, read, passed_over } = choose::choose(text, &mut outline, finish, fits)?;
    let ReadValue { object, mut liberties, rounded, .. } = read;
    liberties.extend(surrounding_liberties(&outline, candidate.fence, passed_over));
    Ok(Draft { object, liberties, rounded })
}

/// The liberties for text that was skipped around the answer.
fn surrounding_liberties(
    outline: &ReplyOutline,
    fence: Option<usize>,
    passed_over: Option<(usize, usize)>,
) -> impl Iterator<Item = Liberty> {
    let rules = [
        (outline.thinking, LibertyRule::Thinking),
        (fence, LibertyRule::Fence),
        (outline.prose, LibertyRule::Prose),
    ];
    let around = rules.into_iter().filter_map(|(at, rule)| Some(Liberty::from_rule(rule, at?)));
    let passed_over = passed_over.map(|(at, count)| {
        let objects =
            if count == 1 { "another object was".to_owned() } else { format!("{count} other objects were") };
        Liberty::new(at, LibertyRule::PassedOver, format!("{objects} not used as the answer"))
    });
    around.chain(passed_over)
}
