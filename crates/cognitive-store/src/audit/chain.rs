//! One chain of records: those of one owner and kind, each with the hash of the one before it. Drops from the beginning
//! what is over the limits, and remembers the hash of the last that went, so that the rest can still be proven.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{OptionalExtension, Transaction, params, params_from_iter};
use sha2::{Digest, Sha256};

use super::entry::{DETAILS, FACTS, NewAuditRow, SWEPT, whole};
use crate::store::Retention;

/// The most that one write removes, so that a lowered limit does not make it slow.
const BATCH: u32 = 64;
/// A hash of nothing: what stands before the first record of a chain.
pub(super) const ORIGIN: [u8; 32] = [0; 32];
/// What comes first in every hash, so that it means nothing elsewhere.
const PURPOSE: &[u8] = b"cogn audit 1\n";

/// Where a chain begins and ends, as its row says.
pub(super) struct Chain {
    pub(super) id: i64,
    pub(super) owner: String,
    pub(super) kind: String,
    /// How many records it ever had.
    pub(super) seq: i64,
    /// The hash of the last.
    pub(super) hash: Vec<u8>,
    bytes: i64,
    payload_bytes: i64,
    /// How many of them were dropped.
    pub(super) dropped: i64,
    /// The hash of the last that was.
    pub(super) dropped_hash: Vec<u8>,
    pub(super) dropped_payloads: i64,
    pub(super) dropped_since: Option<String>,
    pub(super) dropped_at: Option<String>,
}

/// What went with a write.
#[derive(Default)]
pub(super) struct Gone {
    pub(super) records: i64,
    pub(super) payloads: i64,
    /// Whether it was the first time for this chain.
    pub(super) first: bool,
}

pub(super) const COLUMNS: &str = "id, owner, kind, seq, hash, bytes, payload_bytes, dropped, dropped_hash, \
     dropped_payloads, dropped_since, dropped_at";

