//! Serializes chunks to JSON: exactly the members of the published chunk table, in its order, and no null members.
//! Makes no decisions: `chunk.rs` determines the content. An envelope has token usage inside `meta`; a final chunk has
//! it next to `meta`, as in the chunk table.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::chunk::Chunk;
use super::session::{Checkpoint, Recovery};
use crate::context::EMITTED;
use crate::envelope::{Envelope, Outcome};
use crate::meta::{Meta, USAGE};

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Meta { session_id, meta, resume_from_seq } => {
                map.serialize_entry("ok", &true)?;
                map.serialize_entry("streaming", &true)?;
                map.serialize_entry("session_id", session_id)?;
                if let Some(seq) = resume_from_seq {
                    map.serialize_entry("resumed", &true)?;
                    map.serialize_entry("resume_from_seq", seq)?;
                }
                map.serialize_entry("meta", meta)?;
            }
            Self::Delta { seq, field, delta, checkpoint } => {
                map.serialize_entry(
                    "chunk",
                    &DeltaWire { seq: *seq, kind: "delta", field, delta, checkpoint },
                )?;
            }
            Self::Snapshot { seq, data } => {
                map.serialize_entry("chunk", &SnapshotWire { seq: *seq, kind: "snapshot", data })?;
            }
            Self::Progress { percent, stage, message } => {
                map.serialize_entry("progress", &ProgressWire { percent: *percent, stage, message })?;
            }
            Self::Final { envelope } => {
                map.serialize_entry("final", &true)?;
                serialize_answer(envelope, None, &mut map)?;
            }
            Self::Error { session_id, envelope, recovery } => {
                map.serialize_entry("ok", &false)?;
                map.serialize_entry("streaming", &true)?;
                map.serialize_entry("session_id", session_id)?;
                serialize_answer(envelope, recovery.as_ref(), &mut map)?;
            }
            Self::Heartbeat => {}
        }
        map.end()
    }
}

fn serialize_answer<M: SerializeMap>(
    envelope: &Envelope,
    recovery: Option<&Recovery>,
    map: &mut M,
) -> Result<(), M::Error> {
    let mut usage = None;
    match envelope.outcome() {
        Outcome::Success { data } => {
            usage = envelope.meta().extra.get(USAGE);
            map.serialize_entry("meta", &FinalMeta(envelope.meta()))?;
            map.serialize_entry("data", data)?;
        }
        Outcome::Failure { error, partial_data } => {
            map.serialize_entry("meta", envelope.meta())?;
            map.serialize_entry("error", &ErrorWire { members: error.members(), recovery })?;
            if let Some(partial) = partial_data {
                map.serialize_entry("partial_data", partial)?;
            }
        }
    }
    for (name, value) in [(USAGE, usage), (EMITTED, envelope.beside(EMITTED))] {
        if let Some(value) = value {
            map.serialize_entry(name, value)?;
        }
    }
    Ok(())
}

/// The `meta` of a final chunk, without the token usage, which is next to it.
struct FinalMeta<'a>(&'a Meta);

impl Serialize for FinalMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let meta = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("confidence", &meta.confidence)?;
        map.serialize_entry("risk", &meta.risk)?;
        map.serialize_entry("explain", meta.explain())?;
        for (name, value) in meta.extra.iter().filter(|(name, _)| *name != USAGE) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct DeltaWire<'a> {
    seq: u64,
    #[serde(rename = "type")]
    kind: &'static str,
    field: &'a str,
    delta: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: &'a Option<Checkpoint>,
}

#[derive(serde::Serialize)]
struct SnapshotWire<'a> {
    seq: u64,
    #[serde(rename = "type")]
    kind: &'static str,
    data: &'a Map<String, Value>,
}

#[derive(serde::Serialize)]
struct ProgressWire<'a> {
    percent: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: &'a Option<String>,
}

struct ErrorWire<'a> {
    members: &'a Map<String, Value>,
    recovery: Option<&'a Recovery>,
}

