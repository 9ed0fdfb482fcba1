//! What a stream has sent, within a bound: numbers, checkpoints, and where somebody left off. Waits for nothing and
//! tells nobody; `session` does.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use axum::body::Bytes;
use cognitive_contract::failure::was_cancelled;
use cognitive_contract::stream::{Checkpoint, Chunk, ChunkKind, Recovery};
use cognitive_contract::text::hex;
use cognitive_contract::{Envelope, ErrorCode};
use sha2::{Digest, Sha256};

use crate::ask::Place;

/// The largest log of a stream that goes on. Above it the oldest chunks go.
pub(crate) const LARGEST: usize = 16 << 20;
/// What a chunk costs besides its text.
const OVERHEAD: usize = 160;
/// Failures that may be gone with the next try (EXT-REC).
const PASSING: [ErrorCode; 5] = [
    ErrorCode::Timeout,
    ErrorCode::StreamInterrupted,
    ErrorCode::StreamTimeout,
    ErrorCode::ProviderUnavailable,
    ErrorCode::RateLimited,
];

/// A chunk as it goes over the wire, serialised once for all transports.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) kind: ChunkKind,
    pub(crate) seq: Option<u64>,
    pub(crate) json: Bytes,
    /// Only for a delta: how far its field had come.
    checkpoint: Option<Checkpoint>,
    /// Only for the last: the whole answer.
    pub(crate) envelope: Option<Arc<Envelope>>,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    sent: VecDeque<Sent>,
    /// How many chunks stood before the first that is still here.
    pub(crate) gone: usize,
    pub(crate) bytes: usize,
    /// The text of each field so far, as its length and the state of its hash.
    fields: HashMap<String, (u64, Sha256)>,
    last_seq: u64,
    last_checkpoint: Option<Checkpoint>,
    pub(crate) ended: bool,
}

impl Log {
    /// How far a field has come with this delta (EXT-REC).
    fn checkpoint(&mut self, field: &str, delta: &str) -> Checkpoint {
        let (offset, hash) = self.fields.entry(field.to_owned()).or_default();
        *offset += delta.len() as u64;
        hash.update(delta);
        let mut hash = hex(&hash.clone().finalize());
        hash.truncate(6);
        Checkpoint { offset: *offset, hash }
    }

    /// Says in a chunk what a client needs to take the stream up after it.
    pub(crate) fn complete(&mut self, chunk: Chunk, kept: bool) -> Chunk {
        match &chunk {
            Chunk::Delta { seq, field, delta, .. } => {
                let checkpoint = self.checkpoint(field, delta);
                (self.last_seq, self.last_checkpoint) = (*seq, Some(checkpoint.clone()));
                chunk.with_checkpoint(checkpoint)
            }
            Chunk::Snapshot { seq, .. } => {
                (self.last_seq, self.last_checkpoint) = (*seq, None);
                chunk
            }
            Chunk::Error { envelope, .. } => match self.offer(envelope).filter(|_| kept) {
                Some(offer) => chunk.with_recovery(offer),
                None => chunk,
            },
            _ => chunk,
        }
    }

    fn offer(&self, envelope: &Envelope) -> Option<Recovery> {
        let error = envelope.error().filter(|_| !was_cancelled(envelope))?;
        ErrorCode::find(error.code()).filter(|code| PASSING.contains(code))?;
        let details = error.members().get("details");
        let wait = details.and_then(|details| details.get("retry_after_seconds")?.as_u64());
        Some(Recovery {
            last_seq: self.last_seq,
            last_checkpoint: self.last_checkpoint.clone(),
            retry_after_ms: wait.unwrap_or(1).saturating_mul(1_000),
            max_retries: 3,
        })
    }

    pub(crate) fn add(&mut self, sent: Sent) -> usize {
        self.bytes += sent.cost();
        self.ended = sent.kind.is_terminal();
        if self.ended {
            self.fields = HashMap::new();
        }
        self.sent.push_back(sent);
        while self.bytes > LARGEST && self.sent.len() > 1 {
            let Some(oldest) = self.sent.pop_front() else { break };
            self.bytes -= oldest.cost();
            self.gone += 1;
        }
        self.length()
    }

    pub(crate) fn length(&self) -> usize {
        self.gone + self.sent.len()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Sent> {
        self.sent.get(place.checked_sub(self.gone)?)
    }

    /// Where a client goes on that knows how the stream began. It is the resumed chunk that opens now.
    pub(crate) fn beginning(&self) -> usize {
        let opened = self.gone > 0 || self.sent.front().is_none_or(|first| first.kind == ChunkKind::Meta);
        usize::from(opened)
    }

    /// The number that the next numbered chunk has for somebody who has everything before `place`.
    pub(crate) fn next_seq(&self, place: usize) -> u64 {
        let mut rest = self.sent.iter().skip(place.saturating_sub(self.gone));
        rest.find_map(|sent| sent.seq).unwrap_or(self.last_seq + 1)
    }

    /// Where a client left off; `None` if no part of the stream ends there.
    pub(crate) fn find(&self, place: &Place) -> Option<usize> {
        match place {
            Place::Events(count) => (*count <= self.length()).then_some((*count).max(self.beginning())),
            Place::Chunks(0, None) => Some(self.beginning()),
            Place::Chunks(seq, checkpoint) => {
                let at = self.sent.iter().position(|sent| sent.seq == Some(*seq))?;
                let sent = self.sent.get(at)?;
                let right = checkpoint.is_none() || sent.checkpoint == *checkpoint;
                right.then_some(self.gone + at + 1)
            }
        }
    }
}

impl Sent {
    pub(crate) fn new(chunk: &Chunk) -> Option<Self> {
        let (seq, checkpoint) = match chunk {
            Chunk::Delta { seq, checkpoint, .. } => (Some(*seq), checkpoint.clone()),
            Chunk::Snapshot { seq, .. } => (Some(*seq), None),
            _ => (None, None),
        };
        let json = serde_json::to_vec(chunk).ok()?.into();
        Some(Self {
            kind: chunk.kind(),
            seq,
            json,
            checkpoint,
            envelope: chunk.envelope().cloned().map(Arc::new),
        })
    }

    /// The memory that it takes; the last chunk is kept as text and as an envelope.
    fn cost(&self) -> usize {
        OVERHEAD + self.json.len() * if self.envelope.is_some() { 3 } else { 1 }
    }
}
