//! Assembles a stream: any chunks in, one valid envelope out.
//! Tolerant: sorts by `seq`, and ignores repeats, gaps and unknown chunks. Only the terminal chunk counts; earlier
//! chunks are used only if the stream was interrupted or failed.

use serde_json::{Map, Value};

use super::chunk::ChunkKind;
use super::shape::recognise;
use super::{path, terminal};
use crate::code::ErrorCode;
use crate::envelope::{self, Envelope, Strictness};
use crate::failure::Failure;
use crate::meta::{self, RiskForm, USAGE};
use crate::module::output_code;
use crate::violation::Violation;

type Members = Map<String, Value>;

/// Assembles a complete list of chunks by the common contract.
#[must_use]
pub fn assemble(chunks: impl IntoIterator<Item = Value>) -> Envelope {
    let mut assembler = Assembler::new();
    for chunk in chunks {
        assembler.push(chunk);
    }
    assembler.finish()
}

/// Collects the chunks of one session as they arrive. A restarted stream needs a new assembler; a resumed stream
/// continues with the same one.
///
/// `push` only stores. [`finish`](Self::finish) does the work once, in linear time for chunks in order.
#[derive(Debug, Default)]
pub struct Assembler<'a> {
    strictness: Strictness<'a>,
    session_id: Option<String>,
    pieces: Vec<(u64, StreamPiece)>,
    end: Option<End>,
}

#[derive(Debug)]
enum StreamPiece {
    Delta { field: String, text: String },
    Snapshot(Members),
}

#[derive(Debug)]
enum End {
    Final(Members),
    Error(Members),
}

impl<'a> Assembler<'a> {
    /// An assembler that checks the answer against the common contract.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An assembler for a module that modifies the common contract, for example with a custom risk.
    #[must_use]
    pub fn with_strictness(strictness: Strictness<'a>) -> Self {
        Self { strictness, ..Self::default() }
    }

    /// Returns whether the terminal chunk has arrived. Later chunks are ignored.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Adds the next chunk, in any order.
    pub fn push(&mut self, chunk: Value) {
        if self.has_ended() {
            return;
        }
        let Ok(kind) = recognise(&chunk) else { return };
        let Value::Object(mut members) = chunk else { return };
        match kind {
            ChunkKind::Meta => self.name_session(&members),
            ChunkKind::Delta | ChunkKind::Snapshot => self.pieces.extend(piece(kind, &mut members)),
            ChunkKind::Final => self.end = Some(End::Final(members)),
            ChunkKind::Error => {
                self.name_session(&members);
                self.end = Some(End::Error(members));
            }
            ChunkKind::Progress | ChunkKind::Heartbeat => {}
        }
    }

    fn name_session(&mut self, members: &Members) {
        if self.session_id.is_none() {
            self.session_id = members.get("session_id").and_then(Value::as_str).map(str::to_owned);
        }
    }

    /// Returns the answer. Without a terminal chunk it is E2010. If the terminal chunk violates the contract, it is
    /// E3001 or the more specific code, as for any other answer. In these cases the available data becomes
    /// `partial_data`.
    #[must_use]
    pub fn finish(self) -> Envelope {
        let Self { strictness, session_id, pieces, end } = self;
        let mut envelope = match end {
            Some(End::Final(chunk)) => seal(terminal::success(cleaned_final(chunk)), strictness, pieces),
            Some(End::Error(chunk)) => failed_envelope(chunk, strictness, pieces),
            None => {
                let message = "the stream ended without a final or error chunk";
                Failure::new(ErrorCode::StreamInterrupted, message)
                    .with_partial(replay(pieces))
                    .into_envelope()
            }
        };
        // A success is complete; for a failed stream the client needs the session id to resume it.
        if let (false, Some(session_id)) = (envelope.ok(), session_id) {
            envelope.set_extra_member("streaming", Value::Bool(true));
            envelope.set_extra_member("session_id", Value::String(session_id));
        }
        envelope
    }
}

