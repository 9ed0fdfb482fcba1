//! Writes records and drops the oldest ones, in one transaction, so the limits hold after every write. Records that
//! arrive together share a transaction.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use cognitive_contract::ports::{AuditLog, AuditRecord, DropCounts};

use super::chain::{Chain, WriteDrops};
use super::entry::NewAuditRow;
use super::new_rows::NewRows;
use crate::error::Problem;
use crate::sql::{LockedArea, SqlSession, values};
use crate::store::{Retention, Store};
use crate::time;

impl AuditLog for Store {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        self.keep(std::slice::from_ref(record))
    }

    fn record_all(&self, records: &[AuditRecord]) -> Vec<Result<(), String>> {
        // All or none: a disk error affects all of them.
        let kept = self.keep(records);
        records.iter().map(|_| kept.clone()).collect()
    }

    fn check(&self) -> Result<(), String> {
        self.try_writing().map_err(|error| error.to_string())
    }

    fn drop_counts(&self) -> DropCounts {
        self.drops.counts()
    }
}

impl Store {
    fn keep(&self, records: &[AuditRecord]) -> Result<(), String> {
        if records.is_empty() {
            return Ok(());
        }
        let entries: Vec<NewAuditRow> = records.iter().map(NewAuditRow::from_record).collect();
        let retention = self.retention();
        let newest = records.iter().map(|record| record.at).max();
        let due = newest.filter(|now| retention.age.is_some() && self.drops.sweep_is_due(*now));
        // Exclusive, because two concurrent appends to a chain would fork it. One lock covers all chains, because ids
        // must have no gaps: a gap reveals a chain that was deleted as a whole.
        let gone = self.change(&[LockedArea::Audit], |session| keep(session, entries, retention, due));
        // Counted after the commit, because a failed transaction has dropped nothing.
        for gone in &gone.map_err(|error| error.to_string())? {
            self.drops.add(gone);
        }
        Ok(())
    }
}

fn keep(
    session: &mut dyn SqlSession,
    entries: Vec<NewAuditRow>,
    retention: Retention,
    due: Option<SystemTime>,
) -> Result<Vec<WriteDrops>, Problem> {
    let (mut gone, last) = append(session, entries, retention)?;
    if let Some(now) = due {
        gone.extend(sweep(session, last, now, retention)?);
    }
    Ok(gone)
}

/// Appends entries to their chains. Returns the drops and the newest id.
pub(super) fn append(
    session: &mut dyn SqlSession,
    entries: Vec<NewAuditRow>,
    retention: Retention,
) -> Result<(Vec<WriteDrops>, i64), Problem> {
    let owners: BTreeSet<&str> = entries.iter().map(|entry| entry.owner.as_str()).collect();
    let (mut id, known) = Chain::for_owners(session, &owners)?;
    let named = |chain: Chain| ((chain.owner.clone(), chain.kind.clone()), chain);
    // In the order of their names, so that concurrent transactions would lock rows in the same order.
    let mut chains: BTreeMap<(String, String), Chain> = known.into_iter().map(named).collect();
    let mut changed = BTreeSet::new();
    let (mut gone, mut rows) = (Vec::with_capacity(entries.len()), NewRows::default());
    for entry in entries {
        id += 1;
        let name = (entry.owner.clone(), entry.kind.to_owned());
        let chain = match chains.entry(name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Chain::create(session, &entry.owner, entry.kind)?),
        };
        gone.push(chain.append(session, &mut rows, (id, entry), retention)?);
        changed.insert(name);
    }
    rows.write(session)?;
    for (name, chain) in &mut chains {
        if changed.contains(name) {
            chain.save(session)?;
        }
    }
    Ok((gone, id))
}

/// A record that is written in the transaction of another change.
pub(crate) struct NoteRecord(NewAuditRow);

/// The drops caused by such a record.
pub(crate) struct NoteCost(Vec<WriteDrops>);

impl NoteRecord {
    pub(crate) fn from_record(record: &AuditRecord) -> Self {
        Self(NewAuditRow::from_record(record))
    }

    /// Appends the record. The caller counts the returned drops after the commit.
    pub(crate) fn append(
        self,
        session: &mut dyn SqlSession,
        retention: Retention,
    ) -> Result<NoteCost, Problem> {
        append(session, vec![self.0], retention).map(|(gone, _)| NoteCost(gone))
    }
}

impl Store {
    /// Counts the drops caused by a record.
    pub(crate) fn count_drops(&self, cost: &NoteCost) {
        for gone in &cost.0 {
            self.drops.add(gone);
        }
    }
}

/// Drops expired records of all owners, including owners that no longer write. `last` is the newest id.
fn sweep(
    session: &mut dyn SqlSession,
    mut last: i64,
    now: SystemTime,
    retention: Retention,
) -> Result<Vec<WriteDrops>, Problem> {
    let Some(moment) = retention.age.and_then(|age| now.checked_sub(age)) else { return Ok(Vec::new()) };
    let (moment, now) = (time::text(moment), time::text(now));
    session.execute("DELETE FROM audit WHERE chain IS NULL AND ts < ?1", &values![&moment])?;
    let mut gone = Vec::new();
    for mut chain in Chain::all(session)? {
        let count = chain.drop_older(session, &moment)?;
        if count > 0 {
            last += 1;
            let note = NewAuditRow::sweep_record(&chain, &now, count);
            let mut rows = NewRows::default();
            gone.push(chain.append(session, &mut rows, (last, note), retention)?);
            rows.write(session)?;
            chain.save(session)?;
        }
    }
    Ok(gone)
}
