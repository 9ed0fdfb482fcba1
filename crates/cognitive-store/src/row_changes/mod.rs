//! The chains of changes to the tables beside the audit: spending, reviews, decisions and context. Each change of a row
//! appends the hash of its new state to the chain of its table, in the same transaction, so that rows which are edited,
//! removed or set back are found. [`verify`] compares chains and tables.
//!
//! A chain is shortened from its beginning. Rows that still exist are carried to its end first, so it always describes
//! every row. Each change has the number of rows after it, so that no shortening can hide the removal of one.

pub(crate) mod verify;

use std::ops::ControlFlow;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::audit::feed;
use crate::copy::columns_of;
use crate::error::Problem;
use crate::sql::{SqlRow, SqlSession, SqlValue, all, first, number, values};
use crate::time;

/// The prefix of the hash of a row, so that a hash is valid only for this purpose.
const ROW: &[u8] = b"cogn row 1\n";
/// The prefix of the hash of a change.
const CHANGE: &[u8] = b"cogn row change 1\n";
/// The hash before the first change.
const ORIGIN: [u8; 32] = [0; 32];
/// The number of changes after which a chain may be shortened. More often, counting would slow down the writes.
const EVERY: i64 = 1024;
/// The most changes that are dropped at once. Without a limit, one write would carry every row.
const BATCH: i64 = 4096;

/// A table whose changes have a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtectedTable {
    Context,
    Decisions,
    Reviews,
    Spending,
}

impl ProtectedTable {
    pub(crate) const ALL: [Self; 4] = [Self::Context, Self::Decisions, Self::Reviews, Self::Spending];

    /// Returns the name of the table and of its chain.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Decisions => "decisions",
            Self::Reviews => "reviews",
            Self::Spending => "spending",
        }
    }

    /// Returns the column that identifies a row.
    fn id(self) -> &'static str {
        match self {
            Self::Context | Self::Reviews | Self::Spending => "id",
            Self::Decisions => "seq",
        }
    }

    /// Returns the expressions for the day of a row, for its end, and for whether it never changes again.
    fn facts(self) -> &'static str {
        match self {
            Self::Context => "CAST(0 AS BIGINT), ends, CAST(0 AS BIGINT)",
            Self::Decisions => "CAST(0 AS BIGINT), CAST(NULL AS TEXT), CAST(1 AS BIGINT)",
            Self::Reviews => "CAST(0 AS BIGINT), CAST(NULL AS TEXT), CAST(0 AS BIGINT)",
            Self::Spending => {
                "day, CAST(NULL AS TEXT), CASE WHEN until IS NULL THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END"
            }
        }
    }

    /// Returns the query for rows: facts, id and columns.
    fn rows(self) -> String {
        format!("SELECT {}, {}, {} FROM {} t", self.facts(), self.id(), columns_of(self.name()), self.name())
    }
}

/// The first column of a row after its facts and its id.
const COLUMNS_AT: usize = 4;

/// The kinds of changes.
const NEW: &str = "n";
const REPLACED: &str = "r";
const DELETED: &str = "d";
/// The state of a row, repeated before its last change is dropped.
const CARRIED: &str = "c";
/// All rows of the days before `part` were deleted.
const PURGED: &str = "p";

/// The state of a row, as a change stores it.
#[derive(Debug, Clone, PartialEq)]
struct RowState {
    key: String,
    part: i64,
    ends: Option<String>,
    is_final: i64,
    state: Option<Vec<u8>>,
}

impl RowState {
    fn read(table: ProtectedTable, row: &SqlRow) -> Result<Self, Problem> {
        let key = match row.value(3) {
            SqlValue::Integer(id) => id.to_string(),
            _ => row.text(3)?,
        };
        Ok(Self {
            key,
            part: row.integer(0)?,
            ends: row.maybe_text(1)?,
            is_final: row.integer(2)?,
            state: Some(hash_of(table, row, columns_of(table.name()).split(", ").count()).to_vec()),
        })
    }
}

/// Returns the hash of the columns of a row.
fn hash_of(table: ProtectedTable, row: &SqlRow, columns: usize) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(ROW);
    feed(&mut hash, &table.name().into());
    (COLUMNS_AT..COLUMNS_AT + columns).for_each(|column| feed(&mut hash, row.value(column)));
    hash.finalize().into()
}

/// One change of a chain.
struct RowChange {
    seq: i64,
    kind: String,
    row: RowState,
    /// The number of rows after this change.
    live: i64,
    /// The number of changes dropped before it.
    dropped: i64,
    before: Vec<u8>,
    hash: Vec<u8>,
}

const CHANGE_COLUMNS: &str = "seq, kind, key, part, state, ends, is_final, live, dropped, before, hash";

