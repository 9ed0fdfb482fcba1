//! A chain of records of one owner and kind. Each record has the hash of the one before it. Retention drops records
//! from the beginning; the hash of the last dropped record is stored, so that the rest can still be verified.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

use super::entry::{DETAILS, FACTS, NewAuditRow, SWEPT};
use super::new_rows::NewRows;
use crate::error::Problem;
use crate::sql::{SqlRow, SqlSession, SqlValue, all, number, to_signed, values};
use crate::store::Retention;

/// The most that one write removes, so that a lowered limit does not make it slow.
const BATCH: i64 = 64;
/// The columns of a row before its facts.
const PLACE_COLUMNS: usize = 10;
/// Removes the records of a chain that were dropped since it was last saved. The lower bound matters to PostgreSQL: with an
/// upper bound alone, statistics from before the last few thousand drops make the planner expect all of those rows again,
/// and it scans the whole table for each write.
const REMOVE_DROPPED: &str = "DELETE FROM audit WHERE chain = ?1 AND seq > ?2 AND seq <= ?3";
/// The hash before the first record of a chain.
pub(super) const ORIGIN: [u8; 32] = [0; 32];
/// The prefix of every hash, so that a hash is valid only for this purpose.
const PURPOSE: &[u8] = b"cogn audit 1\n";

/// The beginning and the end of a chain, as in its row.
pub(super) struct Chain {
    pub(super) id: i64,
    pub(super) owner: String,
    pub(super) kind: String,
    /// The number of all its records, including dropped ones.
    pub(super) seq: i64,
    /// The hash of the newest record.
    pub(super) hash: Vec<u8>,
    bytes: i64,
    payload_bytes: i64,
    /// The number of dropped records.
    pub(super) dropped: i64,
    /// The hash of the last dropped record.
    pub(super) dropped_hash: Vec<u8>,
    pub(super) dropped_payloads: i64,
    pub(super) dropped_since: Option<String>,
    pub(super) dropped_at: Option<String>,
    /// The last record that was removed from the table. [`save`](Self::save) removes those that were dropped after it.
    removed: i64,
    /// The last record whose payload was dropped since the chain was read. [`Self::oldest`] may still count it.
    payloads_gone: i64,
    /// The oldest records, read ahead so that a batch does not query each of them.
    oldest: VecDeque<OldestRecord>,
}

/// A record to drop next, with the values that the counts need.
struct OldestRecord {
    seq: i64,
    bytes: i64,
    /// 0 if its payload was already dropped.
    payload_bytes: i64,
    hash: Vec<u8>,
}

/// The columns of [`OldestRecord`].
const OLDEST: &str = "seq, bytes, CASE WHEN payload IS NULL THEN 0 ELSE payload_bytes END, hash";

impl OldestRecord {
    fn read(row: &SqlRow) -> Result<Self, Problem> {
        Ok(Self {
            seq: row.integer(0)?,
            bytes: row.integer(1)?,
            payload_bytes: row.integer(2)?,
            hash: row.blob(3)?,
        })
    }
}

/// The records and payloads that a write dropped.
#[derive(Default)]
pub(super) struct WriteDrops {
    pub(super) records: i64,
    pub(super) payloads: i64,
    /// True for the first drop of this chain.
    pub(super) first: bool,
}

const COLUMNS: &str = "id, owner, kind, seq, hash, bytes, payload_bytes, dropped, dropped_hash, \
     dropped_payloads, dropped_since, dropped_at";
/// The number of [`COLUMNS`].
const COLUMN_COUNT: usize = 12;

impl Chain {
    fn read(row: &SqlRow) -> Result<Self, Problem> {
        Ok(Self {
            id: row.integer(0)?,
            owner: row.text(1)?,
            kind: row.text(2)?,
            seq: row.integer(3)?,
            hash: row.blob(4)?,
            bytes: row.integer(5)?,
            payload_bytes: row.integer(6)?,
            dropped: row.integer(7)?,
            dropped_hash: row.blob(8)?,
            dropped_payloads: row.integer(9)?,
            dropped_since: row.maybe_text(10)?,
            dropped_at: row.maybe_text(11)?,
            removed: row.integer(7)?,
            payloads_gone: 0,
            oldest: VecDeque::new(),
        })
    }

