//! Checks that a producer may send a list of chunks. Checks the order; `shape.rs` checks each chunk alone.
//! Strict on purpose: readers tolerate disorder and repeats (`assemble.rs`), but producers must not send them.
//! Stops after a hundred violations: more are not useful, and a hostile log could cause millions.

use std::collections::HashSet;

use serde_json::Value;

use super::chunk::ChunkKind;
use super::shape::{check_chunk, recognise};
use crate::code::ErrorCode;
use crate::violation::Violation;

/// The maximum number of violations reported for one log. One fault, such as a wrong first number, repeats in every
/// later chunk.
const MAX_COUNT: usize = 100;

/// A chunk with its index in the log and its kind, if recognised.
struct LoggedChunk<'a> {
    index: usize,
    chunk: &'a Value,
    kind: Option<ChunkKind>,
}

impl LoggedChunk<'_> {
    fn violation(&self, below: &str, rule: &'static str, message: impl Into<String>) -> Violation {
        let path = format!("/{}{below}", self.index);
        Violation::new(path, ErrorCode::SchemaValidationFailed, rule, message)
    }

    fn is(&self, holds: fn(ChunkKind) -> bool) -> bool {
        self.kind.is_some_and(holds)
    }

    fn seq(&self) -> Option<u64> {
        if !self.is(ChunkKind::is_numbered) {
            return None;
        }
        self.chunk.pointer("/chunk/seq").and_then(Value::as_u64).filter(|seq| *seq >= 1)
    }
}

/// Checks the complete log of one stream, and returns all violations up to the first hundred. An empty list means that
/// the log is valid. Paths start with the index of the chunk: `/3/chunk/seq`.
#[must_use]
pub fn check_log(chunks: &[Value]) -> Vec<Violation> {
    let number = |(index, chunk)| LoggedChunk { index, chunk, kind: recognise(chunk).ok() };
    let entries: Vec<LoggedChunk<'_>> = chunks.iter().enumerate().map(number).collect();
    let mut found = Vec::new();
    for check in [check_shapes, check_opening, check_session, check_numbers, check_end] {
        // A check that stops early has found a violation, so the list is never empty by mistake.
        check(&entries, &mut found);
        if is_full(&found) {
            break;
        }
    }
    found.truncate(MAX_COUNT);
    found
}

fn is_full(found: &[Violation]) -> bool {
    found.len() >= MAX_COUNT
}

