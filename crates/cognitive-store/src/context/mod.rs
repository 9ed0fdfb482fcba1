//! Context between runs: one row per owner, type and key ([`keep`]), returned to its owner only ([`find`]).
//! Expired entries are never returned, and are removed at the next read.

mod find;
mod keep;

use std::time::SystemTime;

use cognitive_contract::context::{ContextEntry, ContextFilter, Owner, Ttl};
use cognitive_contract::ports::ContextStore;

use crate::error::Problem;
use crate::row_changes;
use crate::sql::{LockedArea, SqlSession, number, values};
use crate::store::Store;
use crate::time;
use find::EntryQuery;
use keep::EntryColumns;

impl ContextStore for Store {
    fn get(
        &self,
        owner: &Owner,
        kind: &str,
        key: &str,
        now: SystemTime,
    ) -> Result<Option<ContextEntry>, String> {
        let moment = time::text(now);
        let found = self.look(|session| {
            remove_expired(session, &moment)?;
            find::find_entry(session, owner, kind, key, &moment)
        });
        let found = found.map_err(|error| error.to_string())?;
        // The columns hold the end; `is_live` also checks for entries written with a wrong clock.
        Ok(found.filter(|entry| entry.is_live(now)))
    }

    fn put(&self, owner: &Owner, entry: &ContextEntry, now: SystemTime) -> Result<(), String> {
        if entry.ttl == Ttl::Request {
            return Ok(());
        }
        let caps = self.caps();
        let entry = EntryColumns::new(owner, entry, caps)?;
        let kept = self
            .change(&[LockedArea::Context], |session| keep::keep(session, &entry, caps, &time::text(now)));
        kept.map_err(|error| error.to_string())
    }

    fn list(
        &self,
        owner: &Owner,
        filter: ContextFilter<'_>,
        now: SystemTime,
    ) -> Result<Vec<ContextEntry>, String> {
        let moment = time::text(now);
        let found = self.look(|session| {
            remove_expired(session, &moment)?;
            find::find_for_owner(session, &EntryQuery { owner, filter, now: &moment })
        });
        let mut found = found.map_err(|error| error.to_string())?;
        found.retain(|entry| entry.is_live(now));
        Ok(found)
    }

    fn remove(&self, owner: &Owner, kind: &str, key: &str) -> Result<bool, String> {
        let of_key = "tenant = ?1 AND \"user\" = ?2 AND kind = ?3 AND key = ?4";
        let removed = self.change(&[LockedArea::Context], |session| {
            row_changes::delete_context(session, of_key, &values![owner.tenant(), owner.name(), kind, key])
        });
        removed.map(|removed| removed > 0).map_err(|error| error.to_string())
    }

    fn gc(&self, now: SystemTime) -> Result<u64, String> {
        let removed = self.look(|session| keep::remove_expired(session, &time::text(now)));
        removed.map_err(|error| error.to_string())
    }
}

/// Removes expired entries before a read. Takes the write lock only if there are any. Does nothing on a read-only
/// store: the entries are filtered after the read anyway.
fn remove_expired(session: &mut dyn SqlSession, now: &str) -> Result<(), Problem> {
    let sql = "SELECT EXISTS (SELECT 1 FROM context WHERE ends <= ?1)";
    let has_some = number(session, sql, &values![now])? != 0;
    if has_some && !session.is_read_only() {
        keep::remove_expired(session, now)?;
    }
    Ok(())
}
