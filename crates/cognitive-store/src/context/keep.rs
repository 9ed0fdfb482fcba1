//! Keeps an entry and lets the oldest go. Both happen in one transaction, so the limits hold after every write.

use cognitive_contract::context::{Caps, ContextEntry, Owner};
use rusqlite::{Connection, Transaction, TransactionBehavior, named_params};

use crate::time;

/// An entry as columns, prepared before the lock is taken.
pub(super) struct Weighed<'a> {
    owner: &'a Owner,
    entry: &'a ContextEntry,
    created: String,
    ends: Option<String>,
    value: String,
    bytes: i64,
}

impl<'a> Weighed<'a> {
    /// The error says why the entry is not kept.
    pub(super) fn of(owner: &'a Owner, entry: &'a ContextEntry, caps: Caps) -> Result<Self, String> {
        let value = entry.value.to_string();
        let bytes = caps.weigh(owner, entry, value.len())?;
        Ok(Self {
            owner,
            entry,
            created: time::text(entry.created),
            ends: entry.ends().map(time::text),
            value,
            bytes: whole(bytes),
        })
    }
}

/// `SQLite` has no unsigned integers.
fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn keep(
    connection: &mut Connection,
    entry: &Weighed<'_>,
    caps: Caps,
    now: &str,
) -> rusqlite::Result<()> {
    // Immediate: two writers that both begin by reading could not both go on.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    remove_expired(&transaction, now)?;
    insert(&transaction, entry)?;
    remove_oldest(&transaction, caps)?;
    transaction.commit()
}

/// Removes what has expired and says how much it was.
pub(super) fn remove_expired(connection: &Connection, now: &str) -> rusqlite::Result<u64> {
    let removed = connection.prepare_cached("DELETE FROM context WHERE ends <= ?1")?.execute([now])?;
    Ok(removed as u64)
}

/// An entry that takes the place of another is as new as any.
fn insert(transaction: &Transaction<'_>, weighed: &Weighed<'_>) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO context
            (id, bytes, tenant, user, kind, key, session, input_hash, module, ttl, created, ends, value)
         VALUES ((SELECT coalesce(max(id), 0) + 1 FROM context),
            :bytes, :tenant, :user, :kind, :key, :session, :input_hash, :module, :ttl, :created, :ends, :value)",
    )?;
    let entry = weighed.entry;
    statement.execute(named_params! {
        ":bytes": weighed.bytes,
        ":tenant": weighed.owner.tenant(),
        ":user": weighed.owner.name(),
        ":kind": entry.kind,
        ":key": entry.key.text,
        ":session": entry.key.session,
        ":input_hash": entry.key.input_hash,
        ":module": entry.module,
        ":ttl": entry.ttl.seconds(),
        ":created": weighed.created,
        ":ends": weighed.ends,
        ":value": weighed.value,
    })?;
    Ok(())
}

/// Removes the oldest until what is left fits. The newest always does: nothing larger is kept in the first place.
fn remove_oldest(transaction: &Transaction<'_>, caps: Caps) -> rusqlite::Result<()> {
    let (mut entries, mut bytes): (i64, i64) = transaction
        .prepare_cached("SELECT count(*), coalesce(sum(bytes), 0) FROM context")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut statement = transaction.prepare_cached("SELECT id, bytes FROM context ORDER BY id")?;
    let mut oldest = statement.query([])?;
    let mut last = None;
    while entries > whole(caps.entries.max(1)) || bytes > whole(caps.bytes) {
        let Some(row) = oldest.next()? else { break };
        last = Some(row.get::<_, i64>(0)?);
        entries -= 1;
        bytes -= row.get::<_, i64>(1)?;
    }
    drop(oldest);
    if let Some(last) = last {
        transaction.prepare_cached("DELETE FROM context WHERE id <= ?1")?.execute([last])?;
    }
    Ok(())
}
