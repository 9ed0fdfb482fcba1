//! Which of the objects in a reply is the answer.
//!
//! 1. Envelopes (`ok` is true or false, and `data`, `error` or `meta` is there) before anything else.
//! 2. What is introduced as an example is out, as long as something else is left.
//! 3. What stands in a code fence before what stands in prose.
//! 4. Several envelopes that say the same are one. If they differ, the last one counts only if the words before it
//!    say so (`corrected`, `final answer`, …). Otherwise the reply has two readings and is refused: the last may be
//!    a correction, the first may be followed by an afterthought, and nothing tells which.
//! 5. Without envelopes the longest object counts; that is how answers of v2.1 look, which some modules wrap.
//!
//! An answer that broke off or broke down is never replaced by another object: not by an earlier envelope when a
//! later one is broken, and not by a bare object when anything is.
//! Words are English. In other languages nothing is recognised, which leads to a refusal, never to a wrong choice.

use cognitive_contract::ports::Finish;

use super::outline::{Broken, Candidate, Outline};
use super::reader::Why;
use super::{Reason, Unreadable};

/// How far back words are looked for, in bytes.
const LEAD: usize = 200;

const EXAMPLE: [&str; 8] =
    ["example", "e.g.", "for instance", "such as", "something like", "sample", "template", "placeholder"];
const ANSWER: [&str; 10] = [
    "answer",
    "final",
    "correct",
    "corrected",
    "correction",
    "revised",
    "fixed",
    "updated",
    "actual",
    "result",
];
/// Next to these the words above do not mean what they say.
const UNLESS: [&str; 10] =
    ["not", "no", "wrong", "incorrect", "would", "could", "might", "if", "previous", "earlier"];

/// The answer.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) candidate: Candidate,
    /// Where the first of the other objects stands, and how many there are.
    pub(super) passed_over: Option<(usize, usize)>,
}

/// Chooses the answer. Takes the objects out of the outline.
pub(super) fn choose(text: &str, outline: &mut Outline, finish: &Finish) -> Result<Chosen, Unreadable> {
    let found = std::mem::take(&mut outline.found);
    let places: Vec<usize> = found.iter().map(|candidate| candidate.at).collect();
    let (broken, cut_off) = (outline.broken, *finish == Finish::CutOff);
    let candidate = if found.iter().any(Candidate::is_envelope) {
        let envelopes: Vec<_> = found.into_iter().filter(Candidate::is_envelope).collect();
        not_superseded(&envelopes, broken, cut_off)?;
        only_one(text, fenced_first(without_examples(text, envelopes, broken, cut_off)?))?
    } else if found.is_empty() {
        None
    } else {
        nothing_broken(broken, cut_off)?;
        longest(fenced_first(without_examples(text, found, broken, cut_off)?))
    };
    let candidate = candidate.ok_or_else(|| nothing(text, outline))?;
    let mut others = places.iter().filter(|at| **at != candidate.at).copied();
    let passed_over = others.next().map(|first| (first, places.len() - 1));
    Ok(Chosen { candidate, passed_over })
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

/// A later object that broke off, or that broke and looks like an envelope, was the answer; what came before it was not.
fn not_superseded(envelopes: &[Candidate], broken: Option<Broken>, cut_off: bool) -> Result<(), Unreadable> {
    let Some(broken) = broken else { return Ok(()) };
    let is_later = envelopes.last().is_none_or(|last| last.at < broken.open);
    let broke_off = broken.why == Why::End && (broken.begun || cut_off);
    if is_later && (broke_off || broken.enveloped) { Err(broken.into()) } else { Ok(()) }
}

/// A bare object may be anything; beside something broken it is not the answer.
fn nothing_broken(broken: Option<Broken>, cut_off: bool) -> Result<(), Unreadable> {
    match broken {
        Some(broken) if broken.begun || cut_off => Err(broken.into()),
        _ => Ok(()),
    }
}

fn without_examples(
    text: &str,
    candidates: Vec<Candidate>,
    broken: Option<Broken>,
    cut_off: bool,
) -> Result<Vec<Candidate>, Unreadable> {
    let is_example = |candidate: &Candidate| says_example(&lead(text, candidate));
    let (examples, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_example);
    if !others.is_empty() || examples.is_empty() {
        return Ok(others);
    }
    // Only examples. If the reply is whole, the model called its answer one; if it is not, the answer is missing.
    match broken {
        Some(broken) if broken.begun => Err(broken.into()),
        _ if cut_off => Err(Unreadable { reason: Reason::Truncated, at: Some(text.len()) }),
        _ => Ok(examples),
    }
}

fn fenced_first(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let (fenced, bare): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|each| each.fence.is_some());
    if fenced.is_empty() { bare } else { fenced }
}

fn only_one(text: &str, mut candidates: Vec<Candidate>) -> Result<Option<Candidate>, Unreadable> {
    let Some(last) = candidates.pop() else { return Ok(None) };
    if candidates.iter().all(|other| other.object == last.object) || says_answer(&lead(text, &last)) {
        return Ok(Some(last));
    }
    Err(Unreadable { reason: Reason::Ambiguous, at: Some(last.at) })
}

fn longest(candidates: Vec<Candidate>) -> Option<Candidate> {
    candidates.into_iter().max_by_key(|candidate| candidate.end - candidate.at)
}

/// The last line with something on it before an object, in lower case.
fn lead(text: &str, candidate: &Candidate) -> String {
    let (start, end) = candidate.lead;
    let before = text.get(start..end).unwrap_or_default().trim_end();
    last_words(before.rsplit('\n').next().unwrap_or_default())
}

fn last_words(line: &str) -> String {
    let mut from = line.len().saturating_sub(LEAD);
    while !line.is_char_boundary(from) {
        from += 1;
    }
    line.get(from..).unwrap_or_default().to_lowercase()
}

/// Whether the line before an object says that the object is an example.
pub(crate) fn introduces_example(line: &str) -> bool {
    says_example(&last_words(line.trim_end()))
}

fn says_example(lead: &str) -> bool {
    EXAMPLE.iter().any(|word| lead.contains(word))
}

fn says_answer(lead: &str) -> bool {
    let words = |list: &[&str]| lead.split(|c: char| !c.is_alphanumeric()).any(|word| list.contains(&word));
    words(&ANSWER) && !words(&UNLESS)
}
