//! Keeps records and lets the oldest go. Both happen in one transaction, so the limits hold after every write, and several
//! records that come together cost one transaction.

use std::time::SystemTime;

use cognitive_contract::ports::{AuditLog, AuditRecord, DropCounts};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::chain::{COLUMNS, Chain, Gone};
use super::entry::NewAuditRow;
use crate::store::{Retention, Store};
use crate::time;

impl AuditLog for Store {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        self.keep(std::slice::from_ref(record))
    }

    fn record_all(&self, records: &[AuditRecord]) -> Vec<Result<(), String>> {
        // All or none: what is wrong with a disk is wrong for all of them.
        let kept = self.keep(records);
        records.iter().map(|_| kept.clone()).collect()
    }

    fn drop_counts(&self) -> DropCounts {
        self.drops.counts()
    }
}

impl Store {
    fn keep(&self, records: &[AuditRecord]) -> Result<(), String> {
        let entries: Vec<NewAuditRow> = records.iter().map(NewAuditRow::of).collect();
        let retention = self.retention();
        let newest = records.iter().map(|record| record.at).max();
        let due = newest.filter(|now| retention.age.is_some() && self.drops.sweep_is_due(*now));
        let gone = self.with(|connection| keep(connection, &entries, retention, due));
        // Counted when it is certain: a transaction that failed has dropped nothing.
        for gone in &gone.map_err(|error| error.to_string())? {
            self.drops.add(gone);
        }
        Ok(())
    }
}

fn keep(
    connection: &mut Connection,
    entries: &[NewAuditRow],
    retention: Retention,
    due: Option<SystemTime>,
) -> rusqlite::Result<Vec<Gone>> {
    // Immediate: two writers that both begin by reading could not both go on, and the end of a chain has to be its end.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (mut gone, last) = append(&transaction, entries, retention)?;
    if let Some(now) = due {
        gone.extend(sweep(&transaction, last, now, retention)?);
    }
    transaction.commit()?;
    Ok(gone)
}

/// Appends entries to their chains. Gives what went for them, and the newest id.
pub(super) fn append(
    transaction: &Transaction<'_>,
    entries: &[NewAuditRow],
    retention: Retention,
) -> rusqlite::Result<(Vec<Gone>, i64)> {
    let mut id: i64 =
        transaction.query_row("SELECT coalesce(max(id), 0) FROM audit", [], |row| row.get(0))?;
    let mut gone = Vec::with_capacity(entries.len());
    for entry in entries {
        id += 1;
        let mut chain = Chain::find(transaction, &entry.owner, entry.kind)?;
        gone.push(chain.append(transaction, id, entry, retention)?);
    }
    Ok((gone, id))
}

/// A record that is kept with something else, in one transaction with it.
pub(crate) struct NoteRecord(NewAuditRow);

/// What went for such a record.
pub(crate) struct NoteCost(Vec<Gone>);

impl NoteRecord {
    pub(crate) fn of(record: &AuditRecord) -> Self {
        Self(NewAuditRow::of(record))
    }

    /// Appends it. What it gives is to be counted once the transaction is certain.
    pub(crate) fn append(
        &self,
        transaction: &Transaction<'_>,
        retention: Retention,
    ) -> rusqlite::Result<NoteCost> {
        append(transaction, std::slice::from_ref(&self.0), retention).map(|(gone, _)| NoteCost(gone))
    }
}

impl Store {
    /// Counts what went for a record.
    pub(crate) fn count_drops(&self, cost: &NoteCost) {
        for gone in &cost.0 {
            self.drops.add(gone);
        }
    }
}

/// Drops what has become too old, of all owners: also of those who write no more. `last` is the newest id.
fn sweep(
    transaction: &Transaction<'_>,
    mut last: i64,
    now: SystemTime,
    retention: Retention,
) -> rusqlite::Result<Vec<Gone>> {
    let Some(moment) = retention.age.and_then(|age| now.checked_sub(age)) else { return Ok(Vec::new()) };
    let (moment, now) = (time::text(moment), time::text(now));
    transaction.execute("DELETE FROM audit WHERE chain IS NULL AND ts < ?1", [&moment])?;
    let sql = format!("SELECT {COLUMNS} FROM audit_chains ORDER BY id");
    let chains: Vec<Chain> =
        transaction.prepare_cached(&sql)?.query_map([], Chain::read)?.collect::<rusqlite::Result<_>>()?;
    let mut gone = Vec::new();
    for mut chain in chains {
        let count = chain.drop_older(transaction, &moment)?;
        if count > 0 {
            last += 1;
            let note = NewAuditRow::swept(&chain, &now, count);
            gone.push(chain.append(transaction, last, &note, retention)?);
        }
    }
    Ok(gone)
}
