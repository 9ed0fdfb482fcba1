//! The owners of MCP sessions. A session belongs to the client that opened it; for all others it does not exist. Each
//! client has a share of the sessions: above it, its own least recently used session ends, so that no client can keep
//! the others out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use cognitive_contract::lock::Lock;

/// The sessions of one client. An agent needs one; programs that share a key need some more.
const SHARE: usize = 200;
/// The sessions of all clients. Each holds a task and its queues.
const MOST: usize = 1_000;

/// The open sessions by id.
#[derive(Debug, Default)]
pub(crate) struct AgentSessions(Lock<HashMap<String, OwnedSession>>);

#[derive(Debug)]
struct OwnedSession {
    owner: Arc<str>,
    used: Instant,
}

impl AgentSessions {
    /// Records that a client uses a session. Returns false if the session belongs to another client.
    pub(crate) fn take(&self, id: &str, client: &str, now: Instant) -> bool {
        match self.0.lock().get_mut(id) {
            Some(session) if *session.owner != *client => false,
            Some(session) => {
                session.used = now;
                true
            }
            None => true,
        }
    }

    /// Records a new session, and forgets those that are not open any more. Returns the session to end, if the client
    /// has more than its share or all clients together have too many.
    pub(crate) fn insert(
        &self,
        id: &str,
        client: &Arc<str>,
        now: Instant,
        open: &HashSet<String>,
    ) -> Option<String> {
        let mut all = self.0.lock();
        all.retain(|id, _| open.contains(id));
        all.insert(id.to_owned(), OwnedSession { owner: Arc::clone(client), used: now });
        let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
        for session in all.values() {
            *counts.entry(Arc::clone(&session.owner)).or_default() += 1;
        }
        let owner = if counts.get(client).is_some_and(|count| *count > SHARE) {
            Arc::clone(client)
        } else if all.len() > MOST {
            counts.into_iter().max_by_key(|(_, count)| *count)?.0
        } else {
            return None;
        };
        let of_owner = all.iter().filter(|(_, session)| session.owner == owner);
        let oldest = of_owner.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone())?;
        all.remove(&oldest);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_client_with_too_many_sessions_ends_its_own() {
        let (sessions, start) = (AgentSessions::default(), Instant::now());
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let mut open = HashSet::new();
        let mut add = |id: String, owner: &Arc<str>, at: u64| {
            open.insert(id.clone());
            let ended = sessions.insert(&id, owner, start + Duration::from_millis(at), &open);
            ended.inspect(|ended| {
                open.remove(ended);
            })
        };
        assert_eq!(add("ann's".to_owned(), &ann, 0), None);
        for number in 0..SHARE {
            assert_eq!(add(format!("bob {number}"), &bob, number as u64 + 1), None);
        }
        assert!(sessions.take("bob 0", "bob", start + Duration::from_hours(1)));
        assert_eq!(add("one more".to_owned(), &bob, 999).as_deref(), Some("bob 1"), "the longest unused one");
        assert!(sessions.take("ann's", "ann", start) && !sessions.take("ann's", "bob", start));
        assert!(sessions.take("unknown", "bob", start), "the service answers for it");
    }

    #[test]
    fn many_clients_cannot_exceed_the_limit_of_all() {
        let (sessions, now) = (AgentSessions::default(), Instant::now());
        let mut open = HashSet::new();
        for number in 0..=MOST {
            let owner: Arc<str> = format!("client {}", number % 50).into();
            open.insert(number.to_string());
            let ended = sessions.insert(&number.to_string(), &owner, now, &open);
            assert_eq!(ended.is_some(), number == MOST, "{number}");
        }
    }
}