impl Chain {
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            owner: row.get(1)?,
            kind: row.get(2)?,
            seq: row.get(3)?,
            hash: row.get(4)?,
            bytes: row.get(5)?,
            payload_bytes: row.get(6)?,
            dropped: row.get(7)?,
            dropped_hash: row.get(8)?,
            dropped_payloads: row.get(9)?,
            dropped_since: row.get(10)?,
            dropped_at: row.get(11)?,
        })
    }

    /// The chain of an owner and a kind; a new one if there is none.
    pub(super) fn find(transaction: &Transaction<'_>, owner: &str, kind: &str) -> rusqlite::Result<Self> {
        let found = transaction
            .prepare_cached(&format!("SELECT {COLUMNS} FROM audit_chains WHERE owner = ?1 AND kind = ?2"))?
            .query_row((owner, kind), Self::read)
            .optional()?;
        if let Some(chain) = found {
            return Ok(chain);
        }
        let next = "SELECT coalesce(max(id), 0) + 1 FROM audit_chains";
        let id: i64 = transaction.query_row(next, [], |row| row.get(0))?;
        transaction.execute(
            "INSERT INTO audit_chains VALUES (?1, ?2, ?3, 0, ?4, 0, 0, 0, ?4, 0, NULL, NULL)",
            params![id, owner, kind, ORIGIN],
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
        })
    }

    /// Makes room for an entry and appends it under `id`.
    pub(super) fn append(
        &mut self,
        transaction: &Transaction<'_>,
        id: i64,
        entry: &NewAuditRow,
        retention: Retention,
    ) -> rusqlite::Result<Gone> {
        let was_whole = self.dropped_since.is_none();
        let mut gone = Gone { records: self.make_room(transaction, entry, retention)?, ..Gone::default() };
        gone.records += entry.swept;
        self.seq += 1;
        let before = std::mem::take(&mut self.hash);
        self.hash = self.link(id, &before, entry.facts.iter().map(ValueRef::from)).to_vec();
        self.insert(transaction, id, &before, entry)?;
        self.bytes += entry.bytes;
        self.payload_bytes += entry.payload_bytes();
        gone.payloads = self.drop_payloads(transaction, entry, retention)?;
        if gone.records + gone.payloads > 0 {
            gone.first = was_whole;
            self.dropped_since.get_or_insert_with(|| entry.ts.clone());
            self.dropped_at = Some(entry.ts.clone());
        }
        self.save(transaction)?;
        Ok(gone)
    }

    /// The hash of a record of this chain, whose newest it is.
    fn link<'a>(&self, id: i64, before: &[u8], facts: impl Iterator<Item = ValueRef<'a>>) -> [u8; 32] {
        link(id, &self.owner, &self.kind, (self.id, self.seq, self.dropped), before, facts)
    }

    fn insert(
        &self,
        transaction: &Transaction<'_>,
        id: i64,
        before: &[u8],
        entry: &NewAuditRow,
    ) -> rusqlite::Result<()> {
        let mut values = vec![
            Value::Integer(id),
            Value::Integer(entry.bytes),
            entry.payload.clone().map_or(Value::Null, Value::Text),
            Value::Integer(entry.payload_bytes()),
            Value::Integer(self.id),
            Value::Integer(self.seq),
            Value::Integer(self.dropped),
            Value::Blob(before.to_vec()),
            Value::Blob(self.hash.clone()),
        ];
        values.extend(entry.facts.iter().cloned());
        let marks = vec!["?"; values.len()].join(", ");
        let sql = format!(
            "INSERT INTO audit (position, id, bytes, payload, payload_bytes, chain, seq, dropped, before, hash, {})
             VALUES (0, {marks})",
            FACTS.join(", ")
        );
        transaction.prepare_cached(&sql)?.execute(params_from_iter(values))?;
        Ok(())
    }

    /// Drops the oldest until the entry fits. One that fits nowhere is kept alone.
    fn make_room(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &NewAuditRow,
        retention: Retention,
    ) -> rusqlite::Result<i64> {
        // Details have a budget of their own, so that any number of them makes no run and no call go.
        let share = if self.kind == DETAILS { 4 } else { 1 };
        let records = whole(retention.records / share).max(1);
        let bytes = whole(retention.bytes / share);
        let is_over = |kept: i64, held: i64| kept >= records || held.saturating_add(entry.bytes) > bytes;
        if self.seq == self.dropped || !is_over(self.seq - self.dropped, self.bytes) {
            return Ok(0);
        }
        let mut statement = transaction.prepare_cached(
            "SELECT bytes, payload_bytes, payload IS NULL, hash FROM audit WHERE chain = ?1 ORDER BY seq LIMIT ?2",
        )?;
        let mut oldest = statement.query((self.id, BATCH))?;
        let before = self.dropped;
        while let Some(row) = oldest.next()? {
            if !is_over(self.seq - self.dropped, self.bytes) {
                break;
            }
            self.forget(row)?;
        }
        self.remove_dropped(transaction)?;
        Ok(self.dropped - before)
    }

    /// Takes a row out of the counts: bytes, payload bytes, whether its payload has gone already, hash.
    fn forget(&mut self, row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
        self.bytes -= row.get::<_, i64>(0)?;
        if !row.get::<_, bool>(2)? {
            self.payload_bytes -= row.get::<_, i64>(1)?;
        }
        self.dropped_hash = row.get(3)?;
        self.dropped += 1;
        Ok(())
    }

    fn remove_dropped(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let sql = "DELETE FROM audit WHERE chain = ?1 AND seq <= ?2";
        transaction.prepare_cached(sql)?.execute((self.id, self.dropped)).map(drop)
    }

    /// Drops the oldest records as long as they are of before a moment. Whoever does so has to append a record that says it,
    /// and such a record stays as long as it is the last: else there would always be a new one to write.
    pub(super) fn drop_older(
        &mut self,
        transaction: &Transaction<'_>,
        moment: &str,
    ) -> rusqlite::Result<i64> {
        let before = self.dropped;
        {
            let mut statement = transaction.prepare_cached(
                "SELECT bytes, payload_bytes, payload IS NULL, hash, ts, event FROM audit WHERE chain = ?1 ORDER BY seq",
            )?;
            let mut oldest = statement.query([self.id])?;
            while let Some(row) = oldest.next()? {
                let is_last_note = self.dropped + 1 == self.seq && row.get_ref(5)?.as_str() == Ok(SWEPT);
                if is_last_note || row.get_ref(4)?.as_str().is_ok_and(|ts| ts >= moment) {
                    break;
                }
                self.forget(row)?;
            }
        }
        if self.dropped > before {
            self.remove_dropped(transaction)?;
        }
        Ok(self.dropped - before)
    }

    /// Drops the oldest payloads until the newest fits. Their records stay, and with them the hashes of what went.
    fn drop_payloads(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &NewAuditRow,
        retention: Retention,
    ) -> rusqlite::Result<i64> {
        let limit = whole(retention.payload_bytes);
        if entry.payload.is_none() || self.payload_bytes <= limit {
            return Ok(0);
        }
        let mut going = Vec::new();
        {
            let mut statement = transaction.prepare_cached(
                "SELECT id, payload_bytes FROM audit WHERE chain = ?1 AND payload IS NOT NULL AND seq < ?2
                 ORDER BY seq LIMIT ?3",
            )?;
            let mut oldest = statement.query((self.id, self.seq, BATCH))?;
            while let Some(row) = oldest.next()? {
                if self.payload_bytes <= limit {
                    break;
                }
                self.payload_bytes -= row.get::<_, i64>(1)?;
                going.push(row.get::<_, i64>(0)?);
            }
        }
        let mut forget = transaction.prepare_cached("UPDATE audit SET payload = NULL WHERE id = ?1")?;
        for id in &going {
            forget.execute([id])?;
        }
        let count = i64::try_from(going.len()).unwrap_or(i64::MAX);
        self.dropped_payloads += count;
        Ok(count)
    }

    fn save(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        transaction
            .prepare_cached(
                "UPDATE audit_chains SET seq = ?2, hash = ?3, bytes = ?4, payload_bytes = ?5, dropped = ?6,
                    dropped_hash = ?7, dropped_payloads = ?8, dropped_since = ?9, dropped_at = ?10 WHERE id = ?1",
            )?
            .execute(params![
                self.id,
                self.seq,
                self.hash,
                self.bytes,
                self.payload_bytes,
                self.dropped,
                self.dropped_hash,
                self.dropped_payloads,
                self.dropped_since,
                self.dropped_at,
            ])
            .map(drop)
    }
}

