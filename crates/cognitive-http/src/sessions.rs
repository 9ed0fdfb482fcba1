//! All streams that can be resumed, each by its owner only. Ended streams are kept for a while, within a memory limit
//! for all of them. Running streams are never evicted. All streams together also have a memory limit. Above it,
//! chunks that were already read are dropped first. Then the streams whose readers are furthest behind are ended.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cognitive_contract::Failure;
use cognitive_contract::lock::Lock;

use crate::session::Session;

/// The largest log that is stored after its stream has ended (S-16), in bytes. Larger ones would evict the logs of
/// many other clients.
const MAX_SIZE: usize = 1 << 20;
/// The memory for the logs of all ended streams, in bytes. Under load the oldest are evicted before their time.
const KEPT: usize = 64 << 20;
/// The memory of a stream besides its log, in bytes.
const OVERHEAD: usize = 1 << 10;

/// Streams below this size are not relieved or ended: they would free too little.
const SMALL: usize = 64 << 10;
/// The number of streams above which dropped ones are removed from the list.
const MANY: usize = 64;

/// The memory of all streams together: their logs and the data of their runs.
#[derive(Debug, Default)]
pub(crate) struct Burden {
    held: AtomicUsize,
    /// The part of it held by runs that were asked to end; they release it soon.
    leaving: AtomicUsize,
}

/// The memory of one stream.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct StreamWeight {
    pub(crate) held: usize,
    pub(crate) leaving: usize,
}

impl Burden {
    /// Replaces the share of one stream.
    pub(crate) fn change(&self, before: StreamWeight, after: StreamWeight) {
        // The difference wraps when a share shrinks; the sum stays correct.
        self.held.fetch_add(after.held.wrapping_sub(before.held), Ordering::Relaxed);
        self.leaving.fetch_add(after.leaving.wrapping_sub(before.leaving), Ordering::Relaxed);
    }

    fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The memory of streams that were not asked to end.
    fn lasting_bytes(&self) -> usize {
        self.held_bytes().saturating_sub(self.leaving.load(Ordering::Relaxed))
    }
}

/// All streams that can be resumed.
#[derive(Debug)]
pub(crate) struct Sessions {
    known: Lock<SessionTable>,
    /// The limit for all ended streams, in bytes.
    most: usize,
    pub(crate) burden: Arc<Burden>,
    /// The limit for all streams, in bytes.
    most_together: usize,
    /// All streams that are still referenced, including those that cannot be resumed.
    alive: Lock<Vec<Weak<Session>>>,
}

#[derive(Debug, Default)]
struct SessionTable {
    by_id: HashMap<String, Arc<Session>>,
    /// Ended streams, oldest first.
    ended: VecDeque<EndedStream>,
    bytes: usize,
}

#[derive(Debug)]
struct EndedStream {
    at: Instant,
    id: String,
    bytes: usize,
}

impl Sessions {
    /// Creates an empty set of streams with a limit for all of them, in bytes.
    pub(crate) fn new(most_together: usize) -> Self {
        let (known, burden, alive) = (Lock::default(), Arc::default(), Lock::default());
        Self { known, most: KEPT, burden, most_together, alive }
    }

    /// Returns whether there is too little memory for one more stream.
    pub(crate) fn is_full(&self) -> bool {
        self.burden.held_bytes() > self.most_together.saturating_sub(SMALL)
    }

    /// Reduces the memory of all streams to below its limit. Returns at once if it is below, or if enough streams are
    /// ending.
    pub(crate) fn relieve(&self) {
        if self.burden.lasting_bytes() <= self.most_together {
            return;
        }
        // One caller at a time is enough.
        let Some(alive) = self.alive.try_lock() else { return };
        let alive: Vec<Arc<Session>> = alive.iter().filter_map(Weak::upgrade).collect();
        // Free a little more than needed, so that the next chunk does not trigger this again.
        let enough = self.most_together - self.most_together / 8;
        let mut loads: Vec<_> = alive.iter().map(|session| (session.load(), session)).collect();
        loads.sort_by_key(|((_, taken), _)| std::cmp::Reverse(*taken));
        for ((_, taken), session) in &loads {
            if *taken < SMALL || self.burden.lasting_bytes() <= enough {
                break;
            }
            session.drop_read();
        }
        loads.sort_by_key(|((behind, _), _)| std::cmp::Reverse(*behind));
        for ((behind, _), session) in &loads {
            if *behind < SMALL || self.burden.lasting_bytes() <= enough {
                break;
            }
            session.give_up();
        }
    }

    pub(crate) fn insert(&self, session: &Arc<Session>) {
        let mut alive = self.alive.lock();
        if alive.len() >= MANY && alive.len() == alive.capacity() {
            alive.retain(|session| session.strong_count() > 0);
        }
        alive.push(Arc::downgrade(session));
        drop(alive);
        self.known.lock().by_id.insert(session.id.as_str().to_owned(), Arc::clone(session));
    }