/// Returns the payload of a delta or snapshot with its number. A delta without `field` may be displayed, but is not
/// assembled.
fn piece(kind: ChunkKind, members: &mut Members) -> Option<(u64, StreamPiece)> {
    let Value::Object(chunk) = members.get_mut("chunk")? else { return None };
    let seq = chunk.get("seq")?.as_u64()?;
    let mut take = |name: &str| chunk.get_mut(name).map(Value::take);
    let piece = match kind {
        ChunkKind::Delta => match (take("field")?, take("delta")?) {
            (Value::String(field), Value::String(text)) => StreamPiece::Delta { field, text },
            _ => return None,
        },
        _ => StreamPiece::Snapshot(object(take("data")?)?),
    };
    Some((seq, piece))
}

/// Returns the data from all pieces; `None` if there is none.
fn replay(mut pieces: Vec<(u64, StreamPiece)>) -> Option<Members> {
    // The sort is stable, so of two pieces with one number the first to arrive is kept.
    pieces.sort_by_key(|(seq, _)| *seq);
    pieces.dedup_by_key(|(seq, _)| *seq);
    let mut data = Map::new();
    for (_, piece) in pieces {
        match piece {
            StreamPiece::Delta { field, text } => {
                path::append(&mut data, &field, &text);
            }
            StreamPiece::Snapshot(snapshot) => data = snapshot,
        }
    }
    (!data.is_empty()).then_some(data)
}

fn failed_envelope(chunk: Members, strictness: Strictness<'_>, pieces: Vec<(u64, StreamPiece)>) -> Envelope {
    let mut members = terminal::failure(cleaned_error(chunk));
    if !members.contains_key("partial_data")
        && let Some(data) = replay(pieces)
    {
        members.insert("partial_data".to_owned(), Value::Object(data));
    }
    seal(members, strictness, Vec::new())
}

/// A complete answer is not rejected for invalid members next to it.
fn cleaned_final(mut chunk: Members) -> Members {
    for name in ["error", "partial_data"] {
        chunk.shift_remove(name);
    }
    keep_if(&mut chunk, "usage", Value::is_object);
    keep_if(&mut chunk, "_emitted_context", Value::is_object);
    chunk
}

/// An error is passed on even if its own members are invalid: a broken `meta` counts as missing.
fn cleaned_error(mut chunk: Members) -> Members {
    chunk.shift_remove("data");
    keep_if(&mut chunk, "usage", Value::is_object);
    keep_if(&mut chunk, "_emitted_context", Value::is_object);
    keep_if(&mut chunk, "session_id", Value::is_string);
    keep_if(&mut chunk, "partial_data", Value::is_object);
    keep_if(&mut chunk, "meta", |meta| {
        meta.as_object().is_some_and(|meta| meta::check(meta, RiskForm::Words).is_empty())
    });
    chunk
}

fn keep_if(chunk: &mut Members, name: &str, holds: fn(&Value) -> bool) {
    if chunk.get(name).is_some_and(|value| !holds(value)) {
        chunk.shift_remove(name);
    }
}

/// Returns the envelope if it satisfies the contract, else the failure with the reason.
fn seal(members: Members, strictness: Strictness<'_>, pieces: Vec<(u64, StreamPiece)>) -> Envelope {
    let mut whole = Value::Object(members);
    let found = envelope::check(&whole, strictness);
    let counted = found.iter().all(|each| !each.path.starts_with("/usage"));
    let usage = whole.get_mut(USAGE).map(Value::take).filter(|usage| counted && usage.is_object());
    let mut envelope = if found.is_empty() {
        Envelope::from_checked(whole).unwrap_or_else(|| refused_envelope(&found, None))
    } else {
        let mut own = |name: &str| whole.get_mut(name).map(Value::take).and_then(object);
        let own = own("data").or_else(|| own("partial_data"));
        refused_envelope(&found, own.filter(|data| !data.is_empty()).or_else(|| replay(pieces)))
    };
    // A chunk has usage next to `meta`, an envelope inside it.
    envelope.take_extra_member(USAGE);
    if let Some(usage) = usage {
        envelope.meta_mut().extra.insert(USAGE.to_owned(), usage);
    }
    envelope
}

fn refused_envelope(found: &[Violation], partial: Option<Members>) -> Envelope {
    Failure::from_violations(output_code(found), found).with_partial(partial).into_envelope()
}

