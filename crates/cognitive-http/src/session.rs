//! One stream and its log, from which a client that lost its connection resumes exactly where it stopped. Starts no
//! model call and knows no transport. The log is bounded: a client that reads too slowly gets an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use cognitive_contract::code::Blame;
use cognitive_contract::lock::Lock;
use cognitive_contract::stream::{Chunk, ChunkWriter, SessionId};
use cognitive_contract::{ErrorCode, Failure};
use tokio::sync::watch;

use crate::request::Place;
use crate::sessions::{Burden, StreamWeight};
use crate::stream_log::{Log, SentChunk};

/// The readers of one stream at once: one client, and dead connections of it that are not yet detected.
const READERS: usize = 4;
/// One stream.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The client that owns the stream; only it may resume.
    pub(crate) owner: String,
    pub(crate) module: String,
    /// Set if the stream can be resumed.
    kept: bool,
    /// Set if another server sent the stream and died before its end.
    cut_off: AtomicBool,
    /// Set if another server runs the stream and this one only follows it.
    followed: AtomicBool,
    log: Lock<Log>,
    /// Its share of the memory of all streams.
    weight: Lock<StreamWeight>,
    burden: Arc<Burden>,
    /// The number of chunks; readers wait for it to grow.
    length: watch::Sender<usize>,
    /// The number of readers.
    readers: watch::Sender<usize>,
    /// Set when the run has to stop, with the reason.
    cancelled: watch::Sender<Option<Failure>>,
}

/// The position at which a client resumes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resumption {
    pub(crate) from: usize,
    pub(crate) next_seq: u64,
    /// True if this is the position that the client reported; otherwise the stream starts again.
    pub(crate) agreed: bool,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        owner: &str,
        module: &str,
        kept: bool,
        burden: &Arc<Burden>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            owner: owner.to_owned(),
            module: module.to_owned(),
            kept,
            cut_off: AtomicBool::new(false),
            followed: AtomicBool::new(false),
            log: Lock::default(),
            weight: Lock::default(),
            burden: Arc::clone(burden),
            length: watch::Sender::new(0),
            readers: watch::Sender::new(0),
            cancelled: watch::Sender::new(None),
        })
    }

    /// Adds a chunk and wakes waiting readers.
    pub(crate) fn push(&self, chunk: Chunk) {
        let mut log = self.log.lock();
        let chunk = log.complete(chunk, self.kept);
        let Some(length) = log.add(&chunk) else { return };
        self.weigh(&log);
        drop(log);
        self.length.send_replace(length);
    }

    /// Records that the server of the stream died before its end.
    pub(crate) fn set_cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
    }

    /// Returns whether the server of the stream died before its end.
    pub(crate) fn was_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Records that another server runs the stream.
    pub(crate) fn set_followed(&self) {
        self.followed.store(true, Ordering::Relaxed);
    }

    /// Returns whether another server runs the stream, so that it cannot be cancelled here.
    pub(crate) fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Relaxed)
    }

    /// Adds a chunk of another server unchanged.
    pub(crate) fn adopt(&self, sent: SentChunk) {
        let mut log = self.log.lock();
        let length = log.adopt(sent);
        self.weigh(&log);
        drop(log);
        self.length.send_replace(length);
    }

    fn weigh(&self, log: &Log) {
        let mut weight = self.weight.lock();
        let before = std::mem::replace(&mut *weight, log.weight());
        self.burden.change(before, *weight);
    }

    /// Returns its share of the memory of all streams.
    #[cfg(test)]
    pub(crate) fn weight(&self) -> StreamWeight {
        *self.weight.lock()
    }

    /// Returns the bytes that no reader has read yet, and the bytes that were read.
    pub(crate) fn load(&self) -> (usize, usize) {
        let log = self.log.lock();
        (log.behind, log.bytes - log.behind)
    }

    /// Drops the chunks that were read. A client that lost its connection cannot resume before them.
    pub(crate) fn drop_read(&self) {
        let mut log = self.log.lock();
        log.drop_read();
        self.weigh(&log);
    }

    /// Ends a stream whose readers are too far behind: they get an error, and the run is cancelled.
    pub(crate) fn give_up(&self) {
        let mut log = self.log.lock();
        log.forget_all();
        self.weigh(&log);
        let ended = log.ended;
        drop(log);
        if !ended {
            self.cancel(slow_reader());
        }
    }

    /// Returns the length of the text that the run has produced so far.
    pub(crate) fn text(&self) -> usize {
        self.log.lock().text
    }

    /// Returns whether the last chunk was sent.
    pub(crate) fn has_ended(&self) -> bool {
        self.log.lock().ended
    }

    /// Returns the memory of the log.
    pub(crate) fn bytes(&self) -> usize {
        self.log.lock().bytes
    }

    /// Asks the run to stop for this reason.
    pub(crate) fn cancel(&self, reason: Failure) {
        self.cancelled.send_replace(Some(reason));
    }

    /// Waits until the run is asked to stop.
    pub(crate) async fn wait_for_cancellation(&self) -> Option<Failure> {
        let mut cancelled = self.cancelled.subscribe();
        cancelled.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone())
    }

    /// Waits until the stream has had no reader for `grace`.
    pub(crate) async fn wait_for_abandonment(&self, grace: Duration) {
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

    /// Returns the position for a client that left off at `place`; `None` if that part is no longer stored (EXT-REC).
    pub(crate) fn resume(&self, place: &Place) -> Option<Resumption> {
        let log = self.log.lock();
        let found = log.find(place);
        let from = found.unwrap_or_else(|| log.beginning());
        (from >= log.gone).then(|| Resumption { from, next_seq: log.next_seq(from), agreed: found.is_some() })
    }

    /// Returns whether the stream has as many readers as one client can need.
    pub(crate) fn is_crowded(&self) -> bool {
        *self.readers.borrow() >= READERS
    }
}