    /// Returns a stream of this client and module. Streams of other clients do not exist for it.
    pub(crate) fn get(&self, id: &str, owner: &str, module: &str) -> Option<Arc<Session>> {
        self.find(id, owner).filter(|session| session.module == module)
    }

    /// Returns a stream of this client, of any module.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Option<Arc<Session>> {
        self.known.lock().by_id.get(id).filter(|session| session.owner == owner).cloned()
    }

    /// Returns the stream with this id that runs on this server, for any owner: the server that received the request
    /// has already checked the owner.
    pub(crate) fn local_stream(&self, id: &str) -> Option<Arc<Session>> {
        self.known.lock().by_id.get(id).filter(|session| !session.is_followed()).cloned()
    }

    /// The number of running streams.
    pub(crate) fn open(&self) -> usize {
        let known = self.known.lock();
        known.by_id.len().saturating_sub(known.ended.len())
    }

    /// Records that a stream has ended.
    pub(crate) fn record_end(&self, session: &Session, keep: Duration) {
        let id = session.id.as_str().to_owned();
        let log = session.bytes();
        let mut known = self.known.lock();
        if log > MAX_SIZE || keep.is_zero() {
            known.by_id.remove(&id);
            return;
        }
        let bytes = log + OVERHEAD;
        known.bytes += bytes;
        known.ended.push_back(EndedStream { at: Instant::now(), id, bytes });
        while known.bytes > self.most {
            known.forget_oldest();
        }
    }

    /// Cancels all streams that are still running.
    pub(crate) fn cancel_all(&self, reason: &Failure) {
        for session in self.known.lock().by_id.values() {
            session.cancel(reason.clone());
        }
    }

    /// Evicts streams that ended longer than `keep` ago.
    pub(crate) fn sweep(&self, keep: Duration) {
        let mut known = self.known.lock();
        while known.ended.front().is_some_and(|oldest| oldest.at.elapsed() >= keep) {
            known.forget_oldest();
        }
    }
}