fn object(value: Value) -> Option<Members> {
    if let Value::Object(object) = value { Some(object) } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Assembles the chunks, checks that the answer is a valid envelope, and returns it as JSON.
    fn answer(chunks: &[Value]) -> Value {
        let value = serde_json::to_value(assemble(chunks.to_vec())).unwrap();
        assert!(Envelope::from_value(value.clone()).is_ok(), "{value}");
        value
    }

    fn opening() -> Value {
        json!({ "ok": true, "streaming": true, "session_id": "s", "meta": { "confidence": null, "risk": "low", "explain": "e" } })
    }

    fn delta(seq: u64, field: &str, text: &str) -> Value {
        json!({ "chunk": { "seq": seq, "type": "delta", "field": field, "delta": text } })
    }

    fn last() -> Value {
        json!({ "final": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "done" }, "data": { "rationale": "r" } })
    }

    // REPAIR-013: assembling chunks is part of the repair pass.
    #[test]
    fn stream_005_disorder_repeats_and_gaps_are_tolerated() {
        let field = "data.rationale";
        let chunks = [delta(4, field, "d"), delta(2, field, "b"), delta(1, field, "a"), delta(2, field, "B")];
        assert_eq!(answer(&chunks)["partial_data"], json!({ "rationale": "abd" }));
    }

    #[test]
    fn stream_007_008_deltas_add_up_and_snapshots_replace() {
        let snapshot = json!({ "chunk": { "seq": 2, "data": { "rationale": "new", "list": ["a"] } } });
        let untyped = json!({ "chunk": { "seq": 3, "field": "data.rationale", "delta": " text" } });
        let homeless = json!({ "chunk": { "seq": 5, "delta": "lost" } });
        let chunks =
            [opening(), delta(1, "data.old", "x"), snapshot, untyped, delta(4, "data.list.0", "b"), homeless];
        assert_eq!(answer(&chunks)["partial_data"], json!({ "rationale": "new text", "list": ["ab"] }));
    }

    #[test]
    fn stream_006_010_011_012_026_only_the_final_chunk_counts() {
        let mut end = last();
        end["ok"] = json!(true);
        end["usage"] = json!({ "input_tokens": 1 });
        end["_emitted_context"] = json!({ "a": 1 });
        let progress = json!({ "progress": { "percent": 45 } });
        let chunks = [opening(), json!({}), delta(1, "data.rationale", "draft"), progress, opening(), end];
        assert_eq!(
            answer(&chunks),
            json!({
                "ok": true, "data": { "rationale": "r" }, "_emitted_context": { "a": 1 },
                "meta": { "confidence": 0.9, "risk": "low", "explain": "done", "usage": { "input_tokens": 1 } },
            })
        );
    }

    #[test]
    fn stream_004_nothing_after_the_end_counts() {
        let error = json!({ "ok": false, "error": { "code": "E2010", "message": "late" } });
        let mut assembler = Assembler::new();
        assembler.push(last());
        assert!(assembler.has_ended());
        assembler.push(error);
        assert!(assembler.finish().ok());
    }

    #[test]
    fn stream_013_014_an_error_chunk_becomes_a_failure_with_meta() {
        let bare = json!({ "ok": false, "session_id": "t", "error": { "code": "E2002", "message": "time", "recovery": { "last_seq": 1 } } });
        let chunks = [opening(), delta(1, "data.rationale", "so far"), bare.clone()];
        assert_eq!(
            answer(&chunks),
            json!({
                "ok": false, "meta": { "confidence": 0.0, "risk": "high", "explain": "time" },
                "error": { "code": "E2002", "message": "time", "recovery": { "last_seq": 1 } },
                "partial_data": { "rationale": "so far" }, "streaming": true, "session_id": "s",
            })
        );
        let mut full = bare;
        full["meta"] = json!({ "confidence": 0.3, "risk": "low", "explain": "own" });
        full["partial_data"] = json!({ "rationale": "theirs" });
        let value = answer(&[opening(), delta(1, "data.rationale", "ours"), full]);
        assert_eq!(value["meta"]["explain"], "own");
        assert_eq!(value["partial_data"], json!({ "rationale": "theirs" }));
    }

    #[test]
    fn stream_013_a_broken_meta_does_not_hide_the_error() {
        let chunk = json!({
            "ok": false, "meta": { "confidence": 7 }, "error": { "code": "E4002", "message": "slow down" },
            "data": 1, "usage": 2, "partial_data": 3, "session_id": 4,
        });
        let value = answer(&[chunk]);
        assert_eq!(value["error"]["code"], "E4002");
        assert_eq!(value["meta"], json!({ "confidence": 0.0, "risk": "high", "explain": "slow down" }));
    }

    #[test]
    fn stream_015_a_stream_without_an_end_is_e2010() {
        let value = answer(&[opening(), delta(1, "data.rationale", "The image")]);
        assert_eq!(value["error"]["code"], "E2010");
        assert_eq!(value["session_id"], "s");
        assert_eq!(value["partial_data"], json!({ "rationale": "The image" }));
        let empty = answer(&[]);
        assert_eq!(empty["error"]["code"], "E2010");
        assert!(empty.get("partial_data").is_none());
    }

    #[test]
    fn stream_012_016_a_terminal_chunk_that_breaks_the_contract_is_a_failure() {
        let mut unsure = last();
        unsure["meta"]["confidence"] = Value::Null;
        let value = answer(&[opening(), delta(1, "data.rationale", "draft"), unsure]);
        assert_eq!(value["error"]["code"], "E3001");
        assert_eq!(value["partial_data"], json!({ "rationale": "r" }));
        let value = answer(&[delta(1, "data.rationale", "draft"), json!({ "final": true })]);
        assert_eq!(value["error"]["code"], "E3001");
        assert_eq!(value["partial_data"], json!({ "rationale": "draft" }));
        let value = answer(&[delta(1, "data.rationale", "draft"), json!({ "ok": false, "error": "boom" })]);
        assert_eq!(value["error"]["code"], "E3001");
        assert_eq!(value["partial_data"], json!({ "rationale": "draft" }));
    }

    #[test]
    fn stream_012_a_module_may_admit_what_the_common_contract_refuses() {
        let mut custom = last();
        custom["meta"]["risk"] = json!({ "custom": "legal", "reason": "licence" });
        assert!(!assemble([custom.clone()]).ok());
        let risk = RiskForm::WordsOrCustom { tag: "custom" };
        let mut assembler = Assembler::with_strictness(Strictness { risk, ..Strictness::default() });
        assembler.push(custom);
        assert!(assembler.finish().ok());
    }

    #[test]
    fn stream_012_any_json_gives_a_valid_envelope() {
        let odd = [
            Value::Null,
            json!(true),
            json!(-1),
            json!("x"),
            json!([]),
            json!([{}]),
            json!({}),
            json!({ "a": null }),
        ];
        let names = [
            "ok",
            "final",
            "streaming",
            "meta",
            "data",
            "error",
            "partial_data",
            "usage",
            "chunk",
            "progress",
            "session_id",
        ];
        let inner = ["seq", "type", "field", "delta", "data"];
        let bases = [
            opening(),
            delta(1, "data.a.0.b", "x"),
            last(),
            json!({ "ok": false, "error": { "code": "E1", "message": "m" } }),
        ];
        for base in &bases {
            for value in &odd {
                for name in names {
                    let mut chunk = base.clone();
                    chunk[name] = value.clone();
                    answer(&[opening(), delta(1, "data.a", "x"), chunk.clone()]);
                    answer(&[chunk]);
                }
                for name in inner {
                    let mut chunk = delta(2, "data.a.b", "x");
                    chunk["chunk"][name] = value.clone();
                    answer(&[delta(1, "data.a", "x"), chunk]);
                }
            }
        }
        for value in odd {
            answer(&[value]);
        }
    }

    #[test]
    fn stream_005_many_deltas_in_any_order_stay_cheap() {
        let count = 50_000;
        let backwards = (1..=count).rev().map(|seq| delta(seq, "data.rationale", "x"));
        let envelope = serde_json::to_value(assemble(backwards)).unwrap();
        assert_eq!(
            envelope["partial_data"]["rationale"].as_str().unwrap().len(),
            usize::try_from(count).unwrap()
        );
    }
}