fn check_shapes(entries: &[LoggedChunk<'_>], found: &mut Vec<Violation>) {
    for entry in entries {
        if is_full(found) {
            return;
        }
        let prefix = format!("/{}", entry.index);
        found.extend(
            check_chunk(entry.chunk).into_iter().take(MAX_COUNT).map(|each| each.with_prefix(&prefix)),
        );
    }
}

/// A stream opens with a meta chunk, or is a single error chunk if the run failed before it started. Both carry the
/// session id; for the meta chunk, `check_shapes` verifies it.
fn check_opening(entries: &[LoggedChunk<'_>], found: &mut Vec<Violation>) {
    let Some(first) = entries.first() else { return };
    match first.kind {
        // An unrecognised chunk has already been reported.
        None | Some(ChunkKind::Meta) => {}
        Some(ChunkKind::Error) => {
            for name in ["streaming", "session_id"] {
                if first.chunk.get(name).is_none() {
                    let message = format!("required member `{name}` is missing in the first chunk");
                    found.push(first.violation(&format!("/{name}"), "required", message));
                }
            }
        }
        Some(_) => found.push(first.violation("", "first", "expected a meta chunk to open the stream")),
    }
}

fn check_session(entries: &[LoggedChunk<'_>], found: &mut Vec<Violation>) {
    fn session_of_entry<'a>(entry: &LoggedChunk<'a>) -> Option<&'a str> {
        entry.chunk.get("session_id").and_then(Value::as_str)
    }
    let Some(session) = entries.first().and_then(session_of_entry) else { return };
    for entry in entries {
        if is_full(found) {
            return;
        }
        if session_of_entry(entry).is_some_and(|name| name != session) {
            found.push(entry.violation("/session_id", "session", "expected the session of the first chunk"));
        }
    }
}

/// Numbers start at 1, or at `resume_from_seq` of a resumed stream, and are unique. Gaps and disorder are allowed: a
/// log may be recorded behind a transport that reorders.
fn check_numbers(entries: &[LoggedChunk<'_>], found: &mut Vec<Violation>) {
    let mut seen = HashSet::new();
    for entry in entries {
        if is_full(found) {
            return;
        }
        if entry.seq().is_some_and(|seq| !seen.insert(seq)) {
            found.push(entry.violation("/chunk/seq", "unique", "expected an unused sequence number"));
        }
        if !entry.is(ChunkKind::is_numbered) && entry.chunk.get("seq").is_some() {
            found.push(entry.violation("/seq", "closed", "only delta and snapshot chunks are numbered"));
        }
    }
    let start = start_of(entries);
    let lowest = entries.iter().filter_map(|entry| Some((entry.seq()?, entry))).min_by_key(|(seq, _)| *seq);
    if let Some((seq, entry)) = lowest
        && seq != start
    {
        found.push(entry.violation(
            "/chunk/seq",
            "start",
            format!("expected the numbers to start at {start}"),
        ));
    }
}

fn start_of(entries: &[LoggedChunk<'_>]) -> u64 {
    let Some(first) = entries.first() else { return 1 };
    let resumed = first.chunk.get("resumed") == Some(&Value::Bool(true));
    let from = first.chunk.get("resume_from_seq").and_then(Value::as_u64);
    from.filter(|seq| resumed && *seq >= 1).unwrap_or(1)
}

fn check_end(entries: &[LoggedChunk<'_>], found: &mut Vec<Violation>) {
    let end = entries.iter().position(|entry| entry.is(ChunkKind::is_terminal));
    let Some(end) = end else {
        let place = format!("/{}", entries.len());
        let message = "expected a final or error chunk to end the stream";
        found.push(Violation::new(place, ErrorCode::SchemaValidationFailed, "terminal", message));
        return;
    };
    for entry in entries.iter().skip(end.saturating_add(1)).take(MAX_COUNT) {
        found.push(entry.violation("", "terminal", "expected no chunk after the terminal chunk"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn opening() -> Value {
        json!({ "ok": true, "streaming": true, "session_id": "s", "meta": { "confidence": null, "risk": "low", "explain": "e" } })
    }

    fn delta(seq: u64) -> Value {
        json!({ "chunk": { "seq": seq, "type": "delta", "field": "data.rationale", "delta": "x" } })
    }

    fn last() -> Value {
        json!({ "final": true, "meta": { "confidence": 1, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } })
    }

    fn error() -> Value {
        json!({ "ok": false, "streaming": true, "session_id": "s", "error": { "code": "E2010", "message": "m" } })
    }

    fn rules(chunks: &[Value]) -> Vec<String> {
        check_log(chunks).iter().map(|each| format!("{} {}", each.path, each.rule)).collect()
    }

    #[test]
    fn stream_001_to_004_a_legal_log_has_no_findings() {
        assert!(rules(&[opening(), last()]).is_empty());
        let progress = json!({ "progress": { "percent": 45 } });
        let long = [opening(), delta(1), json!({}), progress, opening(), delta(2), last()];
        assert!(rules(&long).is_empty());
        assert!(rules(&[opening(), delta(1), error()]).is_empty());
    }

    #[test]
    fn stream_001_006_only_a_meta_chunk_opens() {
        assert_eq!(rules(&[delta(1), last()]), ["/0 first"]);
        assert_eq!(rules(&[json!({}), opening(), last()]), ["/0 first"]);
        assert_eq!(rules(&[last()]), ["/0 first"]);
        assert_eq!(rules(&[json!(3), last()]), ["/0 type"]);
    }

    #[test]
    fn stream_002_there_is_one_session() {
        let mut other = error();
        other["session_id"] = json!("t");
        assert_eq!(rules(&[opening(), other]), ["/1/session_id session"]);
        let mut nameless = opening();
        nameless.as_object_mut().unwrap().shift_remove("session_id");
        assert_eq!(rules(&[nameless, last()]), ["/0/session_id required"]);
    }

    #[test]
    fn stream_003_numbers_start_at_one_and_never_repeat() {
        assert_eq!(rules(&[opening(), delta(0), delta(1), last()]), ["/1/chunk/seq type"]);
        assert_eq!(rules(&[opening(), delta(2), last()]), ["/1/chunk/seq start"]);
        assert_eq!(rules(&[opening(), delta(1), delta(1), last()]), ["/2/chunk/seq unique"]);
        assert!(rules(&[opening(), delta(2), delta(1), last()]).is_empty());
        let mut numbered = last();
        numbered["seq"] = json!(1);
        assert_eq!(rules(&[opening(), numbered]), ["/1/seq closed"]);
    }

    #[test]
    fn ext_rec_a_resumed_log_starts_where_it_says() {
        let mut resumed = opening();
        resumed["resumed"] = json!(true);
        resumed["resume_from_seq"] = json!(5);
        assert!(rules(&[resumed.clone(), delta(5), delta(6), last()]).is_empty());
        assert_eq!(rules(&[resumed, delta(1), delta(5), last()]), ["/1/chunk/seq start"]);
    }

    #[test]
    fn stream_004_there_is_exactly_one_end() {
        assert_eq!(rules(&[opening(), delta(1)]), ["/2 terminal"]);
        assert_eq!(rules(&[opening(), last(), last(), json!({})]), ["/2 terminal", "/3 terminal"]);
        assert_eq!(rules(&[opening(), error(), delta(1)]), ["/2 terminal"]);
        assert_eq!(rules(&[]), ["/0 terminal"]);
    }

    #[test]
    fn stream_017_a_failure_before_the_first_chunk_is_one_error_chunk() {
        assert!(rules(&[error()]).is_empty());
        let bare = json!({ "ok": false, "error": { "code": "E1001", "message": "m" } });
        assert_eq!(rules(std::slice::from_ref(&bare)), ["/0/streaming required", "/0/session_id required"]);
        assert!(rules(&[opening(), bare]).is_empty());
    }

    #[test]
    fn stream_011_findings_of_single_chunks_carry_their_place() {
        let mut torn = last();
        torn.as_object_mut().unwrap().shift_remove("data");
        assert_eq!(
            rules(&[opening(), json!({ "chunk": { "type": "delta" } }), torn]),
            ["/1/chunk/seq required", "/1/chunk/delta required", "/2/data required"]
        );
    }

    #[test]
    fn a_hopeless_log_is_not_listed_to_its_end() {
        let mut other = opening();
        other["session_id"] = json!("t");
        let after = |first: Value, rest: Value| [vec![first], vec![rest; 1_000]].concat();
        for log in [
            after(opening(), json!(0)),
            after(last(), json!({})),
            after(opening(), delta(1)),
            after(opening(), other),
        ] {
            assert_eq!(check_log(&log).len(), MAX_COUNT);
        }
        let mut few = after(opening(), delta(1));
        few.truncate(50);
        assert_eq!(check_log(&few).len(), 49);
    }
}
