//! A context store in memory. Bounded like the one on disk: the oldest entry is evicted first, expired ones on
//! access. Reads no clock, and returns no context of another owner.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use cognitive_contract::context::{Caps, ContextEntry, ContextFilter, Owner, Ttl};
use cognitive_contract::ports::ContextStore;

use super::lock;

/// A store in memory. Safe to share.
#[derive(Debug, Default)]
pub struct MemoryContext {
    caps: Caps,
    // The oldest first.
    kept: Mutex<VecDeque<OwnedEntry>>,
}

#[derive(Debug)]
struct OwnedEntry {
    owner: Owner,
    entry: ContextEntry,
    bytes: usize,
}

impl OwnedEntry {
    fn is(&self, owner: &Owner, kind: &str, key: &str) -> bool {
        self.owner == *owner && self.entry.kind == kind && self.entry.key.text == key
    }
}

impl MemoryContext {
    /// A store with other limits than the default.
    #[must_use]
    pub fn with_caps(caps: Caps) -> Self {
        Self { caps, kept: Mutex::default() }
    }

    /// Returns the stored entries, after it has removed expired ones.
    fn live(&self, now: SystemTime) -> MutexGuard<'_, VecDeque<OwnedEntry>> {
        let mut kept = lock(&self.kept);
        kept.retain(|each| each.entry.is_live(now));
        kept
    }
}

impl ContextStore for MemoryContext {
    fn get(
        &self,
        owner: &Owner,
        kind: &str,
        key: &str,
        now: SystemTime,
    ) -> Result<Option<ContextEntry>, String> {
        let kept = self.live(now);
        Ok(kept.iter().find(|each| each.is(owner, kind, key)).map(|each| each.entry.clone()))
    }

    fn put(&self, owner: &Owner, entry: &ContextEntry, now: SystemTime) -> Result<(), String> {
        if entry.ttl == Ttl::Request {
            return Ok(());
        }
        let bytes = self.caps.weigh(owner, entry, entry.value.to_string().len())?;
        let mut kept = self.live(now);
        kept.retain(|each| !each.is(owner, &entry.kind, &entry.key.text));
        kept.push_back(OwnedEntry { owner: owner.clone(), entry: entry.clone(), bytes });
        let mut total: usize = kept.iter().map(|each| each.bytes).sum();
        while kept.len() > self.caps.entries.max(1) || total > self.caps.bytes {
            let Some(oldest) = kept.pop_front() else { break };
            total -= oldest.bytes;
        }
        Ok(())
    }

    fn list(
        &self,
        owner: &Owner,
        filter: ContextFilter<'_>,
        now: SystemTime,
    ) -> Result<Vec<ContextEntry>, String> {
        let kept = self.live(now);
        let meant = kept.iter().rev().filter(|each| each.owner == *owner && filter.means(&each.entry));
        Ok(meant.map(|each| each.entry.clone()).collect())
    }

    fn remove(&self, owner: &Owner, kind: &str, key: &str) -> Result<bool, String> {
        let mut kept = lock(&self.kept);
        let before = kept.len();
        kept.retain(|each| !each.is(owner, kind, key));
        Ok(kept.len() < before)
    }

    fn gc(&self, now: SystemTime) -> Result<u64, String> {
        let mut kept = lock(&self.kept);
        let before = kept.len();
        kept.retain(|each| each.entry.is_live(now));
        Ok((before - kept.len()) as u64)
    }
}
