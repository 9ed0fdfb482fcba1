//! Copies a whole store into an empty one, in batches of rows. Ids and hashes stay, so both stores have the same chains
//! and anchors are valid for both. Rows are copied, counted and verified in one transaction, so the target has all of
//! them or none. Refuses a target that is not empty: two histories cannot be merged.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::audit::{heads_of, verify_all};
use crate::error::{Problem, StoreError};
use crate::sql::{LockedArea, SqlSession, SqlValue, number};
use crate::store::Store;

/// The tables, their sort columns and their columns. A test of `sql::postgres::schema` compares them with those of a file
/// and of a server. `audit_began` is copied apart.
pub(crate) const TABLES: [(&str, &str, &str); 8] = [
    (
        "audit_chains",
        "id",
        "id, owner, kind, seq, hash, bytes, payload_bytes, dropped, dropped_hash, dropped_payloads, dropped_since, dropped_at",
    ),
    (
        "audit",
        "id",
        "id, position, bytes, ts, event, trace_id, module, version, ok, code, model, confidence, risk, latency_ms, input_tokens, output_tokens, receipt, payload, run_id, key, \"user\", tenant, payload_bytes, payload_sha256, chain, seq, dropped, before, hash",
    ),
    (
        "context",
        "id",
        "id, bytes, tenant, \"user\", kind, key, session, input_hash, module, ttl, created, ends, value, pattern",
    ),
    ("spending", "id", "id, day, key, reserved, sent, until"),
    (
        "reviews",
        "id",
        "id, at, run_id, trace_id, key, \"user\", tenant, module, version, model, ok, code, risk, confidence, calibrated, explain, rule, is_open, bytes, input, envelope",
    ),
    ("decisions", "seq", "seq, review, module, model, ok, confidence, verdict, reason, by, at, data"),
    ("row_chains", "name", "name, seq, hash, dropped, dropped_hash, live"),
    (
        "row_changes",
        "name, seq",
        "name, seq, kind, key, part, state, ends, is_final, live, dropped, before, hash",
    ),
];

/// Returns the columns of a table, separated by `, `.
pub(crate) fn columns_of(table: &str) -> &'static str {
    TABLES.iter().find(|(name, ..)| *name == table).map_or("", |(.., columns)| columns)
}

const ALL: &[LockedArea] =
    &[LockedArea::Context, LockedArea::Spending, LockedArea::Reviews, LockedArea::Audit];

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct StoreCopy {
    /// The copied tables.
    pub tables: Vec<CopiedTable>,
    /// The number of audit chains; their ends are the same in both stores.
    pub chains: u64,
    /// The number of audit records verified in the copy.
    pub verified: u64,
}

/// A copied table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CopiedTable {
    /// Its name.
    pub name: &'static str,
    /// The number of rows.
    pub rows: u64,
}

impl Store {
    /// Copies one snapshot of everything into an empty store. The error says which of the two stores failed.
    pub fn copy_into(&self, to: &Self) -> Result<StoreCopy, StoreError> {
        let mut refused = None;
        let copied =
            self.look_at_once(|from| match to.change_synced(ALL, |into| copy_all(from, into, self)) {
                Ok(tables) => Ok(tables),
                Err(error) => {
                    let problem = error.problem().clone();
                    refused = Some(error);
                    Err(problem)
                }
            });
        copied.map_err(|error| refused.take().unwrap_or(error))
    }
}

/// The rows that are read and inserted at once.
const BATCH: usize = 256;
/// The bytes of text that are read and inserted at once. A row may have some megabytes.
const BATCH_BYTES: usize = 1 << 20;

/// Copies all rows and checks the copy. An error undoes everything.
fn copy_all(
    from: &mut dyn SqlSession,
    into: &mut dyn SqlSession,
    source: &Store,
) -> Result<StoreCopy, Problem> {
    let tables = copy(from, into)?;
    let found = verify_all(into)?;
    if let Some(breach) = found.breaches.first() {
        return Err(Problem::Failed(format!("the copy does not verify: {breach}")));
    }
    // The snapshot is as old as the copy is long. Its source must not have gone on meanwhile.
    let now = match source.sibling() {
        Some(sibling) => sibling.heads(),
        None if source.is_on_server() => source.heads(),
        // In memory there is no other process.
        None => Ok(heads_of(from)?),
    };
    if heads_of(into)? != now.map_err(|error| error.problem().clone())? {
        return Err(Problem::Failed(
            "another process wrote into the other store during the copy: the ends of the chains differ"
                .to_owned(),
        ));
    }
    Ok(StoreCopy { tables, chains: found.chains, verified: found.records })
}

fn copy(from: &mut dyn SqlSession, into: &mut dyn SqlSession) -> Result<Vec<CopiedTable>, Problem> {
    for statement in into.dialect().before_copy() {
        into.execute(statement, &[])?;
    }
    for (table, _, _) in TABLES {
        if number(into, &format!("SELECT count(*) FROM {table}"), &[])? > 0 {
            return Err(Problem::Failed(format!("it is not empty: `{table}` has rows")));
        }
    }
    let began = number(from, "SELECT coalesce(max(before_id), 0) FROM audit_began", &[])?;
    into.execute("UPDATE audit_began SET before_id = ?1", &[SqlValue::Integer(began)])?;
    let mut tables = Vec::new();
    for (name, order, columns) in TABLES {
        let (mut rows, mut batch, mut bytes) = (0, Vec::new(), 0);
        from.for_each(&format!("SELECT {columns} FROM {name} ORDER BY {order}"), &[], &mut |row| {
            bytes += row.0.iter().map(SqlValue::size).sum::<usize>();
            batch.push(row.0.clone());
            rows += 1;
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                into.insert(name, columns, std::mem::take(&mut batch))?;
                bytes = 0;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        into.insert(name, columns, batch)?;
        let there = number(into, &format!("SELECT count(*) FROM {name}"), &[])?;
        if u64::try_from(there) != Ok(rows) {
            return Err(Problem::Failed(format!("`{name}` has {there} of {rows} rows")));
        }
        tables.push(CopiedTable { name, rows });
    }
    for statement in into.dialect().after_copy() {
        into.execute(statement, &[])?;
    }
    Ok(tables)
}