impl RowChange {
    fn read(row: &SqlRow) -> Result<Self, Problem> {
        Ok(Self {
            seq: row.integer(0)?,
            kind: row.text(1)?,
            row: RowState {
                key: row.text(2)?,
                part: row.integer(3)?,
                state: row.maybe_blob(4)?,
                ends: row.maybe_text(5)?,
                is_final: row.integer(6)?,
            },
            live: row.integer(7)?,
            dropped: row.integer(8)?,
            before: row.blob(9)?,
            hash: row.blob(10)?,
        })
    }

    /// Computes the hash that the change should have.
    fn compute_hash(&self, table: ProtectedTable) -> [u8; 32] {
        let RowState { key, part, ends, is_final, state } = &self.row;
        let mut hash = Sha256::new_with_prefix(CHANGE);
        let values = values![
            table.name(),
            self.seq,
            &self.kind,
            key,
            *part,
            state.as_deref(),
            ends.as_deref(),
            *is_final,
            self.live,
            self.dropped,
            self.before.as_slice(),
        ];
        for value in &values {
            feed(&mut hash, value);
        }
        hash.finalize().into()
    }
}

/// The end of a chain, as in its row.
struct RowChain {
    table: ProtectedTable,
    seq: i64,
    hash: Vec<u8>,
    dropped: i64,
    dropped_hash: Vec<u8>,
    live: i64,
}

impl RowChain {
    fn find(session: &mut dyn SqlSession, table: ProtectedTable) -> Result<Option<Self>, Problem> {
        let sql = "SELECT seq, hash, dropped, dropped_hash, live FROM row_chains WHERE name = ?1";
        first(session, sql, &values![table.name()], |row| {
            Ok(Self {
                table,
                seq: row.integer(0)?,
                hash: row.blob(1)?,
                dropped: row.integer(2)?,
                dropped_hash: row.blob(3)?,
                live: row.integer(4)?,
            })
        })
    }

    /// Starts a chain with the rows that are there: they are older than the chain.
    fn begin(session: &mut dyn SqlSession, table: ProtectedTable) -> Result<Self, Problem> {
        let origin = ORIGIN.as_slice();
        session.execute(
            "INSERT INTO row_chains (name, seq, hash, dropped, dropped_hash, live) VALUES (?1, 0, ?2, 0, ?2, 0)",
            &values![table.name(), origin],
        )?;
        let mut chain =
            Self { table, seq: 0, hash: origin.to_vec(), dropped: 0, dropped_hash: origin.to_vec(), live: 0 };
        for row in all(session, &table.rows(), &[], |row| RowState::read(table, row))? {
            chain.append(session, NEW, row)?;
        }
        Ok(chain)
    }

    fn append(&mut self, session: &mut dyn SqlSession, kind: &str, row: RowState) -> Result<(), Problem> {
        self.live += match kind {
            NEW => 1,
            DELETED => -1,
            _ => 0,
        };
        let mut change = RowChange {
            seq: self.seq + 1,
            kind: kind.to_owned(),
            row,
            live: self.live,
            dropped: self.dropped,
            before: std::mem::take(&mut self.hash),
            hash: Vec::new(),
        };
        change.hash = change.compute_hash(self.table).to_vec();
        let RowChange { seq, kind, row, live, dropped, before, hash } = change;
        session.execute(
            "INSERT INTO row_changes (name, seq, kind, key, part, state, ends, is_final, live, dropped, before, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            &values![
                self.table.name(),
                seq,
                &kind,
                &row.key,
                row.part,
                row.state.as_deref(),
                row.ends.as_deref(),
                row.is_final,
                live,
                dropped,
                before.as_slice(),
                hash.as_slice(),
            ],
        )?;
        (self.seq, self.hash) = (seq, hash);
        Ok(())
    }

    fn save(&self, session: &mut dyn SqlSession) -> Result<(), Problem> {
        session
            .execute(
                "UPDATE row_chains SET seq = ?2, hash = ?3, dropped = ?4, dropped_hash = ?5, live = ?6 WHERE name = ?1",
                &values![
                    self.table.name(),
                    self.seq,
                    self.hash.as_slice(),
                    self.dropped,
                    self.dropped_hash.as_slice(),
                    self.live,
                ],
            )
            .map(drop)
    }

    /// Drops the oldest changes if most changes describe no row any more. Rows whose last change is among them are
    /// carried.
    fn shorten(&mut self, session: &mut dyn SqlSession) -> Result<(), Problem> {
        if self.seq % EVERY != 0 || self.seq - self.dropped <= 2 * self.live + EVERY {
            return Ok(());
        }
        let name = self.table.name();
        let sql = format!(
            "SELECT {CHANGE_COLUMNS}, CASE WHEN EXISTS (SELECT 1 FROM row_changes l WHERE l.name = c.name
                AND l.key = c.key AND l.seq > c.seq) THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END
             FROM row_changes c WHERE name = ?1 ORDER BY seq LIMIT ?2"
        );
        // The newest change stays, so that a chain is never empty.
        let most = BATCH.min(self.seq - self.dropped - 1);
        let oldest =
            all(session, &sql, &values![name, most], |row| Ok((RowChange::read(row)?, row.is_true(11)?)))?;
        let Some((last, _)) = oldest.last() else { return Ok(()) };
        let purged = purged_before(session, self.table)?;
        (self.dropped, self.dropped_hash) = (last.seq, last.hash.clone());
        session.execute("DELETE FROM row_changes WHERE name = ?1 AND seq <= ?2", &values![name, last.seq])?;
        let now = time::text(SystemTime::now());
        for (change, is_replaced) in oldest {
            let is_row = [NEW, REPLACED, CARRIED].contains(&change.kind.as_str());
            if is_replaced || !is_row || change.row.part < purged {
                continue;
            }
            if change.row.ends.as_ref().is_some_and(|ends| *ends <= now) {
                self.append(session, DELETED, RowState { state: None, ..change.row })?;
            } else {
                self.append(session, CARRIED, change.row)?;
            }
        }
        Ok(())
    }
}