/// A reader of a stream from some position on. It counts as a listener of the stream until it is dropped.
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
        // A reader that already has the last chunk has nothing to wait for.
        let log = session.log.lock();
        let ended = log.ended && from >= log.length();
        drop(log);
        Self { session: Arc::clone(session), next: from, length: session.length.subscribe(), ended }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Returns the next chunk and its position in the log, from 1; `None` after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<(usize, SentChunk)> {
        if self.ended {
            return None;
        }
        let sent = self.peek().await?;
        self.session.log.lock().record_read(self.next);
        self.next += 1;
        self.ended = sent.kind.is_terminal();
        Some((self.next, sent))
    }

    /// Returns the next chunk without consuming it.
    pub(crate) async fn peek(&mut self) -> Option<SentChunk> {
        let wanted = self.next;
        self.length.wait_for(|length| *length > wanted).await.ok()?;
        let sent = self.session.log.lock().get(wanted).cloned();
        sent.or_else(|| too_slow(&self.session.id))
    }
}

/// A reader that only forwards chunks to other servers. It does not count as a listener, and its chunks do not count
/// as read.
#[derive(Debug)]
pub(crate) struct SilentReader {
    session: Arc<Session>,
    next: usize,
    length: watch::Receiver<usize>,
    ended: bool,
}

impl SilentReader {
    pub(crate) fn new(session: &Arc<Session>) -> Self {
        Self { session: Arc::clone(session), next: 0, length: session.length.subscribe(), ended: false }
    }

    /// Returns new chunks, at most `most` and at least one; none after the last.
    pub(crate) async fn next_chunks(&mut self, most: usize) -> Vec<SentChunk> {
        let wanted = self.next;
        if self.ended || self.length.wait_for(|length| *length > wanted).await.is_err() {
            return Vec::new();
        }
        let log = self.session.log.lock();
        let chunks: Vec<SentChunk> =
            (wanted..log.length()).take(most).map_while(|place| log.get(place)).cloned().collect();
        drop(log);
        self.next += chunks.len();
        self.ended = chunks.last().is_some_and(|sent| sent.kind.is_terminal());
        chunks
    }
}

/// Returns the last chunk for a reader whose next chunk was dropped.
fn too_slow(id: &SessionId) -> Option<SentChunk> {
    let chunks = ChunkWriter::new(id.clone(), 0).finish(slow_reader().into_envelope());
    chunks.into_iter().next_back().as_ref().and_then(|last| SentChunk::new(last, &mut BytesMut::new()))
}

fn slow_reader() -> Failure {
    Failure::new(ErrorCode::StreamInterrupted, "the client reads too slowly")
        .with_blame(Blame::Runtime)
        .suggest("Read faster, or request one envelope")
}

