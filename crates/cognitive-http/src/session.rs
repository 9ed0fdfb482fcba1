//! One stream and its log: everything that was sent, kept so that a client that lost its connection can come back and
//! get exactly what it missed. Starts no model call and knows no transport.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use cognitive_contract::stream::{Checkpoint, Chunk, ChunkKind, SessionId};
use cognitive_contract::text::hex;
use cognitive_contract::{Envelope, Failure};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

/// The largest log that is kept after its end (S-16).
const LARGEST: usize = 1 << 20;

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

/// One stream.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Nobody else may take it up.
    owner: String,
    log: Mutex<Log>,
    /// How many chunks there are; readers wait for it to grow.
    length: watch::Sender<usize>,
    /// How many clients are listening.
    readers: watch::Sender<usize>,
    /// Set by a client that wants no more of it.
    cancelled: watch::Sender<Option<Failure>>,
}

#[derive(Debug, Default)]
struct Log {
    sent: Vec<Sent>,
    bytes: usize,
    /// The text of each field so far, as its length and the state of its hash.
    fields: HashMap<String, (u64, Sha256)>,
    ended: Option<Instant>,
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
}

impl Session {
    pub(crate) fn new(id: SessionId, owner: &str) -> Arc<Self> {
        Arc::new(Self {
            id,
            owner: owner.to_owned(),
            log: Mutex::default(),
            length: watch::Sender::new(0),
            readers: watch::Sender::new(0),
            cancelled: watch::Sender::new(None),
        })
    }

    /// Adds a chunk and wakes those who wait for it.
    pub(crate) fn push(&self, mut chunk: Chunk) {
        let mut log = self.lock();
        let (mut seq, mut checkpoint) = (None, None);
        match &chunk {
            Chunk::Delta { seq: number, field, delta, .. } => {
                seq = Some(*number);
                checkpoint = Some(log.checkpoint(field, delta));
            }
            Chunk::Snapshot { seq: number, .. } => seq = Some(*number),
            _ => {}
        }
        if let Some(checkpoint) = &checkpoint {
            chunk = chunk.with_checkpoint(checkpoint.clone());
        }
        let Ok(json) = serde_json::to_vec(&chunk) else { return };
        let envelope = chunk.envelope().cloned().map(Arc::new);
        log.bytes += json.len();
        log.sent.push(Sent { kind: chunk.kind(), seq, json: json.into(), checkpoint, envelope });
        if chunk.kind().is_terminal() {
            log.ended = Some(Instant::now());
        }
        let length = log.sent.len();
        drop(log);
        self.length.send_replace(length);
    }

    /// Asks the run to stop for this reason.
    pub(crate) fn cancel(&self, reason: Failure) {
        self.cancelled.send_replace(Some(reason));
    }

    /// Waits until somebody asks the run to stop.
    pub(crate) async fn cancelled(&self) -> Option<Failure> {
        let mut cancelled = self.cancelled.subscribe();
        cancelled.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone())
    }

    /// Waits until nobody has listened for as long as `grace`.
    pub(crate) async fn abandoned(&self, grace: Duration) {
        let mut readers = self.readers.subscribe();
        loop {
            if readers.wait_for(|count| *count == 0).await.is_err() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(grace) => return,
                _ = readers.wait_for(|count| *count > 0) => {}
            }
        }
    }

    /// The place in the log after the numbered chunk `seq`; `None` if there is no such chunk yet.
    pub(crate) fn after_seq(&self, seq: u64) -> Option<usize> {
        let log = self.lock();
        if seq == 0 {
            // The opening chunk was sent; it is the resumed one that opens now.
            return Some(usize::from(!log.sent.is_empty()));
        }
        log.sent.iter().position(|sent| sent.seq == Some(seq)).map(|at| at + 1)
    }

    /// The number that the next numbered chunk has for somebody who has the first `count` events.
    pub(crate) fn next_seq(&self, count: usize) -> u64 {
        let log = self.lock();
        log.sent.iter().take(count).filter_map(|sent| sent.seq).max().unwrap_or(0) + 1
    }

    /// Whether a field had come as far with the numbered chunk `seq` as the client says.
    pub(crate) fn agrees(&self, seq: u64, at: &Checkpoint) -> bool {
        self.lock().sent.iter().any(|sent| sent.seq == Some(seq) && sent.checkpoint.as_ref() == Some(at))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        // A panic while the lock was held leaves at worst a chunk unsaid.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who reads a stream from some place on. The stream knows that it is listened to until this is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    session: Arc<Session>,
    next: usize,
    length: watch::Receiver<usize>,
    ended: bool,
}

