//! Context between runs: one row per owner, type and key ([`keep`]), given out to its owner only ([`find`]).
//! What has expired is never given out, and goes as soon as somebody looks.

mod find;
mod keep;

use std::time::SystemTime;

use cognitive_contract::context::{ContextEntry, ContextFilter, Owner, Ttl};
use cognitive_contract::ports::ContextStore;
use rusqlite::Connection;

use crate::store::Store;
use crate::time;
use find::EntryQuery;
use keep::Weighed;

impl ContextStore for Store {
    fn get(
        &self,
        owner: &Owner,
        kind: &str,
        key: &str,
        now: SystemTime,
    ) -> Result<Option<ContextEntry>, String> {
        let moment = time::text(now);
        let found = self.of_context(|connection| {
            remove_expired(connection, &moment)?;
            find::one(connection, owner, kind, key, &moment)
        })?;
        // The columns know when it ends, and the law whether it was kept by a clock that was wrong.
        Ok(found.filter(|entry| entry.is_live(now)))
    }

    fn put(&self, owner: &Owner, entry: &ContextEntry, now: SystemTime) -> Result<(), String> {
        if entry.ttl == Ttl::Request {
            return Ok(());
        }
        let caps = self.caps();
        let entry = Weighed::of(owner, entry, caps)?;
        self.of_context(|connection| keep::keep(connection, &entry, caps, &time::text(now)))
    }

    fn list(
        &self,
        owner: &Owner,
        filter: ContextFilter<'_>,
        now: SystemTime,
    ) -> Result<Vec<ContextEntry>, String> {
        let moment = time::text(now);
        let mut found = self.of_context(|connection| {
            remove_expired(connection, &moment)?;
            find::all(connection, &EntryQuery { owner, filter, now: &moment })
        })?;
        found.retain(|entry| entry.is_live(now));
        Ok(found)
    }

    fn remove(&self, owner: &Owner, kind: &str, key: &str) -> Result<bool, String> {
        self.of_context(|connection| {
            let sql = "DELETE FROM context WHERE tenant = ?1 AND user = ?2 AND kind = ?3 AND key = ?4";
            let removed =
                connection.prepare_cached(sql)?.execute((owner.tenant(), owner.name(), kind, key))?;
            Ok(removed > 0)
        })
    }

    fn gc(&self, now: SystemTime) -> Result<u64, String> {
        self.of_context(|connection| keep::remove_expired(connection, &time::text(now)))
    }
}

impl Store {
    fn of_context<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, String> {
        self.with(work).map_err(|error| error.to_string())
    }
}

/// Removes what has expired before something is read. Takes the lock of a writer only if there is something to remove,
/// and leaves a store that cannot be written as it is: what is read afterwards is checked anyway.
fn remove_expired(connection: &Connection, now: &str) -> rusqlite::Result<()> {
    let sql = "SELECT EXISTS (SELECT 1 FROM context WHERE ends <= ?1)";
    let some: bool = connection.prepare_cached(sql)?.query_row([now], |row| row.get(0))?;
    if some && !connection.is_readonly("main")? {
        keep::remove_expired(connection, now)?;
    }
    Ok(())
}