impl SessionTable {
    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.ended.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            self.by_id.remove(&oldest.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::stream::{ChunkWriter, SessionId};
    use cognitive_contract::{ErrorCode, Failure};

    use super::*;
    use crate::request::Place;
    use crate::session::Reader;

    const MINUTE: Duration = Duration::from_mins(1);

    fn session(sessions: &Sessions, number: u128) -> Arc<Session> {
        let id = SessionId::from_random(number);
        let session = Session::new(id, "anna", "words", true, &sessions.burden);
        sessions.insert(&session);
        session
    }

    /// Ends a stream with a log of about this many bytes.
    fn end(sessions: &Sessions, session: &Session, bytes: usize) {
        let mut writer = ChunkWriter::new(session.id.clone(), 0);
        writer.text("data.text", &"x".repeat(bytes)).into_iter().for_each(|chunk| session.push(chunk));
        let failure = Failure::new(ErrorCode::StreamInterrupted, "m");
        writer.finish(failure.into_envelope()).into_iter().for_each(|chunk| session.push(chunk));
        sessions.record_end(session, MINUTE);
    }

    #[test]
    fn sessions_belong_to_who_opened_them_and_are_forgotten() {
        let sessions = Sessions::new(1 << 30);
        let session = session(&sessions, 1);
        let id = session.id.as_str();
        let found = |owner: &str, module: &str| sessions.get(id, owner, module).is_some();
        assert!(found("anna", "words") && !found("bert", "words") && !found("anna", "other"));
        sessions.sweep(Duration::ZERO);
        assert!(found("anna", "words"), "a stream that goes on is not forgotten");
        assert_eq!(sessions.open(), 1);
        end(&sessions, &session, 10);
        assert_eq!(sessions.open(), 0);
        sessions.sweep(MINUTE);
        assert!(found("anna", "words"));
        sessions.sweep(Duration::ZERO);
        assert!(!found("anna", "words"));
    }

    // S-16: at most 1 MiB each, and a limit for all of them together.
    #[test]
    fn what_ended_is_kept_within_bounds() {
        let sessions = Sessions { most: 4 << 20, ..Sessions::new(1 << 30) };
        let large = session(&sessions, 1);
        end(&sessions, &large, MAX_SIZE);
        assert!(sessions.get(large.id.as_str(), "anna", "words").is_none());
        for number in 2..20 {
            let session = session(&sessions, number);
            end(&sessions, &session, MAX_SIZE / 2);
            assert!(sessions.known.lock().bytes <= sessions.most);
            assert!(sessions.get(session.id.as_str(), "anna", "words").is_some(), "the newest is there");
        }
        let known = sessions.known.lock();
        assert_eq!(known.by_id.len(), 7);
        assert_eq!(known.by_id.len(), known.ended.len());
    }

    // S2: all streams together have a limit. Streams without readers are ended; a reader that keeps up loses nothing.
    #[tokio::test]
    async fn all_streams_share_a_memory_and_the_slowest_give_it_back() {
        let most = 8 << 20;
        let sessions = Sessions::new(most);
        let watched = session(&sessions, 1_000);
        let mut quick = Reader::new(&watched, 0);
        let streams: Vec<_> = (0..20).map(|number| session(&sessions, number)).collect();
        let mut slow: Vec<_> = streams.iter().map(|session| Reader::new(session, 0)).collect();
        let mut writers: Vec<_> =
            streams.iter().map(|session| ChunkWriter::new(session.id.clone(), 0)).collect();
        let mut writer = ChunkWriter::new(watched.id.clone(), 0);
        let piece = "x".repeat(10_000);
        let mut heard = 0;
        for _ in 0..100 {
            for (session, writer) in streams.iter().zip(&mut writers) {
                writer.text("data.text", &piece).into_iter().for_each(|chunk| session.push(chunk));
                sessions.relieve();
            }
            // Runs that were asked to end do so.
            for (session, writer) in
                streams.iter().zip(&mut writers).filter(|(session, _)| session.weight().leaving > 0)
            {
                let failure = session.wait_for_cancellation().await.unwrap();
                writer.finish(failure.into_envelope()).into_iter().for_each(|chunk| session.push(chunk));
            }
            assert!(sessions.burden.held_bytes() <= most, "{}", sessions.burden.held_bytes());
            for chunk in writer.text("data.text", "y") {
                watched.push(chunk);
                let (_, sent) = quick.next().await.unwrap();
                heard += usize::from(sent.envelope.is_none());
            }
        }
        assert_eq!(heard, 101, "the opening and each delta");
        let mut told = 0;
        for reader in &mut slow {
            let (_, sent) = reader.next().await.unwrap();
            told += usize::from(sent.envelope.is_some_and(|last| last.error().unwrap().code() == "E2010"));
        }
        assert!(told > 12, "{told}");
        drop((streams, slow, watched, quick));
        sessions.known.lock().by_id.clear();
        assert_eq!(sessions.burden.held_bytes(), 0, "all of it came back");
    }

    // S2: a run that was asked to end holds its answer until it has ended; no other stream is ended because of that.
    #[tokio::test]
    async fn a_run_counts_until_it_has_ended() {
        let sessions = Sessions::new(1 << 20);
        let streams = [session(&sessions, 1), session(&sessions, 2)];
        let _readers = streams.each_ref().map(|session| Reader::new(session, 0));
        let mut writers = streams.each_ref().map(|session| ChunkWriter::new(session.id.clone(), 0));
        for (session, (writer, bytes)) in streams.iter().zip(writers.iter_mut().zip([200_000, 100_000])) {
            writer.text("data.text", &"x".repeat(bytes)).into_iter().for_each(|chunk| session.push(chunk));
        }
        sessions.relieve();
        assert!(
            streams[0].weight().leaving >= 800_000 && streams[1].weight().leaving == 0,
            "the one that is further behind"
        );
        assert!(
            sessions.burden.held_bytes() > 1 << 20 && sessions.is_full(),
            "it has not given anything back yet"
        );
        let before = sessions.burden.held_bytes();
        writers[0].text("data.text", "more").into_iter().for_each(|chunk| streams[0].push(chunk));
        sessions.relieve();
        assert_eq!(streams[1].weight().leaving, 0, "nobody else goes for it");
        assert!(sessions.burden.held_bytes() <= before + RUN_OF_MORE, "and what it still says is not kept");
        let failure = Failure::new(ErrorCode::StreamInterrupted, "m").into_envelope();
        writers[0].finish(failure).into_iter().for_each(|chunk| streams[0].push(chunk));
        assert!(sessions.burden.held_bytes() < 1 << 20 && !sessions.is_full());
    }

    /// The memory that a run holds for the four letters of `more`.
    const RUN_OF_MORE: usize = 16;

    // S2: chunks that were read are dropped before any stream is ended.
    #[tokio::test]
    async fn what_was_read_goes_before_those_who_read() {
        let sessions = Sessions::new(1 << 20);
        let session = session(&sessions, 1);
        let mut reader = Reader::new(&session, 0);
        let mut writer = ChunkWriter::new(session.id.clone(), 0);
        // The text counts four times for the run, so the log has to shrink.
        for _ in 0..22 {
            for chunk in writer.text("data.text", &"x".repeat(10_000)) {
                session.push(chunk);
                sessions.relieve();
                let (_, sent) = reader.next().await.unwrap();
                assert!(sent.envelope.is_none(), "who keeps up is never cut off");
            }
        }
        assert!(session.resume(&Place::Chunks(1, None)).is_none(), "what was read is not kept");
        assert!(session.resume(&Place::Chunks(22, None)).is_some());
        assert!(!sessions.is_full());
    }
}