/// The hash of a record: of its place, of the hash before it, and of what it says. Every value is preceded by its type and
/// length, so that no two records have the same text to hash.
pub(super) fn link<'a>(
    id: i64,
    owner: &str,
    kind: &str,
    (chain, seq, dropped): (i64, i64, i64),
    before: &[u8],
    facts: impl Iterator<Item = ValueRef<'a>>,
) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(PURPOSE);
    let place = [
        ValueRef::Integer(id),
        ValueRef::Text(owner.as_bytes()),
        ValueRef::Text(kind.as_bytes()),
        ValueRef::Integer(chain),
        ValueRef::Integer(seq),
        ValueRef::Integer(dropped),
        ValueRef::Blob(before),
    ];
    for value in place {
        feed(&mut hash, value);
    }
    for value in facts {
        feed(&mut hash, value);
    }
    hash.finalize().into()
}

fn feed(hash: &mut Sha256, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => hash.update([0]),
        ValueRef::Integer(number) => {
            hash.update([1]);
            hash.update(number.to_le_bytes());
        }
        ValueRef::Real(number) => {
            hash.update([2]);
            hash.update(number.to_bits().to_le_bytes());
        }
        ValueRef::Text(bytes) => feed_bytes(hash, 3, bytes),
        ValueRef::Blob(bytes) => feed_bytes(hash, 4, bytes),
    }
}

fn feed_bytes(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
