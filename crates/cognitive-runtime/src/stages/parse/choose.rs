//! Which of the objects in a reply is the answer (D-09). The contract decides, and nothing else does:
//!
//! 1. Exactly one object keeps the contract: that one.
//! 2. Several keep it and say the same: one of them.
//! 3. Several keep it and differ: the reply is refused. The last may be a correction, the first may be followed by an
//!    afterthought, and no word around them tells which for sure.
//! 4. None keeps it: the best one, so that the caller learns what is wrong with it. Envelopes (`ok` is true or false,
//!    and `data`, `error` or `meta` is there) before other objects, then the longest, then the last.
//!
//! An answer that broke off or broke down is never replaced by another object: not by an earlier envelope when a
//! later one is broken, and not by a bare object when anything is. And an object with a comma, a colon, a bracket or
//! a quote right behind it was closed too early: what follows belonged to it, so it is not the answer either.

use cognitive_contract::ports::Finish;
use serde_json::{Map, Value};

use super::outline::{Broken, Candidate, Outline};
use super::reader::{self, Read, Why};
use super::{Reason, Unreadable};

/// How many objects that keep the contract are looked for. Two that differ are enough to refuse.
const MOST_FITTING: usize = 10;

/// Whether an object keeps the contract of the module that asked.
pub(crate) type Fits<'a> = &'a dyn Fn(Map<String, Value>) -> bool;

/// The answer.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) candidate: Candidate,
    pub(super) read: Read,
    /// Where the first of the other objects stands, and how many there are.
    pub(super) passed_over: Option<(usize, usize)>,
}

/// Chooses the answer. Takes the objects out of the outline.
pub(super) fn choose(
    text: &str,
    outline: &mut Outline,
    finish: &Finish,
    fits: Fits<'_>,
) -> Result<Chosen, Unreadable> {
    let mut found = std::mem::take(&mut outline.found);
    if found.is_empty() {
        return Err(nothing(text, outline));
    }
    let only = outline.only.take();
    let index = if only.is_some() { 0 } else { decide(text, &found, fits)? };
    let candidate = found.remove(index);
    nothing_unread(&candidate, &found, outline.broken, *finish == Finish::CutOff)?;
    let broken = outline.broken.filter(|broken| broken.begun && !broken.is_thought).map(|broken| broken.open);
    let others = || found.iter().map(|other| other.at).chain(broken);
    let passed_over = others().min().map(|first| (first, others().count()));
    let read = only.or_else(|| read_again(text, &candidate)).ok_or((Reason::NotJson, Some(candidate.at)))?;
    Ok(Chosen { candidate, read, passed_over })
}

/// An object that was read before, and not kept because there is more than one.
fn read_again(text: &str, candidate: &Candidate) -> Option<Read> {
    reader::read(text, candidate.at).ok()
}

/// The place of the answer among several objects. Each is read anew when it is looked at: a reply may be made of a million
/// of them, and only those that are compared are held at the same time.
fn decide(text: &str, found: &[Candidate], fits: Fits<'_>) -> Result<usize, Unreadable> {
    let object = |candidate: &Candidate| match read_again(text, candidate)?.value {
        Value::Object(object) => Some(object),
        _ => None,
    };
    let keeps =
        |(_, candidate): &(usize, &Candidate)| candidate.is_readable && object(candidate).is_some_and(fits);
    let fitting: Vec<_> = found.iter().enumerate().filter(keeps).take(MOST_FITTING).collect();
    let Some(((index, last), others)) = fitting.split_last() else { return Ok(best(found)) };
    let answer = if others.is_empty() { None } else { object(last) };
    if others.iter().all(|(_, other)| object(other) == answer) {
        return Ok(*index);
    }
    let places: Vec<usize> = fitting.iter().map(|(_, candidate)| candidate.at).collect();
    Err(Unreadable { at: Some(last.at), reason: Reason::Ambiguous(places) })
}

/// The object that is told about if none keeps the contract.
fn best(found: &[Candidate]) -> usize {
    let rank = |candidate: &Candidate| (candidate.is_envelope, candidate.end - candidate.at);
    let ranked = found.iter().enumerate().max_by_key(|(_, candidate)| rank(candidate));
    ranked.map_or(0, |(index, _)| index)
}

/// Why there is no object at all.
fn nothing(text: &str, outline: &Outline) -> Unreadable {
    let (reason, at) = match outline {
        Outline { broken: Some(broken), .. } => return (*broken).into(),
        Outline { other: true, .. } => (Reason::NotAnObject, None),
        Outline { still_thinking: true, .. } => (Reason::Truncated, Some(text.len())),
        Outline { prose: None, .. } => (Reason::Empty, None),
        Outline { prose, .. } => (Reason::NotJson, *prose),
    };
    Unreadable { reason, at }
}

impl From<Broken> for Unreadable {
    fn from(broken: Broken) -> Self {
        let reason = match broken.why {
            Why::Syntax => Reason::NotJson,
            Why::End => Reason::Truncated,
            Why::TooDeep => Reason::TooDeep,
        };
        Self { reason, at: Some(broken.at) }
    }
}

/// Refuses an answer beside which something stands that may have been the answer and cannot be read.
fn nothing_unread(
    chosen: &Candidate,
    others: &[Candidate],
    broken: Option<Broken>,
    cut_off: bool,
) -> Result<(), Unreadable> {
    let is_later = |other: &&Candidate| other.at > chosen.at && other.is_envelope;
    let mut closed_early = std::iter::once(chosen).chain(others.iter().filter(is_later));
    if let Some(early) = closed_early.find(|candidate| candidate.closed_early) {
        return Err(Unreadable { reason: Reason::ClosedEarly, at: Some(early.end) });
    }
    let Some(broken) = broken else { return Ok(()) };
    let broke_off = broken.why == Why::End && (broken.begun || cut_off);
    let may_be_the_answer = if chosen.is_envelope {
        broken.open > chosen.at && (broke_off || broken.enveloped)
    } else {
        broken.begun || cut_off
    };
    if may_be_the_answer { Err(broken.into()) } else { Ok(()) }
}
