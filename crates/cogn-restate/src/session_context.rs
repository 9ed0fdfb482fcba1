//! The context of one session during a run: the state of its virtual object, and the entries that the run
//! stores. Writes nothing to the server: new entries go into the steps of the run, and from there into the
//! state. A session has one owner, so lookups ignore the owner.

use std::time::SystemTime;

use cognitive_contract::context::{Caps, ContextEntry, ContextFilter, Owner, Ttl};
use cognitive_contract::lock::Lock;
use cognitive_contract::ports::ContextStore;

use crate::steps::KeptEntry;

/// The limits of a session, because all of its context is loaded for every run.
const CAPS: Caps = Caps { entries: 100, bytes: 1 << 20 };

/// The context of one session.
#[derive(Default)]
pub(crate) struct SessionContext(Lock<SessionState>);

#[derive(Default)]
struct SessionState {
    /// The entries, oldest first.
    kept: Vec<ContextEntry>,
    /// The entries stored since the last [`SessionContext::take_written`].
    written: Vec<KeptEntry>,
}

impl SessionContext {
    /// Loads the context from the state of a session.
    pub(crate) fn new(state: &[KeptEntry]) -> Self {
        let kept = state.iter().filter_map(KeptEntry::entry).collect();
        Self(Lock::new(SessionState { kept, written: Vec::new() }))
    }

    /// Takes the entries stored since the last call.
    pub(crate) fn take_written(&self) -> Vec<KeptEntry> {
        std::mem::take(&mut self.0.lock().written)
    }

    /// Stores the entries of a process that died again. They are already part of a step.
    pub(crate) fn restore_entries(&self, entries: &[KeptEntry]) {
        let mut state = self.0.lock();
        for entry in entries.iter().filter_map(KeptEntry::entry) {
            state.keep(entry);
        }
    }
}

impl SessionState {
    fn keep(&mut self, entry: ContextEntry) {
        self.kept.retain(|other| !(other.kind == entry.kind && other.key.text == entry.key.text));
        self.kept.push(entry);
    }
}

/// Returns the state of a session after a run: the newest entry of each name, within the limits, oldest
/// first.
pub(crate) fn merged_state(state: Vec<KeptEntry>, written: &[KeptEntry]) -> Vec<KeptEntry> {
    let mut all = state;
    for entry in written {
        all.retain(|other| !entry.replaces(other));
        all.push(entry.clone());
    }
    let weight = |entry: &KeptEntry| serde_json::to_string(entry).map_or(0, |text| text.len());
    let mut total: usize = all.iter().map(weight).sum();
    let mut from = 0;
    for entry in &all {
        if all.len() - from <= CAPS.entries && total <= CAPS.bytes {
            break;
        }
        total -= weight(entry);
        from += 1;
    }
    all.split_off(from)
}

impl ContextStore for SessionContext {
    fn get(&self, _: &Owner, kind: &str, key: &str, now: SystemTime) -> Result<Option<ContextEntry>, String> {
        let state = self.0.lock();
        let found = state.kept.iter().find(|entry| entry.kind == kind && entry.key.text == key);
        Ok(found.filter(|entry| entry.is_live(now)).cloned())
    }

    fn put(&self, owner: &Owner, entry: &ContextEntry, _: SystemTime) -> Result<(), String> {
        if entry.ttl == Ttl::Request {
            return Ok(());
        }
        CAPS.weigh(owner, entry, entry.value.to_string().len())?;
        let mut state = self.0.lock();
        state.written.push(KeptEntry::from_entry(entry));
        state.keep(entry.clone());
        Ok(())
    }

    fn list(
        &self,
        _: &Owner,
        filter: ContextFilter<'_>,
        now: SystemTime,
    ) -> Result<Vec<ContextEntry>, String> {
        let state = self.0.lock();
        let meant = state.kept.iter().rev().filter(|entry| filter.means(entry) && entry.is_live(now));
        Ok(meant.cloned().collect())
    }

    fn remove(&self, _: &Owner, _: &str, _: &str) -> Result<bool, String> {
        Err("context of a session is deleted with the session".to_owned())
    }

    fn gc(&self, _: SystemTime) -> Result<u64, String> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cognitive_contract::context::Key;
    use serde_json::json;

    use super::*;

    fn entry(key: &str, value: u64) -> ContextEntry {
        let created = SystemTime::UNIX_EPOCH + Duration::from_secs(value);
        ContextEntry::new("state", Key::plain(key), json!(value), Ttl::Forever, created)
    }

    #[test]
    fn a_run_sees_the_state_and_what_it_kept_and_the_state_becomes_the_same() {
        let state = [KeptEntry::from_entry(&entry("a", 1)), KeptEntry::from_entry(&entry("b", 2))];
        let (context, owner, now) = (SessionContext::new(&state), Owner::default(), SystemTime::now());
        context.put(&owner, &entry("a", 3), now).unwrap();
        let seen = |context: &SessionContext| {
            let all = context.list(&owner, ContextFilter::default(), now).unwrap();
            all.into_iter().map(|entry| entry.value).collect::<Vec<_>>()
        };
        assert_eq!(seen(&context), [json!(3), json!(2)]);
        let written = context.take_written();
        assert!(written.len() == 1 && context.take_written().is_empty());
        let next = merged_state(state.to_vec(), &written);
        assert_eq!(seen(&SessionContext::new(&next)), [json!(3), json!(2)]);
        let again = SessionContext::new(&state);
        again.restore_entries(&written);
        assert!(seen(&again) == [json!(3), json!(2)] && again.take_written().is_empty());
    }

    #[test]
    fn a_session_is_bounded() {
        let many: Vec<KeptEntry> =
            (0..300).map(|n| KeptEntry::from_entry(&entry(&n.to_string(), n))).collect();
        let kept = merged_state(Vec::new(), &many);
        assert_eq!((kept.len(), kept.last()), (CAPS.entries, many.last()));
        let huge = ContextEntry::new(
            "s",
            Key::plain("k"),
            json!("x".repeat(2 << 20)),
            Ttl::Forever,
            SystemTime::now(),
        );
        assert!(SessionContext::default().put(&Owner::default(), &huge, SystemTime::now()).is_err());
    }
}
