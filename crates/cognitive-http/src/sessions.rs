//! All streams that can be taken up again, each by its owner alone. What ended is kept for a while and within a bound of
//! memory for all of them together; what goes on is never forgotten.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cognitive_contract::Failure;

use crate::session::Session;

/// The largest log that is kept after its end (S-16).
const LARGEST: usize = 1 << 20;
/// What all logs of ended streams may take together. Under load the oldest go before their time.
const KEPT: usize = 64 << 20;
/// What a stream takes besides its log.
const OVERHEAD: usize = 1 << 10;

/// All streams that can be taken up again.
#[derive(Debug)]
pub(crate) struct Sessions {
    known: Mutex<Known>,
    /// The bytes that all ended streams may take.
    most: usize,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { known: Mutex::default(), most: KEPT }
    }
}

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<String, Arc<Session>>,
    /// What ended, oldest first.
    ended: VecDeque<Ended>,
    bytes: usize,
}

#[derive(Debug)]
struct Ended {
    at: Instant,
    id: String,
    bytes: usize,
}

impl Sessions {
    pub(crate) fn insert(&self, session: &Arc<Session>) {
        self.lock().by_id.insert(session.id.as_str().to_owned(), Arc::clone(session));
    }

    /// A session of this client with this module. Those of others do not exist for it.
    pub(crate) fn get(&self, id: &str, owner: &str, module: &str) -> Option<Arc<Session>> {
        let known = self.lock();
        known.by_id.get(id).filter(|session| session.owner == owner && session.module == module).cloned()
    }

    /// How many streams are going on.
    pub(crate) fn open(&self) -> usize {
        let known = self.lock();
        known.by_id.len().saturating_sub(known.ended.len())
    }

    /// Takes note that a stream has said its last word.
    pub(crate) fn ended(&self, session: &Session, keep: Duration) {
        let id = session.id.as_str().to_owned();
        let log = session.bytes();
        let mut known = self.lock();
        if log > LARGEST || keep.is_zero() {
            known.by_id.remove(&id);
            return;
        }
        let bytes = log + OVERHEAD;
        known.bytes += bytes;
        known.ended.push_back(Ended { at: Instant::now(), id, bytes });
        while known.bytes > self.most {
            known.forget_oldest();
        }
    }

    /// Ends all streams that are still going on.
    pub(crate) fn cancel_all(&self, reason: &Failure) {
        for session in self.lock().by_id.values() {
            session.cancel(reason.clone());
        }
    }

    /// Forgets what ended longer than `keep` ago.
    pub(crate) fn sweep(&self, keep: Duration) {
        let mut known = self.lock();
        while known.ended.front().is_some_and(|oldest| oldest.at.elapsed() >= keep) {
            known.forget_oldest();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // A panic while the lock was held leaves at worst a stream that is kept too long.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
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

    const MINUTE: Duration = Duration::from_mins(1);

    fn session(sessions: &Sessions, number: u128) -> Arc<Session> {
        let session = Session::new(SessionId::from_random(number), "anna", "words", true);
        sessions.insert(&session);
        session
    }

    /// Ends a stream with a log of about so many bytes.
    fn end(sessions: &Sessions, session: &Session, bytes: usize) {
        let mut writer = ChunkWriter::new(session.id.clone(), 0);
        writer.text("data.text", &"x".repeat(bytes)).into_iter().for_each(|chunk| session.push(chunk));
        let failure = Failure::new(ErrorCode::StreamInterrupted, "m");
        writer.finish(failure.into_envelope()).into_iter().for_each(|chunk| session.push(chunk));
        sessions.ended(session, MINUTE);
    }

    #[test]
    fn sessions_belong_to_who_opened_them_and_are_forgotten() {
        let sessions = Sessions::default();
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

    // S-16: at most 1 MiB each, and a bound for all of them together.
    #[test]
    fn s_16_what_ended_is_kept_within_bounds() {
        let sessions = Sessions { most: 4 << 20, ..Sessions::default() };
        let large = session(&sessions, 1);
        end(&sessions, &large, LARGEST);
        assert!(sessions.get(large.id.as_str(), "anna", "words").is_none());
        for number in 2..20 {
            let session = session(&sessions, number);
            end(&sessions, &session, LARGEST / 2);
            assert!(sessions.lock().bytes <= sessions.most);
            assert!(sessions.get(session.id.as_str(), "anna", "words").is_some(), "the newest is there");
        }
        let known = sessions.lock();
        assert_eq!(known.by_id.len(), 7);
        assert_eq!(known.by_id.len(), known.ended.len());
    }
}