impl Reader {
    pub(crate) fn new(session: &Arc<Session>, from: usize) -> Self {
        session.readers.send_modify(|count| *count += 1);
        // Somebody who has the last word already has nothing to wait for.
        let ended = session.lock().ended.is_some() && from >= *session.length.borrow();
        Self { session: Arc::clone(session), next: from, length: session.length.subscribe(), ended }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The next chunk and its place in the log, from 1; `None` after the last. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Option<(usize, Sent)> {
        if self.ended {
            return None;
        }
        let wanted = self.next;
        self.length.wait_for(|length| *length > wanted).await.ok()?;
        let sent = self.session.lock().sent.get(wanted).cloned()?;
        self.next += 1;
        self.ended = sent.kind.is_terminal();
        Some((self.next, sent))
    }

    /// The next chunk, without taking it.
    pub(crate) async fn peek(&mut self) -> Option<Sent> {
        let wanted = self.next;
        self.length.wait_for(|length| *length > wanted).await.ok()?;
        self.session.lock().sent.get(wanted).cloned()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.readers.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// All streams that can be taken up again.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    pub(crate) fn insert(&self, session: &Arc<Session>) {
        self.lock().insert(session.id.as_str().to_owned(), Arc::clone(session));
    }

    /// A session of this client. Those of others do not exist for it.
    pub(crate) fn get(&self, id: &str, owner: &str) -> Option<Arc<Session>> {
        self.lock().get(id).filter(|session| session.owner == owner).cloned()
    }

    /// How many streams are going on.
    pub(crate) fn open(&self) -> usize {
        self.lock().values().filter(|session| session.lock().ended.is_none()).count()
    }

    /// Ends all streams that are still going on.
    pub(crate) fn cancel_all(&self, reason: &Failure) {
        for session in self.lock().values() {
            session.cancel(reason.clone());
        }
    }

    /// Forgets what ended longer than `keep` ago, and what is too large to be kept.
    pub(crate) fn sweep(&self, keep: Duration) {
        self.lock().retain(|_, session| {
            let log = session.lock();
            log.ended.is_none_or(|at| at.elapsed() < keep && log.bytes <= LARGEST)
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::ErrorCode;
    use cognitive_contract::stream::ChunkWriter;

    use super::*;

    fn session() -> Arc<Session> {
        Session::new(SessionId::from_random(1), "anna")
    }

    fn write(session: &Session) {
        let mut writer = ChunkWriter::new(session.id.clone(), 0);
        for word in ["one ", "two ", "three"] {
            for chunk in writer.text("data.rationale", word) {
                session.push(chunk);
            }
        }
        let failure = Failure::new(ErrorCode::StreamInterrupted, "m");
        for chunk in writer.finish(failure.into_envelope()) {
            session.push(chunk);
        }
    }

    #[tokio::test]
    async fn a_reader_gets_everything_from_its_place_on_and_then_nothing() {
        let session = session();
        let mut early = Reader::new(&session, 0);
        write(&session);
        let mut kinds = Vec::new();
        while let Some((place, sent)) = early.next().await {
            kinds.push((place, sent.kind));
        }
        assert_eq!(kinds.len(), 5);
        assert_eq!(kinds[0], (1, ChunkKind::Meta));
        assert_eq!(kinds[4], (5, ChunkKind::Error));
        for seq in 1..=3 {
            let mut late = Reader::new(&session, session.after_seq(seq).unwrap());
            let (place, _) = late.next().await.unwrap();
            assert_eq!(place as u64, seq + 2);
        }
        assert_eq!(session.after_seq(4), None);
    }

    // EXT-REC: the offset and the first six digits of the hash of `one two `.
    #[test]
    fn ext_rec_a_checkpoint_is_checked_against_the_text() {
        let session = session();
        write(&session);
        let at = |offset: u64, hash: &str| Checkpoint { offset, hash: hash.to_owned() };
        let hash = hex(&Sha256::digest("one two ")[..3]);
        assert!(session.agrees(2, &at(8, &hash)));
        assert!(!session.agrees(2, &at(7, &hash)));
        assert!(!session.agrees(2, &at(8, "000000")));
        assert!(!session.agrees(3, &at(8, &hash)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_abandoned_only_after_its_grace() {
        let session = session();
        let reader = Reader::new(&session, 0);
        let started = tokio::time::Instant::now();
        let waiting = tokio::spawn({
            let session = Arc::clone(&session);
            async move { session.abandoned(Duration::from_secs(30)).await }
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(reader);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let back = Reader::new(&session, 0);
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert!(!waiting.is_finished());
        drop(back);
        waiting.await.unwrap();
        assert_eq!(started.elapsed(), Duration::from_secs(340));
    }

    #[test]
    fn sessions_belong_to_who_opened_them_and_are_forgotten() {
        let sessions = Sessions::default();
        let session = session();
        sessions.insert(&session);
        let id = session.id.as_str();
        assert!(sessions.get(id, "anna").is_some() && sessions.get(id, "bert").is_none());
        sessions.sweep(Duration::ZERO);
        assert!(sessions.get(id, "anna").is_some(), "a stream that goes on is not forgotten");
        write(&session);
        assert_eq!(sessions.open(), 0);
        sessions.sweep(Duration::ZERO);
        assert!(sessions.get(id, "anna").is_none());
    }
}
