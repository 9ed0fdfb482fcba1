//! Serializes chunks to JSON: exactly the members of the published chunk table, in its order, and no null members.
//! Makes no decisions: `chunk.rs` determines the content. The schemas of chunks are derived from these types. An envelope has token usage inside `meta`; a final chunk has
//! it next to `meta`, as in the chunk table.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::chunk::Chunk;
use super::session::{Checkpoint, Recovery, SessionId};
use crate::context::EMITTED;
use crate::envelope::{ErrorBody, Outcome};
use crate::envelope_schema::OpeningMeta;
use crate::meta::{Meta, USAGE};
use crate::usage::Usage;

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ChunkWire::from(self).serialize(serializer)
    }
}

impl JsonSchema for Chunk {
    fn schema_name() -> Cow<'static, str> {
        ChunkWire::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ChunkWire::json_schema(generator)
    }
}

/// One piece of a stream.
#[derive(serde::Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Chunk")]
enum ChunkWire<'a> {
    Opening(OpeningWire<'a>),
    Text(TextWire<'a>),
    Progress(ProgressWire<'a>),
    Final(FinalWire<'a>),
    Failed(FailedWire<'a>),
    Heartbeat(HeartbeatWire),
}

/// The start of a stream, or its continuation after a break.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "OpeningChunk")]
struct OpeningWire<'a> {
    #[schemars(extend("const" = true))]
    ok: bool,
    #[schemars(extend("const" = true))]
    streaming: bool,
    session_id: &'a SessionId,
    /// True if the stream goes on after a break.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = true))]
    resumed: Option<bool>,
    /// The number of the next delta or snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    resume_from_seq: Option<u64>,
    #[schemars(with = "OpeningMeta")]
    meta: &'a Map<String, Value>,
}

/// More of the answer. Provisional: the last chunk overrules it.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "TextChunk")]
struct TextWire<'a> {
    chunk: NumberedWire<'a>,
}

#[derive(serde::Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum NumberedWire<'a> {
    Delta(DeltaWire<'a>),
    Snapshot(SnapshotWire<'a>),
}

/// The growth of one field.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "DeltaText")]
struct DeltaWire<'a> {
    #[schemars(range(min = 1))]
    seq: u64,
    #[serde(rename = "type")]
    #[schemars(extend("const" = "delta"))]
    kind: &'static str,
    /// The path of the field, such as `data.rationale`.
    field: &'a str,
    delta: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<&'a Checkpoint>,
}

/// All data so far.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "DataSnapshot")]
struct SnapshotWire<'a> {
    #[schemars(range(min = 1))]
    seq: u64,
    #[serde(rename = "type")]
    #[schemars(extend("const" = "snapshot"))]
    kind: &'static str,
    data: &'a Map<String, Value>,
}

/// The progress of the run.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "ProgressChunk")]
struct ProgressWire<'a> {
    progress: ProgressMember<'a>,
}

#[derive(serde::Serialize, JsonSchema)]
#[schemars(inline)]
struct ProgressMember<'a> {
    #[schemars(range(max = 100))]
    percent: u8,
    /// The current stage, for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'a str>,
    /// A message for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// The whole answer, checked.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "FinalChunk")]
struct FinalWire<'a> {
    #[serde(rename = "final")]
    #[schemars(extend("const" = true))]
    is_final: bool,
    #[schemars(with = "Meta")]
    meta: FinalMeta<'a>,
    // Always set: the last chunk of a success has data.
    #[schemars(with = "Map<String, Value>")]
    data: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Usage")]
    usage: Option<&'a Value>,
    #[serde(rename = "_emitted_context", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    emitted: Option<&'a Value>,
}

/// The end of a stream that failed.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "FailedChunk")]
struct FailedWire<'a> {
    #[schemars(extend("const" = false))]
    ok: bool,
    #[schemars(extend("const" = true))]
    streaming: bool,
    session_id: &'a SessionId,
    meta: &'a Meta,
    // Always set: the last chunk of a failure has an error.
    #[schemars(with = "ErrorBody")]
    error: Option<ErrorWire<'a>>,
    /// The partial result.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_data: Option<&'a Map<String, Value>>,
    #[serde(rename = "_emitted_context", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    emitted: Option<&'a Value>,
}

/// Nothing yet; keeps the connection open.
#[derive(serde::Serialize, JsonSchema)]
#[schemars(rename = "Heartbeat", extend("maxProperties" = 0))]
struct HeartbeatWire {}

impl<'a> From<&'a Chunk> for ChunkWire<'a> {
    fn from(chunk: &'a Chunk) -> Self {
        match chunk {
            Chunk::Meta { session_id, meta, resume_from_seq } => Self::Opening(OpeningWire {
                ok: true,
                streaming: true,
                session_id,
                resumed: resume_from_seq.map(|_| true),
                resume_from_seq: *resume_from_seq,
                meta,
            }),
            Chunk::Delta { seq, field, delta, checkpoint } => {
                let (seq, checkpoint) = (*seq, checkpoint.as_ref());
                let delta = DeltaWire { seq, kind: "delta", field, delta, checkpoint };
                Self::Text(TextWire { chunk: NumberedWire::Delta(delta) })
            }
            Chunk::Snapshot { seq, data } => {
                let snapshot = SnapshotWire { seq: *seq, kind: "snapshot", data };
                Self::Text(TextWire { chunk: NumberedWire::Snapshot(snapshot) })
            }
            Chunk::Progress { percent, stage, message } => {
                let (stage, message) = (stage.as_deref(), message.as_deref());
                Self::Progress(ProgressWire {
                    progress: ProgressMember { percent: *percent, stage, message },
                })
            }
            Chunk::Final { envelope } => Self::Final(FinalWire {
                is_final: true,
                meta: FinalMeta(envelope.meta()),
                data: envelope.data(),
                usage: envelope.meta().extra.get(USAGE),
                emitted: envelope.extra_member(EMITTED),
            }),
            Chunk::Error { session_id, envelope, recovery } => {
                let (error, partial_data) = match envelope.outcome() {
                    Outcome::Success { .. } => (None, None),
                    Outcome::Failure { error, partial_data } => {
                        let recovery = recovery.as_ref();
                        (Some(ErrorWire { members: error.members(), recovery }), partial_data.as_ref())
                    }
                };
                Self::Failed(FailedWire {
                    ok: false,
                    streaming: true,
                    session_id,
                    meta: envelope.meta(),
                    error,
                    partial_data,
                    emitted: envelope.extra_member(EMITTED),
                })
            }
            Chunk::Heartbeat => Self::Heartbeat(HeartbeatWire {}),
        }
    }
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
    use crate::envelope::Envelope;
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
            wire(&Chunk::resumption(session(), &meta, 8)),
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