impl Drop for Session {
    fn drop(&mut self) {
        let weight = self.weight.get_mut();
        self.burden.change(*weight, StreamWeight::default());
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.readers.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::stream::{Checkpoint, ChunkKind};
    use cognitive_contract::text::hex;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::stream_log::MAX_SIZE;

    fn session() -> Arc<Session> {
        Session::new(SessionId::from_random(1), "anna", "words", true, &Arc::default())
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
            let Resumption { from, next_seq, agreed } = session.resume(&Place::Chunks(seq, None)).unwrap();
            assert!(agreed && next_seq == seq + 1);
            let (place, _) = Reader::new(&session, from).next().await.unwrap();
            assert_eq!(place as u64, seq + 2);
        }
    }

    // EXT-REC: an unknown position is treated like a wrong checkpoint: no chunk is skipped and no client waits for
    // ever.
    #[test]
    fn ext_rec_a_place_that_never_was_starts_the_stream_again() {
        let session = session();
        write(&session);
        let again = Resumption { from: 1, next_seq: 1, agreed: false };
        for place in [
            Place::Chunks(4, None),
            Place::Chunks(u64::MAX, None),
            Place::Events(6),
            Place::Events(usize::MAX),
        ] {
            assert_eq!(session.resume(&place).as_ref(), Some(&again), "{place:?}");
        }
        let none_seen = Resumption { agreed: true, ..again };
        assert_eq!(session.resume(&Place::Events(0)), Some(none_seen), "one opening is enough");
        let at_the_end = session.resume(&Place::Events(5)).unwrap();
        assert_eq!((at_the_end.from, at_the_end.next_seq), (5, 4));
    }

    #[tokio::test]
    async fn a_log_is_bounded_and_who_reads_too_slowly_is_told() {
        let session = session();
        let mut slow = Reader::new(&session, 0);
        let mut writer = ChunkWriter::new(session.id.clone(), 0);
        let piece = "x".repeat(1 << 20);
        for _ in 0..20 {
            writer.text("data.rationale", &piece).into_iter().for_each(|chunk| session.push(chunk));
            assert!(session.bytes() <= MAX_SIZE);
        }
        let (_, sent) = slow.next().await.unwrap();
        assert_eq!(sent.envelope.unwrap().error().unwrap().code(), "E2010");
        assert!(slow.next().await.is_none());
        assert_eq!(session.resume(&Place::Chunks(1, None)), None, "what is gone is not made up");
        assert!(session.resume(&Place::Chunks(19, None)).unwrap().agreed);
    }

    // EXT-REC: an error that may be temporary reports the position of the stream and when to retry.
    #[tokio::test]
    async fn ext_rec_an_error_chunk_says_how_to_recover() {
        let last = async |kept: bool| {
            let session = Session::new(SessionId::from_random(1), "anna", "words", kept, &Arc::default());
            write(&session);
            let (_, sent) = Reader::new(&session, 4).next().await.unwrap();
            serde_json::from_slice::<serde_json::Value>(&sent.json).unwrap()
        };
        let recovery = &last(true).await["error"]["recovery"];
        assert_eq!(recovery["last_seq"], 3);
        assert_eq!(recovery["last_checkpoint"]["offset"], 13);
        assert_eq!((&recovery["retry_after_ms"], &recovery["max_retries"]), (&1_000.into(), &3.into()));
        assert!(last(false).await["error"].get("recovery").is_none(), "nothing is promised that is not kept");
    }

    // EXT-REC: the offset and the first six digits of the hash of `one two `.
    #[test]
    fn ext_rec_a_checkpoint_is_checked_against_the_text() {
        let session = session();
        write(&session);
        let at = |seq: u64, offset: u64, hash: &str| {
            let checkpoint = Checkpoint { offset, hash: hash.to_owned() };
            session.resume(&Place::Chunks(seq, Some(checkpoint))).unwrap().agreed
        };
        let hash = hex(&Sha256::digest("one two ")[..3]);
        assert!(at(2, 8, &hash));
        assert!(!at(2, 7, &hash) && !at(2, 8, "000000") && !at(3, 8, &hash));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_abandoned_only_after_its_grace() {
        let session = session();
        let reader = Reader::new(&session, 0);
        let started = tokio::time::Instant::now();
        let waiting = tokio::spawn({
            let session = Arc::clone(&session);
            async move { session.wait_for_abandonment(Duration::from_secs(30)).await }
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
}
