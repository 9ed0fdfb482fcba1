//! Copies a whole store into an empty one, row by row. Ids and hashes stay, so both stores have the same chains and
//! anchors are valid for both. Rows are copied and counted in one transaction; then the copy is verified.
//! Refuses a target that is not empty: two histories cannot be merged.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::error::{Problem, StoreError};
use crate::sql::{LockedArea, SqlSession, SqlValue, number};
use crate::store::Store;

/// The tables, their sort columns and their columns. A test of `sql::postgres::schema` compares them with those of a file
/// and of a server. `audit_began` is copied apart.
pub(crate) const TABLES: [(&str, &str, &str); 6] = [
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
];

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
        let copied = self.look_at_once(|from| match to.change_synced(ALL, |into| copy(from, into)) {
            Ok(tables) => Ok(tables),
            Err(error) => {
                let problem = error.problem().clone();
                refused = Some(error);
                Err(problem)
            }
        });
        let tables = copied.map_err(|error| refused.take().unwrap_or(error))?;
        let found = to.verify(&[])?;
        let failed = |why: String| StoreError::new(to.place(), Problem::Failed(why));
        if let Some(breach) = found.breaches.first() {
            return Err(failed(format!("the copy does not verify: {breach}")));
        }
        let (ends, expected) = (to.heads()?, self.heads()?);
        if ends != expected {
            return Err(failed(
                "another process wrote into one of the stores during the copy: the ends of the chains differ"
                    .to_owned(),
            ));
        }
        Ok(StoreCopy { tables, chains: found.chains, verified: found.records })
    }
}

fn copy(from: &mut dyn SqlSession, into: &mut dyn SqlSession) -> Result<Vec<CopiedTable>, Problem> {
    for (table, _, _) in TABLES {
        if number(into, &format!("SELECT count(*) FROM {table}"), &[])? > 0 {
            return Err(Problem::Failed(format!("it is not empty: `{table}` has rows")));
        }
    }
    let began = number(from, "SELECT coalesce(max(before_id), 0) FROM audit_began", &[])?;
    into.execute("UPDATE audit_began SET before_id = ?1", &[SqlValue::Integer(began)])?;
    let mut tables = Vec::new();
    for (name, order, columns) in TABLES {
        let marks: Vec<String> = (1..=columns.split(", ").count()).map(|place| format!("?{place}")).collect();
        let insert = format!("INSERT INTO {name} ({columns}) VALUES ({})", marks.join(", "));
        let mut rows = 0;
        from.each(&format!("SELECT {columns} FROM {name} ORDER BY {order}"), &[], &mut |row| {
            into.execute(&insert, &row.0)?;
            rows += 1;
            Ok(ControlFlow::Continue(()))
        })?;
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