impl Serialize for ErrorWire<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.members {
            // A model can write its own `error.recovery`; only ours is valid for this stream.
            if self.recovery.is_none() || name != "recovery" {
                map.serialize_entry(name, value)?;
            }
        }
        if let Some(recovery) = self.recovery {
            map.serialize_entry("recovery", recovery)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::code::ErrorCode;
    use crate::failure::Failure;
    use crate::meta::{Confidence, Warning};
    use crate::risk_level::Risk;
    use crate::stream::session::SessionId;
    use crate::usage::Usage;

    fn wire(chunk: &Chunk) -> String {
        serde_json::to_string(chunk).unwrap()
    }

    fn session() -> SessionId {
        SessionId::new("sess_a").unwrap()
    }

    #[test]
    fn stream_001_002_026_the_opening_names_the_session_and_no_confidence() {
        let mut meta = Meta::new(Confidence::DEFAULT, Risk::Low, "Starting");
        meta.warn(&Warning::new("E4013", "new session"));
        assert_eq!(
            wire(&Chunk::opening(session(), &meta)),
            r#"{"ok":true,"streaming":true,"session_id":"sess_a","meta":{"confidence":null,"risk":"low","explain":"Starting","warnings":[{"code":"E4013","message":"new session"}]}}"#
        );
    }

    #[test]
    fn ext_rec_a_resumed_stream_says_where_it_goes_on() {
        let meta = Meta::new(Confidence::DEFAULT, Risk::Low, "e");
        assert_eq!(
            wire(&Chunk::resumed(session(), &meta, 8)),
            r#"{"ok":true,"streaming":true,"session_id":"sess_a","resumed":true,"resume_from_seq":8,"meta":{"confidence":null,"risk":"low","explain":"e"}}"#
        );
    }

    #[test]
    fn stream_003_007_008_pieces_always_say_type_and_field() {
        let delta =
            Chunk::Delta { seq: 1, field: "data.a".to_owned(), delta: "x".to_owned(), checkpoint: None };
        assert_eq!(wire(&delta), r#"{"chunk":{"seq":1,"type":"delta","field":"data.a","delta":"x"}}"#);
        let marked = delta.with_checkpoint(Checkpoint { offset: 1, hash: "2d7116".to_owned() });
        assert_eq!(
            wire(&marked),
            r#"{"chunk":{"seq":1,"type":"delta","field":"data.a","delta":"x","checkpoint":{"offset":1,"hash":"2d7116"}}}"#
        );
        let snapshot = Chunk::Snapshot { seq: 2, data: Map::new() };
        assert_eq!(wire(&snapshot), r#"{"chunk":{"seq":2,"type":"snapshot","data":{}}}"#);
    }

    #[test]
    fn stream_006_010_progress_and_heartbeat() {
        let progress = Chunk::Progress { percent: 45, stage: Some("reading".to_owned()), message: None };
        assert_eq!(wire(&progress), r#"{"progress":{"percent":45,"stage":"reading"}}"#);
        assert_eq!(wire(&Chunk::Heartbeat), "{}");
    }

    #[test]
    // D-07: usage is next to `meta` here, and inside it in the envelope.
    fn stream_011_012_the_final_chunk_carries_the_whole_answer() {
        let answer = json!({
            "ok": true, "data": { "rationale": "r" }, "_emitted_context": {},
            "meta": { "confidence": 0.9, "risk": "low", "explain": "e", "usage": { "input_tokens": 1 }, "model": "m" },
        });
        let chunk = Chunk::terminal(session(), Envelope::from_value(answer).unwrap());
        assert_eq!(
            wire(&chunk),
            r#"{"final":true,"meta":{"confidence":0.9,"risk":"low","explain":"e","model":"m"},"data":{"rationale":"r"},"usage":{"input_tokens":1},"_emitted_context":{}}"#
        );
        assert!(chunk.envelope().unwrap().ok());
    }

    #[test]
    fn stream_002_013_the_error_chunk_carries_session_meta_error_and_partial_data() {
        let failure = Failure::new(ErrorCode::StreamTimeout, "m").with_partial(Some(Map::new()));
        let chunk = Chunk::terminal(session(), failure.into_envelope());
        assert_eq!(
            wire(&chunk),
            r#"{"ok":false,"streaming":true,"session_id":"sess_a","meta":{"confidence":0.0,"risk":"high","explain":"Provider failed: m"},"error":{"code":"E2011","message":"m","recoverable":true},"partial_data":{}}"#
        );
    }

    #[test]
    fn stream_013_the_tokens_of_a_failed_stream_stay_in_its_meta() {
        let mut envelope = Failure::new(ErrorCode::StreamTimeout, "m").into_envelope();
        envelope.meta_mut().set_usage(Usage::new(2, 3));
        let value = serde_json::to_value(Chunk::terminal(session(), envelope)).unwrap();
        assert_eq!((value.get("usage"), &value["meta"]["usage"]["total_tokens"]), (None, &json!(5)));
    }

    #[test]
    fn ext_rec_an_error_chunk_can_offer_recovery() {
        let failure = Failure::new(ErrorCode::StreamInterrupted, "m");
        let offer = Recovery { last_seq: 4, last_checkpoint: None, retry_after_ms: 500, max_retries: 3 };
        let chunk = Chunk::terminal(session(), failure.into_envelope()).with_recovery(offer);
        let value = serde_json::to_value(&chunk).unwrap();
        assert_eq!(
            value["error"]["recovery"],
            json!({ "last_seq": 4, "retry_after_ms": 500, "max_retries": 3 })
        );
    }
}
