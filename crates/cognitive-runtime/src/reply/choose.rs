//! Chooses the answer among the objects of a reply (D-09). Only the contract decides:
//!
//! 1. Exactly one object keeps the contract: that one.
//! 2. Several keep it and are equal: one of them.
//! 3. Several keep it and differ: the reply is refused. The last may be a correction, or the first may be followed by
//!    an afterthought, and the text around them does not tell for sure.
//! 4. None keeps it: the best one, so that the caller learns its faults. Envelopes (`ok` is true or false, and
//!    `data`, `error` or `meta` exists) before other objects, then the longest, then the last.
//!
//! An answer that broke off or is broken is never replaced by another object: not by an earlier envelope when a later
//! one is broken, and not by a bare object when anything is. An object directly followed by a comma, a colon, a
//! bracket or a quote was closed too early: the following text belonged to it, so it is not the answer either.

use cognitive_contract::ports::Finish;
use serde_json::{Map, Value};

use super::event::{BreakCause, BrokenValue};
use super::find::{UnreadableReason, UnreadableReply};
use super::outline::{ReadValue, ReplyCandidate, ReplyOutline, read_object};

/// The limit of objects that keep the contract. Two that differ are enough to refuse.
const MAX_FITTING: usize = 10;

/// Returns whether an object keeps the contract of the module.
pub(crate) type Fits<'a> = &'a dyn Fn(Map<String, Value>) -> bool;

/// The answer.
#[derive(Debug)]
pub(super) struct ChosenObject {
    pub(super) candidate: ReplyCandidate,
    pub(super) read: ReadValue,
    /// The offset of the first of the other objects, and their number.
    pub(super) passed_over: Option<(usize, usize)>,
}

/// Chooses the answer. Takes the objects out of the outline.
pub(super) fn choose(
    text: &str,
    outline: &mut ReplyOutline,
    finish: &Finish,
    fits: Fits<'_>,
) -> Result<ChosenObject, UnreadableReply> {
    let mut found = std::mem::take(&mut outline.found);
    if found.is_empty() {
        return Err(no_object_reason(text, outline));
    }
    let only = outline.only.take();
    let index = if only.is_some() { 0 } else { decide(text, &found, fits)? };
    let candidate = found.remove(index);
    check_unread(text, (&candidate, &found), outline.broken, *finish == Finish::CutOff)?;
    let broken = outline.broken.filter(|broken| broken.begun && !broken.is_thought).map(|broken| broken.open);
    let others = || found.iter().map(|other| other.at).chain(broken);
    let passed_over = others().min().map(|first| (first, others().count()));
    let read = only
        .or_else(|| read_object(text, candidate.at))
        .ok_or((UnreadableReason::NotJson, Some(candidate.at)))?;
    Ok(ChosenObject { candidate, read, passed_over })
}

/// The index of the answer among several objects. Each object is parsed again when it is compared: a reply may have a
/// million of them, and only the compared ones are in memory at the same time.
fn decide(text: &str, found: &[ReplyCandidate], fits: Fits<'_>) -> Result<usize, UnreadableReply> {
    let object = |candidate: &ReplyCandidate| read_object(text, candidate.at).map(|read| read.object);
    let keeps = |(_, candidate): &(usize, &ReplyCandidate)| {
        candidate.is_readable && object(candidate).is_some_and(fits)
    };
    let fitting: Vec<_> = found.iter().enumerate().filter(keeps).take(MAX_FITTING).collect();
    let Some(((index, last), others)) = fitting.split_last() else { return Ok(best_candidate(found)) };
    let answer = if others.is_empty() { None } else { object(last) };
    if others.iter().all(|(_, other)| object(other) == answer) {
        return Ok(*index);
    }
    let places: Vec<usize> = fitting.iter().map(|(_, candidate)| candidate.at).collect();
    Err(UnreadableReply { at: Some(last.at), reason: UnreadableReason::Ambiguous(places) })
}

/// The object that is reported if none keeps the contract.
fn best_candidate(found: &[ReplyCandidate]) -> usize {
    let rank = |candidate: &ReplyCandidate| (candidate.is_envelope, candidate.end - candidate.at);
    let ranked = found.iter().enumerate().max_by_key(|(_, candidate)| rank(candidate));
    ranked.map_or(0, |(index, _)| index)
}

/// The reason why a reply has no object.
fn no_object_reason(text: &str, outline: &ReplyOutline) -> UnreadableReply {
    let (reason, at) = match outline {
        ReplyOutline { broken: Some(broken), .. } => return (*broken).into(),
        ReplyOutline { other: true, .. } => (UnreadableReason::NotAnObject, None),
        ReplyOutline { still_thinking: true, .. } => (UnreadableReason::Truncated, Some(text.len())),
        ReplyOutline { prose: None, .. } => (UnreadableReason::Empty, None),
        ReplyOutline { prose, .. } => (UnreadableReason::NotJson, *prose),
    };
    UnreadableReply { reason, at }
}

impl From<BrokenValue> for UnreadableReply {
    fn from(broken: BrokenValue) -> Self {
        let reason = match broken.cause {
            BreakCause::Syntax => UnreadableReason::NotJson,
            BreakCause::End => UnreadableReason::Truncated,
            BreakCause::TooDeep => UnreadableReason::TooDeep,
        };
        Self { reason, at: Some(broken.at) }
    }
}

/// Refuses an answer if the reply has another possible answer that cannot be read.
fn check_unread(
    text: &str,
    (chosen, others): (&ReplyCandidate, &[ReplyCandidate]),
    broken: Option<BrokenValue>,
    cut_off: bool,
) -> Result<(), UnreadableReply> {
    let is_later = |other: &&ReplyCandidate| other.at > chosen.at && other.is_envelope;
    let mut closed_early = std::iter::once(chosen).chain(others.iter().filter(is_later));
    if let Some(early) = closed_early.find(|candidate| candidate.is_closed_early(text)) {
        return Err(UnreadableReply { reason: UnreadableReason::ClosedEarly, at: Some(early.end) });
    }
    let Some(broken) = broken else { return Ok(()) };
    let broke_off = broken.cause == BreakCause::End && (broken.begun || cut_off);
    let may_be_the_answer = if chosen.is_envelope {
        broken.open > chosen.at && (broke_off || broken.enveloped)
    } else {
        broken.begun || cut_off
    };
    if may_be_the_answer { Err(broken.into()) } else { Ok(()) }
}