    /// Returns the newest id of all records and the chains of these owners, in one statement: a server is asked while
    /// others wait for the lock.
    pub(super) fn for_owners(
        session: &mut dyn SqlSession,
        owners: &BTreeSet<&str>,
    ) -> Result<(i64, Vec<Self>), Problem> {
        let marks = (1..=owners.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT {COLUMNS}, newest FROM (SELECT coalesce(max(audit.id), 0) AS newest FROM audit) AS records
             LEFT JOIN audit_chains ON owner IN ({marks})"
        );
        let owners: Vec<SqlValue> = owners.iter().map(|owner| SqlValue::from(*owner)).collect();
        let (mut newest, mut chains) = (0, Vec::new());
        session.for_each(&sql, &owners, &mut |row| {
            newest = row.integer(COLUMN_COUNT)?;
            if row.maybe_integer(0)?.is_some() {
                chains.push(Self::read(row)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((newest, chains))
    }

    /// Returns all chains, the oldest first.
    pub(super) fn all(session: &mut dyn SqlSession) -> Result<Vec<Self>, Problem> {
        all(session, &format!("SELECT {COLUMNS} FROM audit_chains ORDER BY id"), &[], Self::read)
    }

    /// Creates the chain of an owner and a kind.
    pub(super) fn create(session: &mut dyn SqlSession, owner: &str, kind: &str) -> Result<Self, Problem> {
        let id = number(session, "SELECT coalesce(max(id), 0) + 1 FROM audit_chains", &[])?;
        session.execute_later(
            "INSERT INTO audit_chains VALUES (?1, ?2, ?3, 0, ?4, 0, 0, 0, ?4, 0, NULL, NULL)",
            &values![id, owner, kind, ORIGIN.as_slice()],
        )?;
        Ok(Self {
            id,
            owner: owner.to_owned(),
            kind: kind.to_owned(),
            seq: 0,
            hash: ORIGIN.to_vec(),
            bytes: 0,
            payload_bytes: 0,
            dropped: 0,
            dropped_hash: ORIGIN.to_vec(),
            dropped_payloads: 0,
            dropped_since: None,
            dropped_at: None,
            removed: 0,
            payloads_gone: 0,
            oldest: VecDeque::new(),
        })
    }

    /// Makes room for an entry and appends it under `id` to the new rows. [`save`](Self::save) writes the chain and
    /// removes the dropped records, once for a whole batch.
    pub(super) fn append(
        &mut self,
        session: &mut dyn SqlSession,
        rows: &mut NewRows,
        (id, entry): (i64, NewAuditRow),
        retention: Retention,
    ) -> Result<WriteDrops, Problem> {
        let was_whole = self.dropped_since.is_none();
        let mut gone = WriteDrops {
            records: self.make_room(session, rows, entry.bytes, retention)?,
            ..WriteDrops::default()
        };
        gone.records += entry.swept;
        self.seq += 1;
        let before = std::mem::take(&mut self.hash);
        self.hash = self.link(id, &before, entry.facts.iter()).to_vec();
        let (ts, payload_bytes) = (entry.ts.clone(), entry.payload_bytes());
        self.bytes += entry.bytes;
        self.payload_bytes += payload_bytes;
        rows.push(self.row(id, before, entry));
        if payload_bytes > 0 {
            gone.payloads = self.drop_payloads(session, rows, retention)?;
        }
        if gone.records + gone.payloads > 0 {
            gone.first = was_whole;
            self.dropped_since.get_or_insert_with(|| ts.clone());
            self.dropped_at = Some(ts);
        }
        Ok(gone)
    }

    /// Returns the hash of the newest record of this chain.
    fn link<'a>(&self, id: i64, before: &[u8], facts: impl Iterator<Item = &'a SqlValue>) -> [u8; 32] {
        link(id, &self.owner, &self.kind, (self.id, self.seq, self.dropped), before, facts)
    }

    /// Returns the columns of [`NewRows`] for the newest record of this chain.
    fn row(&self, id: i64, before: Vec<u8>, entry: NewAuditRow) -> Vec<SqlValue> {
        let payload_bytes = entry.payload_bytes();
        let mut row = Vec::with_capacity(PLACE_COLUMNS + FACTS.len());
        row.extend([
            SqlValue::Integer(0),
            SqlValue::Integer(id),
            SqlValue::Integer(entry.bytes),
            entry.payload.into(),
            SqlValue::Integer(payload_bytes),
            SqlValue::Integer(self.id),
            SqlValue::Integer(self.seq),
            SqlValue::Integer(self.dropped),
            SqlValue::Blob(before),
            SqlValue::Blob(self.hash.clone()),
        ]);
        row.extend(entry.facts);
        row
    }

    /// Drops the oldest records until the entry fits. An entry above the limit is stored alone.
    fn make_room(
        &mut self,
        session: &mut dyn SqlSession,
        rows: &mut NewRows,
        entry_bytes: i64,
        retention: Retention,
    ) -> Result<i64, Problem> {
        // Details have a budget of their own, so that any number of them makes no run and no call go.
        let share = if self.kind == DETAILS { 4 } else { 1 };
        let records = to_signed(retention.records / share).max(1);
        let bytes = to_signed(retention.bytes / share);
        let is_over = |kept: i64, held: i64| kept >= records || held.saturating_add(entry_bytes) > bytes;
        let before = self.dropped;
        while self.dropped < self.seq
            && self.dropped - before < BATCH
            && is_over(self.seq - self.dropped, self.bytes)
        {
            let Some(record) = self.next_oldest(session, rows)? else { break };
            self.forget(record);
        }
        Ok(self.dropped - before)
    }

    /// Returns the oldest record that was not dropped.
    fn next_oldest(
        &mut self,
        session: &mut dyn SqlSession,
        rows: &mut NewRows,
    ) -> Result<Option<OldestRecord>, Problem> {
        if self.oldest.is_empty() {
            // The oldest records may be among those of this batch.
            rows.write(session)?;
            let sql =
                format!("SELECT {OLDEST} FROM audit WHERE chain = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
            self.oldest =
                all(session, &sql, &values![self.id, self.dropped, BATCH], OldestRecord::read)?.into();
        }
        Ok(self.oldest.pop_front())
    }

    /// Subtracts a record from the counts.
    fn forget(&mut self, record: OldestRecord) {
        self.bytes -= record.bytes;
        if record.seq > self.payloads_gone {
            self.payload_bytes -= record.payload_bytes;
        }
        self.dropped_hash = record.hash;
        self.dropped += 1;
    }

    /// Removes the records that were dropped since the last call: once for a batch, however many there are.
    fn remove_dropped(&mut self, session: &mut dyn SqlSession) -> Result<(), Problem> {
        if self.removed < self.dropped {
            session.execute_later(REMOVE_DROPPED, &values![self.id, self.removed, self.dropped])?;
            self.removed = self.dropped;
        }
        Ok(())
    }

    /// Drops the records before a moment. The caller must append a record of the drop. Such a record stays while it is
    /// the last one; otherwise each call would have to write another.
    pub(super) fn drop_older(&mut self, session: &mut dyn SqlSession, moment: &str) -> Result<i64, Problem> {
        let before = self.dropped;
        self.oldest.clear();
        let oldest = format!(
            "SELECT {OLDEST}, ts, event FROM audit WHERE chain = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
        );
        // Page by page: usually the first record is young enough.
        let mut has_more = true;
        while has_more {
            let page = self.dropped;
            session.for_each(&oldest, &values![self.id, page, BATCH], &mut |row| {
                let is_last_note = self.dropped + 1 == self.seq && row.str(5) == Ok(SWEPT);
                if is_last_note || row.str(4).is_ok_and(|ts| ts >= moment) {
                    return Ok(ControlFlow::Break(()));
                }
                self.forget(OldestRecord::read(row)?);
                Ok(ControlFlow::Continue(()))
            })?;
            has_more = self.dropped - page == BATCH;
        }
        Ok(self.dropped - before)
    }

    /// Drops the oldest payloads until the newest fits. Their records stay, with the hashes of the dropped payloads.
    fn drop_payloads(
        &mut self,
        session: &mut dyn SqlSession,
        rows: &mut NewRows,
        retention: Retention,
    ) -> Result<i64, Problem> {
        let limit = to_signed(retention.payload_bytes);
        if self.payload_bytes <= limit {
            return Ok(0);
        }
        rows.write(session)?;
        let (mut count, mut from, mut last) = (0, 0, 0);
        // Records that were dropped a moment ago may still be in the table, and they count no more.
        let oldest =
            "SELECT seq, payload_bytes FROM audit WHERE chain = ?1 AND payload IS NOT NULL AND seq > ?2 AND seq < ?3
             ORDER BY seq LIMIT ?4";
        session.for_each(oldest, &values![self.id, self.dropped, self.seq, BATCH], &mut |row| {
            if self.payload_bytes <= limit {
                return Ok(ControlFlow::Break(()));
            }
            self.payload_bytes -= row.integer(1)?;
            last = row.integer(0)?;
            if count == 0 {
                from = last;
            }
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        if count > 0 {
            // Bounded below for the same reason as `REMOVE_DROPPED`.
            let forget = "UPDATE audit SET payload = NULL WHERE chain = ?1 AND payload IS NOT NULL AND seq BETWEEN ?2 AND ?3";
            session.execute_later(forget, &values![self.id, from, last])?;
            self.payloads_gone = last;
            self.dropped_payloads += count;
        }
        Ok(count)
    }

    /// Stores the end of the chain, and removes the dropped records.
    pub(super) fn save(&mut self, session: &mut dyn SqlSession) -> Result<(), Problem> {
        self.remove_dropped(session)?;
        let sql = "UPDATE audit_chains SET seq = ?2, hash = ?3, bytes = ?4, payload_bytes = ?5, dropped = ?6,
            dropped_hash = ?7, dropped_payloads = ?8, dropped_since = ?9, dropped_at = ?10 WHERE id = ?1";
        let values = values![
            self.id,
            self.seq,
            self.hash.as_slice(),
            self.bytes,
            self.payload_bytes,
            self.dropped,
            self.dropped_hash.as_slice(),
            self.dropped_payloads,
            self.dropped_since.as_deref(),
            self.dropped_at.as_deref(),
        ];
        session.execute_later(sql, &values)
    }
}

/// Returns the hash of a record: of its place, the hash before it, and its values. Every value is preceded by its
/// type and length, so that two different records never give the same bytes.
pub(super) fn link<'a>(
    id: i64,
    owner: &str,
    kind: &str,
    (chain, seq, dropped): (i64, i64, i64),
    before: &[u8],
    facts: impl Iterator<Item = &'a SqlValue>,
) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(PURPOSE);
    for value in &values![id, owner, kind, chain, seq, dropped, before] {
        feed(&mut hash, value);
    }
    for value in facts {
        feed(&mut hash, value);
    }
    hash.finalize().into()
}

pub(crate) fn feed(hash: &mut Sha256, value: &SqlValue) {
    match value {
        SqlValue::Null => hash.update([0]),
        SqlValue::Integer(number) => {
            hash.update([1]);
            hash.update(number.to_le_bytes());
        }
        SqlValue::Real(number) => {
            hash.update([2]);
            hash.update(number.to_bits().to_le_bytes());
        }
        SqlValue::Text(text) => feed_bytes(hash, 3, text.as_bytes()),
        SqlValue::Blob(bytes) => feed_bytes(hash, 4, bytes),
    }
}

fn feed_bytes(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
