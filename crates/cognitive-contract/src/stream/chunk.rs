//! One piece of a stream, before it becomes JSON (`wire.rs`).
//! Numbers nothing and orders nothing: numbered and terminal chunks come from [`ChunkWriter`](super::ChunkWriter)
//! alone, so their variants cannot be built outside this crate.

use serde_json::{Map, Value};

use super::session::{Checkpoint, Recovery, SessionId};
use crate::envelope::Envelope;
use crate::meta::{Meta, RiskValue};

/// What a chunk is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkKind {
    /// Opens the session, or updates `meta` on the way.
    Meta,
    /// Text to append to one field.
    Delta,
    /// Replaces all data so far.
    Snapshot,
    /// How far the work is. Without effect on the result.
    Progress,
    /// The end: the whole answer.
    Final,
    /// The end: what went wrong.
    Error,
    /// Keeps the connection alive.
    Heartbeat,
}

impl ChunkKind {
    /// The SSE event name. A heartbeat has none: over SSE it is a comment line.
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

    /// Whether nothing may follow.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Final | Self::Error)
    }

    /// Whether the chunk carries a `seq`.
    #[must_use]
    pub fn is_numbered(self) -> bool {
        matches!(self, Self::Delta | Self::Snapshot)
    }
}

/// A chunk of our own making. Serialises to its wire form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// The first chunk of a stream.
    #[non_exhaustive]
    Meta {
        /// The name of the stream.
        session_id: SessionId,
        /// What is known before the answer; `confidence` is null.
        meta: Map<String, Value>,
        /// Set when a broken stream goes on: the number of the next delta or snapshot.
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
        /// How far the field has come.
        checkpoint: Option<Checkpoint>,
    },
    /// The whole data so far.
    #[non_exhaustive]
    Snapshot {
        /// Position in the stream, from 1.
        seq: u64,
        /// What replaces everything before.
        data: Map<String, Value>,
    },
    /// How far the work is.
    Progress {
        /// 0 to 100.
        percent: u8,
        /// A word for machines.
        stage: Option<String>,
        /// A sentence for people.
        message: Option<String>,
    },
    /// The end of a stream that worked out.
    #[non_exhaustive]
    Final {
        /// A success.
        envelope: Box<Envelope>,
    },
    /// The end of a stream that did not.
    #[non_exhaustive]
    Error {
        /// The name of the stream.
        session_id: SessionId,
        /// A failure.
        envelope: Box<Envelope>,
        /// How to take the stream up again, where that is possible.
        recovery: Option<Recovery>,
    },
    /// `{}`.
    Heartbeat,
}

impl Chunk {
    /// The first chunk of a stream. Nobody knows yet how sure the answer will be, so `confidence` goes out as null
    /// whatever `meta` says.
    pub(super) fn opening(session_id: SessionId, meta: &Meta) -> Self {
        Self::Meta { session_id, meta: unsure(meta), resume_from_seq: None }
    }

    /// The first chunk for a client that comes back to a stream it already knows a part of. The chunks from number
    /// `resume_from_seq` on follow as they were first sent.
    #[must_use]
    pub fn resumed(session_id: SessionId, meta: &Meta, resume_from_seq: u64) -> Self {
        Self::Meta { session_id, meta: unsure(meta), resume_from_seq: Some(resume_from_seq) }
    }

    /// The last chunk: final for a success, error for a failure.
    pub(super) fn terminal(session_id: SessionId, envelope: Envelope) -> Self {
        let ok = envelope.ok();
        let envelope = Box::new(envelope);
        if ok { Self::Final { envelope } } else { Self::Error { session_id, envelope, recovery: None } }
    }

    /// Says how far the field of a delta has come. Other chunks stay as they are.
    #[must_use]
    pub fn with_checkpoint(mut self, reached: Checkpoint) -> Self {
        if let Self::Delta { checkpoint, .. } = &mut self {
            *checkpoint = Some(reached);
        }
        self
    }

    /// Says how to take up a stream that ends in this error chunk. Other chunks stay as they are.
    #[must_use]
    pub fn with_recovery(mut self, offer: Recovery) -> Self {
        if let Self::Error { recovery, .. } = &mut self {
            *recovery = Some(offer);
        }
        self
    }

    /// What the chunk is for.
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

    /// The SSE event name; `None` for a heartbeat, which is a comment line there.
    #[must_use]
    pub fn event_name(&self) -> Option<&'static str> {
        self.kind().event_name()
    }

    /// The finished answer that a terminal chunk carries.
    #[must_use]
    pub fn envelope(&self) -> Option<&Envelope> {
        match self {
            Self::Final { envelope } | Self::Error { envelope, .. } => Some(envelope),
            _ => None,
        }
    }
}

fn unsure(meta: &Meta) -> Map<String, Value> {
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