/// Returns the first day of a table whose rows were not purged.
fn purged_before(session: &mut dyn SqlSession, table: ProtectedTable) -> Result<i64, Problem> {
    let sql = "SELECT coalesce(max(part), 0) FROM row_changes WHERE name = ?1 AND kind = ?2";
    number(session, sql, &values![table.name(), PURGED])
}

/// Records the present state of a row, after it was written or deleted. The caller has exclusive access to the table.
pub(crate) fn note(
    session: &mut dyn SqlSession,
    table: ProtectedTable,
    id: impl Into<SqlValue>,
) -> Result<(), Problem> {
    let id = id.into();
    let Some(mut chain) = RowChain::find(session, table)? else {
        return RowChain::begin(session, table)?.save(session);
    };
    let sql = format!("{} WHERE {} = ?1", table.rows(), table.id());
    let row = first(session, &sql, std::slice::from_ref(&id), |row| RowState::read(table, row))?;
    let key = match &id {
        SqlValue::Integer(id) => id.to_string(),
        SqlValue::Text(id) => id.clone(),
        SqlValue::Null | SqlValue::Real(_) | SqlValue::Blob(_) => String::new(),
    };
    let sql =
        "SELECT part, ends, is_final, state FROM row_changes WHERE name = ?1 AND key = ?2 AND kind <> ?3
        ORDER BY seq DESC LIMIT 1";
    let last = first(session, sql, &values![table.name(), &key, PURGED], |row| {
        Ok(RowState {
            key: key.clone(),
            part: row.integer(0)?,
            ends: row.maybe_text(1)?,
            is_final: row.integer(2)?,
            state: row.maybe_blob(3)?,
        })
    })?;
    let last = last.filter(|last| last.state.is_some());
    match (row, last) {
        (Some(row), None) => chain.append(session, NEW, row)?,
        (Some(row), Some(last)) if row != last => chain.append(session, REPLACED, row)?,
        (None, Some(last)) => chain.append(session, DELETED, RowState { state: None, ..last })?,
        (Some(_), Some(_)) | (None, None) => return Ok(()),
    }
    chain.shorten(session)?;
    chain.save(session)
}

/// Deletes the rows of the days before `day`, and records it as one change.
pub(crate) fn purge_spending(session: &mut dyn SqlSession, day: i64) -> Result<(), Problem> {
    let table = ProtectedTable::Spending;
    let old = "SELECT EXISTS (SELECT 1 FROM spending WHERE day < ?1)";
    if number(session, old, &values![day])? == 0 {
        return Ok(());
    }
    let mut chain = match RowChain::find(session, table)? {
        Some(chain) => chain,
        None => RowChain::begin(session, table)?,
    };
    let gone = session.execute("DELETE FROM spending WHERE day < ?1", &values![day])?;
    chain.live -= i64::try_from(gone).unwrap_or(i64::MAX);
    let row = RowState { key: "0".to_owned(), part: day, ends: None, is_final: 0, state: None };
    chain.append(session, PURGED, row)?;
    chain.save(session)
}

/// Deletes the rows of a query for ids, and records each.
pub(crate) fn delete_context(
    session: &mut dyn SqlSession,
    condition: &str,
    values: &[SqlValue],
) -> Result<u64, Problem> {
    let mut ids = Vec::new();
    session.for_each(&format!("SELECT id FROM context WHERE {condition}"), values, &mut |row| {
        ids.push(row.integer(0)?);
        Ok(ControlFlow::Continue(()))
    })?;
    let gone = session.execute(&format!("DELETE FROM context WHERE {condition}"), values)?;
    for id in ids {
        note(session, ProtectedTable::Context, id)?;
    }
    Ok(gone)
}
