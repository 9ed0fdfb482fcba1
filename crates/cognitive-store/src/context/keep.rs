//! Writes an entry and evicts the oldest ones, in one transaction, so the limits hold after every write.

use std::ops::ControlFlow;

use cognitive_contract::context::{Caps, ContextEntry, Owner};

use crate::error::Problem;
use crate::row_changes::{self, ProtectedTable};
use crate::sql::{SqlSession, first, values};
use crate::time;

/// An entry as columns, prepared before the lock is taken.
pub(super) struct EntryColumns<'a> {
    owner: &'a Owner,
    entry: &'a ContextEntry,
    created: String,
    ends: Option<String>,
    value: String,
    bytes: i64,
}

impl<'a> EntryColumns<'a> {
    /// Converts an entry. The error says why the entry is refused.
    pub(super) fn new(owner: &'a Owner, entry: &'a ContextEntry, caps: Caps) -> Result<Self, String> {
        let value = entry.value.to_string();
        let bytes = caps.weigh(owner, entry, value.len())?;
        Ok(Self {
            owner,
            entry,
            created: time::text(entry.created),
            ends: entry.ends().map(time::text),
            value,
            bytes: to_signed(bytes),
        })
    }
}

/// Converts to a signed integer, because databases have no unsigned ones.
fn to_signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn keep(
    session: &mut dyn SqlSession,
    entry: &EntryColumns<'_>,
    caps: Caps,
    now: &str,
) -> Result<(), Problem> {
    remove_expired(session, now)?;
    insert(session, entry)?;
    remove_oldest(session, caps)
}

/// Removes expired entries and returns their number.
pub(super) fn remove_expired(session: &mut dyn SqlSession, now: &str) -> Result<u64, Problem> {
    session.execute("DELETE FROM context WHERE ends <= ?1", &values![now])
}

/// Inserts an entry. One that replaces another gets a new id, so it counts as new.
fn insert(session: &mut dyn SqlSession, weighed: &EntryColumns<'_>) -> Result<(), Problem> {
    let sql = "INSERT INTO context
            (id, bytes, tenant, \"user\", kind, key, session, input_hash, module, ttl, created, ends, value, pattern)
         VALUES ((SELECT coalesce(max(id), 0) + 1 FROM context), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (tenant, \"user\", kind, key) DO UPDATE SET id = excluded.id, bytes = excluded.bytes,
            session = excluded.session, input_hash = excluded.input_hash, module = excluded.module,
            ttl = excluded.ttl, created = excluded.created, ends = excluded.ends, value = excluded.value,
            pattern = excluded.pattern";
    let entry = weighed.entry;
    let values = values![
        weighed.bytes,
        weighed.owner.tenant(),
        weighed.owner.name(),
        &entry.kind,
        &entry.key.text,
        entry.key.session.as_deref(),
        entry.key.input_hash.as_deref(),
        &entry.module,
        entry.ttl.seconds(),
        &weighed.created,
        weighed.ends.as_deref(),
        &weighed.value,
        entry.key.pattern.as_deref(),
    ];
    let entry = weighed.entry;
    let owner = values![weighed.owner.tenant(), weighed.owner.name(), &entry.kind, &entry.key.text];
    let by_key = "SELECT id FROM context WHERE tenant = ?1 AND \"user\" = ?2 AND kind = ?3 AND key = ?4";
    let before = first(session, by_key, &owner, |row| row.integer(0))?;
    session.execute(sql, &values)?;
    for id in before.into_iter().chain(first(session, by_key, &owner, |row| row.integer(0))?) {
        row_changes::note(session, ProtectedTable::Context, id)?;
    }
    Ok(())
}

/// Removes the oldest entries until the rest fits. The newest entry always fits, because larger ones are refused.
fn remove_oldest(session: &mut dyn SqlSession, caps: Caps) -> Result<(), Problem> {
    let count = "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM context";
    let found = first(session, count, &[], |row| Ok((row.integer(0)?, row.integer(1)?)))?;
    let (mut entries, mut bytes) = found.unwrap_or_default();
    let is_over =
        |entries: i64, bytes: i64| entries > to_signed(caps.entries.max(1)) || bytes > to_signed(caps.bytes);
    if !is_over(entries, bytes) {
        return Ok(());
    }
    let mut last = 0;
    session.for_each("SELECT id, bytes FROM context ORDER BY id", &[], &mut |row| {
        if !is_over(entries, bytes) {
            return Ok(ControlFlow::Break(()));
        }
        (last, entries, bytes) = (row.integer(0)?, entries - 1, bytes - row.integer(1)?);
        Ok(ControlFlow::Continue(()))
    })?;
    row_changes::delete_context(session, "id <= ?1", &values![last]).map(drop)
}
