//! One chunk of a stream, before serialization to JSON (`wire.rs`).
//! Does not number or order chunks. Only [`ChunkWriter`](super::ChunkWriter) creates numbered and terminal chunks, so
//! their variants cannot be built outside this crate.

use serde_json::{Map, Value};

use super::session::{Checkpoint, Recovery, SessionId};
use crate::envelope::Envelope;
use crate::meta::{Meta, RiskValue};

/// The purpose of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkKind {
    /// Opens the session, or updates `meta` later.
    Meta,
    /// Text to append to one field.
    Delta,
    /// Replaces all data so far.
    Snapshot,
    /// Progress of the run. Does not affect the result.
    Progress,
    /// The end: the complete answer.
    Final,
    /// The end: a failure.
    Error,
    /// Keeps the connection alive.
    Heartbeat,
}

impl ChunkKind {
    /// Returns the SSE event name. A heartbeat has none: over SSE it is a comment line.
    #[must_use]
    pub fn event_name(self) -> Option<&'static str> {
        match self {
            Self::Meta => Some("meta"),
            Self::Delta | Self::Snapshot => Some("chunk"),
            Self::Progress => Some("progress"),
            Self::Final => Some("final"),
            Self::Error => Some("error"),
            Self::Heartbeat => None,
        }
    }

    /// Returns whether the chunk ends the stream.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Final | Self::Error)
    }

    /// Returns whether the chunk carries a `seq`.
    #[must_use]
    pub fn is_numbered(self) -> bool {
        matches!(self, Self::Delta | Self::Snapshot)
    }
}

/// A chunk created by this crate. Serializes to its wire form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// The first chunk of a stream.
    #[non_exhaustive]
    Meta {
        /// The session id of the stream.
        session_id: SessionId,
        /// The facts known before the answer; `confidence` is null.
        meta: Map<String, Value>,
        /// Set if an interrupted stream resumes: the number of the next delta or snapshot.
        resume_from_seq: Option<u64>,
    },
    /// Text to append to one field.
    #[non_exhaustive]
    Delta {
        /// Position in the stream, from 1.
        seq: u64,
        /// Dotted path such as `data.rationale`.
        field: String,
        /// The text to append.
        delta: String,
        /// The state of the field after this delta.
        checkpoint: Option<Checkpoint>,
    },
    /// The complete data so far.
    #[non_exhaustive]
    Snapshot {
        /// Position in the stream, from 1.
        seq: u64,
        /// Replaces all earlier data.
        data: Map<String, Value>,
    },
    /// Progress of the run.
    Progress {
        /// 0 to 100.
        percent: u8,
        /// The current stage, for machines.
        stage: Option<String>,
        /// A message for humans.
        message: Option<String>,
    },
    /// The end of a successful stream.
    #[non_exhaustive]
    Final {
        /// A success.
        envelope: Box<Envelope>,
    },
    /// The end of a failed stream.
    #[non_exhaustive]
    Error {
        /// The session id of the stream.
        session_id: SessionId,
        /// A failure.
        envelope: Box<Envelope>,
        /// Instructions to resume the stream, if possible.
        recovery: Option<Recovery>,
    },
    /// `{}`.
    Heartbeat,
}

impl Chunk {
    /// Creates the first chunk of a stream. The confidence of the answer is still unknown, so `confidence` is sent as
    /// null, whatever `meta` contains.
    pub(super) fn opening(session_id: SessionId, meta: &Meta) -> Self {
        Self::Meta { session_id, meta: unsure_meta(meta), resume_from_seq: None }
    }

    /// Creates the first chunk for a client that resumes a stream. The chunks from number `resume_from_seq` follow
    /// unchanged.
    #[must_use]
    pub fn resumption(session_id: SessionId, meta: &Meta, resume_from_seq: u64) -> Self {
        Self::Meta { session_id, meta: unsure_meta(meta), resume_from_seq: Some(resume_from_seq) }
    }

    /// Creates the last chunk: final for a success, error for a failure.
    pub(super) fn terminal(session_id: SessionId, envelope: Envelope) -> Self {
        let ok = envelope.ok();
        let envelope = Box::new(envelope);
        if ok { Self::Final { envelope } } else { Self::Error { session_id, envelope, recovery: None } }
    }

    /// Adds the state of the field to a delta. Other chunks stay unchanged.
    #[must_use]
    pub fn with_checkpoint(mut self, reached: Checkpoint) -> Self {
        if let Self::Delta { checkpoint, .. } = &mut self {
            *checkpoint = Some(reached);
        }
        self
    }

    /// Adds resume instructions to an error chunk. Other chunks stay unchanged.
    #[must_use]
    pub fn with_recovery(mut self, offer: Recovery) -> Self {
        if let Self::Error { recovery, .. } = &mut self {
            *recovery = Some(offer);
        }
        self
    }

    /// Returns the purpose of the chunk.
    #[must_use]
    pub fn kind(&self) -> ChunkKind {
        match self {
            Self::Meta { .. } => ChunkKind::Meta,
            Self::Delta { .. } => ChunkKind::Delta,
            Self::Snapshot { .. } => ChunkKind::Snapshot,
            Self::Progress { .. } => ChunkKind::Progress,
            Self::Final { .. } => ChunkKind::Final,
            Self::Error { .. } => ChunkKind::Error,
            Self::Heartbeat => ChunkKind::Heartbeat,
        }
    }

    /// Returns the SSE event name; `None` for a heartbeat, which is a comment line in SSE.
    #[must_use]
    pub fn event_name(&self) -> Option<&'static str> {
        self.kind().event_name()
    }

    /// Returns the answer of a terminal chunk.
    #[must_use]
    pub fn envelope(&self) -> Option<&Envelope> {
        match self {
            Self::Final { envelope } | Self::Error { envelope, .. } => Some(envelope),
            Self::Meta { .. }
            | Self::Delta { .. }
            | Self::Snapshot { .. }
            | Self::Progress { .. }
            | Self::Heartbeat => None,
        }
    }
}

fn unsure_meta(meta: &Meta) -> Map<String, Value> {
    let risk = match &meta.risk {
        RiskValue::Level(risk) => Value::from(risk.word()),
        RiskValue::Custom(custom) => Value::Object(custom.clone()),
    };
    let mut members = Map::new();
    members.insert("confidence".to_owned(), Value::Null);
    members.insert("risk".to_owned(), risk);
    members.insert("explain".to_owned(), Value::from(meta.explain()));
    for (name, value) in &meta.extra {
        members.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_019_event_names() {
        let names = [ChunkKind::Meta, ChunkKind::Delta, ChunkKind::Snapshot, ChunkKind::Progress]
            .map(|kind| kind.event_name().unwrap());
        assert_eq!(names, ["meta", "chunk", "chunk", "progress"]);
        assert_eq!(ChunkKind::Final.event_name(), Some("final"));
        assert_eq!(ChunkKind::Error.event_name(), Some("error"));
        assert_eq!(Chunk::Heartbeat.event_name(), None);
    }
}
