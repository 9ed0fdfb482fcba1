//! The bounded log of the chunks that a stream has sent: numbers, checkpoints, and the position from which a client
//! resumes. Never waits and notifies no reader; `session` does.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use axum::body::Bytes;
use bytes::BytesMut;
use cognitive_contract::failure::was_cancelled;
use cognitive_contract::stream::{Checkpoint, Chunk, ChunkKind, Recovery, assemble, recognise};
use cognitive_contract::text::hex;
use cognitive_contract::{Envelope, ErrorCode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::request::Place;
use crate::sessions::StreamWeight;

/// The size limit for the log of a running stream, in bytes. Above it the oldest chunks are dropped. Without it, a
/// client that never reads would fill the memory.
pub(crate) const MAX_SIZE: usize = 16 << 20;
/// The memory of a chunk besides its text, in bytes.
const OVERHEAD: usize = 160;
/// Chunks are written one after the other into pages: small ones at first, since most streams are short. Thousands of
/// small allocations would fragment the memory so that it could not be returned.
const FIRST_PAGE: usize = 4 << 10;
const PAGE: usize = 64 << 10;
/// The memory of a run per byte of its answer until it has ended: the reply text and the values parsed from it. Both
/// grow by doubling, so each may take twice its length.
const RUN: usize = 4;
/// The bytes of a hash that a checkpoint shows, as six digits.
const HASH_BYTES: usize = 3;
/// Failures that a retry may resolve (EXT-REC).
const PASSING: [ErrorCode; 5] = [
    ErrorCode::Timeout,
    ErrorCode::StreamInterrupted,
    ErrorCode::StreamTimeout,
    ErrorCode::ProviderUnavailable,
    ErrorCode::RateLimited,
];

/// A chunk as sent to clients, serialised once for all transports.
#[derive(Debug, Clone)]
pub(crate) struct SentChunk {
    pub(crate) kind: ChunkKind,
    pub(crate) seq: Option<u64>,
    pub(crate) json: Bytes,
    /// Set for a delta only: the offset of its field and the digits of its hash.
    checkpoint: Option<(u64, [u8; 6])>,
    /// Set for the last chunk only: the whole answer.
    pub(crate) envelope: Option<Arc<Envelope>>,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    sent: VecDeque<SentChunk>,
    /// The number of chunks before the first one that is still held.
    pub(crate) gone: usize,
    pub(crate) bytes: usize,
    /// The page that the next chunk is written to.
    page: BytesMut,
    /// The number of chunks read by the reader that is furthest ahead; `behind` is the size of the rest.
    taken: usize,
    pub(crate) behind: usize,
    /// The length of the text that the run has produced so far.
    pub(crate) text: usize,
    /// The text of each field so far, as its length and the state of its hash.
    fields: HashMap<String, (u64, Sha256)>,
    last_seq: u64,
    last_checkpoint: Option<Checkpoint>,
    pub(crate) ended: bool,
    /// Set when the stream was ended for lack of memory. Chunks that the run still sends are not stored.
    given_up: bool,
}

impl Log {
    /// Returns the checkpoint of a field after this delta (EXT-REC).
    fn checkpoint(&mut self, field: &str, delta: &str) -> Checkpoint {
        let (offset, hash) = self.fields.entry(field.to_owned()).or_default();
        *offset += delta.len() as u64;
        hash.update(delta);
        let digest = hash.clone().finalize();
        Checkpoint { offset: *offset, hash: hex(digest.get(..HASH_BYTES).unwrap_or_default()) }
    }

    /// Adds the data that a client needs to resume after this chunk.
    pub(crate) fn complete(&mut self, chunk: Chunk, kept: bool) -> Chunk {
        match &chunk {
            Chunk::Delta { seq, field, delta, .. } => {
                let checkpoint = self.checkpoint(field, delta);
                self.text += delta.len();
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

    /// Adds a chunk. Returns the new number of chunks, or `None` if the chunk is not stored.
    pub(crate) fn add(&mut self, chunk: &Chunk) -> Option<usize> {
        if self.given_up && !chunk.kind().is_terminal() {
            return None;
        }
        let page = if self.bytes < PAGE { FIRST_PAGE } else { PAGE };
        if self.page.capacity() < OVERHEAD {
            self.page = BytesMut::with_capacity(page);
        }
        let sent = SentChunk::new(chunk, &mut self.page)?;
        Some(self.adopt(sent))
    }

    /// Adds a serialised chunk, which may come from another server.
    pub(crate) fn adopt(&mut self, sent: SentChunk) -> usize {
        if let Some(seq) = sent.seq {
            self.last_seq = seq;
        }
        self.bytes += sent.cost();
        self.behind += sent.cost();
        self.ended = sent.kind.is_terminal();
        self.sent.push_back(sent);
        if self.ended {
            (self.fields, self.page) = (HashMap::new(), BytesMut::new());
        }
        while self.bytes > MAX_SIZE && self.sent.len() > 1 {
            self.drop_oldest();
        }
        self.length()
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.sent.pop_front() else { return };
        self.bytes -= oldest.cost();
        self.gone += 1;
        if self.gone > self.taken {
            self.behind = self.behind.saturating_sub(oldest.cost());
            self.taken = self.gone;
        }
    }

    /// Records that a reader has read the chunk at this position.
    pub(crate) fn record_read(&mut self, place: usize) {
        while self.taken <= place {
            let cost = self.get(self.taken).map_or(0, SentChunk::cost);
            self.behind = self.behind.saturating_sub(cost);
            self.taken += 1;
        }
    }

    /// Drops the chunks that the reader furthest ahead has read. A reader that keeps up loses nothing.
    pub(crate) fn drop_read(&mut self) {
        while self.gone < self.taken && !self.sent.is_empty() {
            self.drop_oldest();
        }
        self.sent.shrink_to_fit();
    }

    /// Drops all chunks; readers that are behind cannot continue.
    pub(crate) fn forget_all(&mut self) {
        self.gone = self.length();
        (self.bytes, self.behind, self.taken) = (0, 0, self.gone);
        self.given_up = true;
        (self.sent, self.page) = (VecDeque::new(), BytesMut::new());
    }

    /// Returns the memory of the stream: its log, and its run while it is in flight.
    pub(crate) fn weight(&self) -> StreamWeight {
        let run = if self.ended { 0 } else { RUN * self.text };
        StreamWeight { held: self.bytes + run, leaving: if self.given_up { run } else { 0 } }
    }

    pub(crate) fn length(&self) -> usize {
        self.gone + self.sent.len()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&SentChunk> {
        self.sent.get(place.checked_sub(self.gone)?)
    }

    /// Returns the position for a client that already has the opening chunk. It receives the resumed chunk as the
    /// opening.
    pub(crate) fn beginning(&self) -> usize {
        let opened = self.gone > 0 || self.sent.front().is_none_or(|first| first.kind == ChunkKind::Meta);
        usize::from(opened)
    }

    /// Returns the number of the next numbered chunk for a client that has everything before `place`.
    pub(crate) fn next_seq(&self, place: usize) -> u64 {
        let mut rest = self.sent.iter().skip(place.saturating_sub(self.gone));
        rest.find_map(|sent| sent.seq).unwrap_or(self.last_seq + 1)
    }

    /// Returns the position after which a client resumes; `None` if the log has no such position.
    pub(crate) fn find(&self, place: &Place) -> Option<usize> {
        match place {
            Place::Events(count) => (*count <= self.length()).then_some((*count).max(self.beginning())),
            Place::Chunks(0, None) => Some(self.beginning()),
            Place::Chunks(seq, checkpoint) => {
                let at = self.sent.iter().position(|sent| sent.seq == Some(*seq))?;
                let sent = self.sent.get(at)?;
                let right =
                    checkpoint.as_ref().is_none_or(|checkpoint| sent.checkpoint == mark_of(checkpoint));
                right.then_some(self.gone + at + 1)
            }
        }
    }
}

/// Converts a checkpoint to a form without allocations.
fn mark_of(checkpoint: &Checkpoint) -> Option<(u64, [u8; 6])> {
    Some((checkpoint.offset, checkpoint.hash.as_bytes().try_into().ok()?))
}

impl SentChunk {
    /// Serialises a chunk to the end of a page.
    pub(crate) fn new(chunk: &Chunk, page: &mut BytesMut) -> Option<Self> {
        let (seq, checkpoint) = match chunk {
            Chunk::Delta { seq, checkpoint, .. } => (Some(*seq), checkpoint.as_ref().and_then(mark_of)),
            Chunk::Snapshot { seq, .. } => (Some(*seq), None),
            _ => (None, None),
        };
        let envelope = chunk.envelope().cloned().map(Arc::new);
        // Into a vector first: a page checks its room for each of the many small pieces that JSON is written in.
        let text = serde_json::to_vec(chunk).ok()?;
        page.extend_from_slice(&text);
        Some(Self { kind: chunk.kind(), seq, json: page.split().freeze(), checkpoint, envelope })
    }

    /// Parses a chunk that another server sent, and returns its value too.
    pub(crate) fn read(json: Bytes) -> Option<(Self, Value)> {
        let value: Value = serde_json::from_slice(&json).ok()?;
        let kind = recognise(&value).ok()?;
        let seq = value.pointer("/chunk/seq").and_then(Value::as_u64);
        let checkpoint = value.pointer("/chunk/checkpoint").cloned();
        let checkpoint = checkpoint.and_then(|mark| serde_json::from_value::<Checkpoint>(mark).ok());
        let envelope = kind.is_terminal().then(|| Arc::new(assemble([value.clone()])));
        Some((Self { kind, seq, json, checkpoint: checkpoint.as_ref().and_then(mark_of), envelope }, value))
    }

    /// Returns the memory of the chunk; the last chunk is held as text and as an envelope.
    fn cost(&self) -> usize {
        OVERHEAD + self.json.len() * if self.envelope.is_some() { 3 } else { 1 }
    }
}
