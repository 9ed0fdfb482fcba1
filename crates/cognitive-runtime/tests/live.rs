//! Streams of replies: the whole corpus of `tests/replies`, split into tokens in many ways, gives the same envelope
//! as at once. The streamed text equals the final chunk, and the early stop never refuses a valid answer.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "in a test, a panic is the report"
)]

mod board;
#[path = "live/early_stop.rs"]
mod early_stop;
#[path = "live/harness.rs"]
mod harness;
#[path = "live/made_up.rs"]
mod made_up;
#[path = "live/protocol.rs"]
mod protocol;
#[path = "live/timing.rs"]
mod timing;

use std::sync::Arc;

use cognitive_contract::ports::Finish;
use harness::{
    Changing, META, Pieces, assembled, chunks, corpus_module, gathered, good, host, other, request, sync,
};
use serde_json::Value;

const FORGIVEN: &str = include_str!("replies/forgiven.json");
const CHOSEN: &str = include_str!("replies/chosen.json");
const REFUSED: &str = include_str!("replies/refused.json");
const CONTRACT: &str = include_str!("replies/contract.json");

/// A reply of the corpus.
struct Case {
    id: String,
    text: String,
    module: String,
    strict: bool,
    finish: Finish,
}

fn corpus() -> Vec<Case> {
    [FORGIVEN, CHOSEN, REFUSED, CONTRACT].into_iter().flat_map(cases).collect()
}

fn cases(file: &str) -> Vec<Case> {
    let values: Vec<Value> = serde_json::from_str(file).unwrap();
    let word = |case: &Value, name: &str| case[name].as_str().unwrap_or_default().to_owned();
    let case = |case: Value| Case {
        id: word(&case, "id"),
        text: word(&case, "text")
            .replace("$GOOD", &good())
            .replace("$OTHER", &other())
            .replace("$META", META),
        module: word(&case, "module"),
        strict: case["strict"] == true,
        finish: match word(&case, "finish").as_str() {
            "cut_off" => Finish::CutOff,
            "refused" => Finish::Refused("I must not".to_owned()),
            _ => Finish::Complete,
        },
    };
    values.into_iter().map(case).collect()
}

/// The longest reply that is split in two at every place. In longer ones every seventh place is tried: all places
/// would take most of the time for the three largest replies.
const EVERY_PLACE: usize = 400;

/// Ways to split a text into tokens: not at all, letter by letter, in two at every place, and at random.
fn splits(text: &str) -> Vec<Vec<&str>> {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    let cut = |places: &[usize]| {
        let mut from = 0;
        let mut pieces = Vec::new();
        for at in places.iter().copied().chain([text.len()]) {
            pieces.push(&text[from..at]);
            from = at;
        }
        pieces
    };
    let mut all = vec![cut(&[])];
    let step = if text.len() <= EVERY_PLACE { 1 } else { 7 };
    all.extend(places.iter().step_by(step).map(|at| cut(&[*at])));
    let mut state = text.len() as u64 + 7;
    for _ in 0..6 {
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let coarse = random(9) + 2;
        let some: Vec<usize> = places.iter().copied().filter(|_| random(coarse) == 0).collect();
        all.push(cut(&some));
    }
    all.push(cut(&places));
    all
}

/// Returns whether the streamed data equals the same part of the answer. Lists are streamed as objects with numbers
/// for names.
fn agrees(grown: &Value, last: &Value) -> bool {
    match (grown, last) {
        (Value::Object(grown), Value::Object(last)) => {
            grown.iter().all(|(name, value)| last.get(name).is_some_and(|last| agrees(value, last)))
        }
        (Value::Object(grown), Value::Array(last)) => grown.iter().all(|(index, value)| {
            index.parse::<usize>().is_ok_and(|index| last.get(index).is_some_and(|last| agrees(value, last)))
        }),
        (grown, last) => grown == last,
    }
}

/// Returns whether every text of the answer was streamed, except those whose names cannot be in a path.
fn is_complete(grown: &Value, last: &Value) -> bool {
    match last {
        Value::String(text) => text.is_empty() || grown == last,
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !name.is_empty() && !name.contains('.'))
            .all(|(name, last)| is_complete(&grown[name], last)),
        Value::Array(items) => {
            items.iter().enumerate().all(|(index, last)| is_complete(&grown[index.to_string()], last))
        }
        _ => true,
    }
}

fn was_changed(envelope: &Value) -> bool {
    let receipt = &envelope["meta"]["provenance"];
    ["liberties", "repairs"].iter().any(|list| receipt[list].as_array().is_some_and(|list| !list.is_empty()))
}

/// A model that waits after each piece, so that a call can be stopped there.
fn waiting(pieces: &[&str], finish: &Finish) -> Pieces {
    let mut provider = Pieces::new(pieces, Ok(finish.clone()));
    provider.waits = true;
    provider
}

/// Runs every reply of a file in every split; returns how often text of a valid answer was streamed.
fn same_as_at_once(file: &str) -> usize {
    let mut grew = 0;
    for (chunk_type, case) in
        ["delta", "snapshot"].iter().flat_map(|kind| cases(file).into_iter().map(move |case| (kind, case)))
    {
        let module = corpus_module(&case.module, chunk_type);
        let expected = sync(&module, waiting(&[&case.text], &case.finish), case.strict);
        // Every place was tried with deltas.
        let most = if *chunk_type == "delta" { usize::MAX } else { 4 };
        let provider = Changing::default();
        let host = host(&module, Arc::new(provider.provider()));
        for pieces in splits(&case.text).into_iter().rev().take(most) {
            provider.says(waiting(&pieces, &case.finish));
            let (log, _) = chunks(&host, request(case.strict));
            assert_eq!(assembled(&log), expected, "{} {pieces:?}", case.id);
            if expected["ok"] != true {
                continue;
            }
            let grown = gathered(&log);
            if !was_changed(&expected) && *chunk_type == "delta" {
                assert!(is_complete(&grown, &expected["data"]), "{} {pieces:?}\n{grown}", case.id);
            }
            if !grown.is_null() {
                grew += 1;
                let fits = agrees(&grown, &expected["data"]) || was_changed(&expected);
                assert!(fits, "{} {pieces:?}\n{grown}\n{expected}", case.id);
            }
        }
    }
    grew
}

// STREAM-004, STREAM-011, STREAM-012, STREAM-016: for every reply of the corpus, in every split.
#[test]
fn stream_011_012_forgiven_replies_assemble_to_the_answer_at_once() {
    assert!(same_as_at_once(FORGIVEN) > 8_000);
}

#[test]
fn stream_011_012_replies_with_several_objects_assemble_to_the_answer_at_once() {
    assert!(same_as_at_once(CHOSEN) > 2_000);
}

#[test]
fn stream_016_refused_replies_assemble_to_the_failure_at_once() {
    same_as_at_once(REFUSED);
}

#[test]
fn stream_016_replies_that_break_the_contract_assemble_to_the_failure_at_once() {
    same_as_at_once(CONTRACT);
}
