//! Queries on past runs, for pages and charts. Filters and statistics use one covering index and read no receipts;
//! only the runs of a page are read themselves.

mod figures;
mod waterfall;

use std::sync::{Arc, OnceLock};

use cognitive_contract::ports::Usage;
use cognitive_ports::archive::{ArchivedRun, RunArchive, RunDetails, RunFilter, RunPage, RunStats};
use serde_json::Value;

use crate::audit::{COLUMNS, Filter, Row, SqlFilter, WHERE, dollars};
use crate::error::Problem;
use crate::sql::{SqlDialect, SqlRow, all, first, values};
use crate::store::Store;

/// The default page size.
const USUAL: usize = 50;
/// The largest page size. All of a page is held in memory.
const MOST: usize = 500;
/// The most records of a trace in a result. A trace of a large composition may have any number.
const RECORDS: i64 = 1_000;

/// The columns of a run in one line, in the order in which [`in_one_line`] takes them; what it cost and the runs above it follow.
const LINE: &str =
    "id, event, run_id, trace_id, ts, module, version, model, ok, code, risk, confidence, latency_ms,
    input_tokens, output_tokens, key, \"user\", payload IS NOT NULL";

/// Converts a run filter into an audit filter.
fn filter(asked: &RunFilter) -> Result<Filter, String> {
    let before = match &asked.cursor {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| format!("unknown cursor: `{text}`"))?),
    };
    let RunFilter { min_confidence, max_confidence, ok, since, until, .. } = *asked;
    let RunFilter { module, model, risk, code, key, user, tenant, limit, .. } = asked.clone();
    let mut filter = Filter {
        runs: true,
        module,
        model,
        risk,
        min_confidence,
        max_confidence,
        code,
        ok,
        ..Filter::default()
    };
    (filter.key, filter.user, filter.tenant) = (key, user, tenant);
    (filter.since, filter.until, filter.before, filter.limit) = (since, until, before, limit);
    Ok(filter)
}

/// The runs in the audit of a store. Reads through a separate connection, so that a slow page never delays a writer.
#[derive(Debug)]
pub struct AuditArchive {
    store: Arc<Store>,
    own: OnceLock<Option<Store>>,
}

impl AuditArchive {
    /// Creates the archive of a store.
    #[must_use]
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, own: OnceLock::new() }
    }

    /// Returns the `SQLite` statements, for inspection of their query plans.
    #[must_use]
    pub fn statements() -> [String; 2] {
        [page_sql(SqlDialect::Sqlite), figures::sql(SqlDialect::Sqlite)]
    }

    fn store(&self) -> &Store {
        self.own.get_or_init(|| self.store.sibling()).as_ref().unwrap_or(&self.store)
    }
}

/// Returns the statement for a page. The unary `+` prevents a scan of the table in id order.
fn page_sql(dialect: SqlDialect) -> String {
    format!(
        "SELECT {LINE}, {}, {} FROM audit WHERE id IN
            (SELECT id FROM audit WHERE {WHERE} ORDER BY +id DESC LIMIT ?16) ORDER BY id DESC",
        dialect.cost(),
        dialect.parent_span()
    )
}

impl RunArchive for AuditArchive {
    fn runs(&self, asked: &RunFilter) -> Result<RunPage, String> {
        let limit = asked.limit.unwrap_or(USUAL).clamp(1, MOST);
        let filter = Filter { limit: Some(limit + 1), ..filter(asked)? };
        let bound = SqlFilter::new(&filter);
        let found = self.store().look(|session| {
            let sql = page_sql(session.dialect());
            all(session, &sql, &bound.values(), in_one_line)
        });
        let mut found = found.map_err(|error| error.to_string())?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|(id, _)| id.to_string());
        Ok(RunPage { runs: found.into_iter().map(|(_, run)| run).collect(), next })
    }

    fn run(&self, run_id: &str, key: Option<&str>) -> Result<Option<RunDetails>, String> {
        if run_id.is_empty() {
            return Ok(None);
        }
        let trace = format!("SELECT {COLUMNS} FROM audit WHERE trace_id = ?1 ORDER BY id LIMIT ?2");
        let found = self.store().look(|session| {
            // The record of the run's end, or its first call if it has none.
            let one = format!(
                "SELECT {LINE}, {}, {} FROM audit WHERE run_id = ?1 AND event IN ('run', 'call')
                 ORDER BY event = 'run' DESC, id LIMIT 1",
                session.dialect().cost(),
                session.dialect().parent_span()
            );
            let Some((id, run)) = first(session, &one, &values![run_id], in_one_line)? else {
                return Ok(None);
            };
            let rows = all(session, &trace, &values![&run.trace_id, RECORDS], Row::read)?;
            Ok(Some((id, run, rows)))
        });
        let Some((id, run, mut rows)) = found.map_err(|error| error.to_string())? else { return Ok(None) };
        if let Some(key) = key {
            // Clients can share a trace. The records of the others must neither show nor hide anything.
            if run.key.as_deref() != Some(key) {
                return Ok(None);
            }
            rows.retain(|row| row.key.as_deref() == Some(key));
        }
        let tree = if run.unfinished { None } else { waterfall::build(&rows, id) };
        let payload = rows.iter().find(|row| row.id == id).and_then(|row| row.payload.as_ref());
        let part = |name: &str| payload.and_then(|payload| payload.get(name)).cloned();
        let (input, envelope) = (part("input"), part("envelope"));
        // Input and envelope are returned in separate members.
        let without_payload = |row: &Row| {
            let mut record = row.to_json();
            if let Value::Object(members) = &mut record {
                members.shift_remove("payload");
            }
            record
        };
        Ok(Some(RunDetails {
            run,
            records: rows.iter().map(without_payload).collect(),
            tree,
            input,
            envelope,
        }))
    }

    fn stats(&self, asked: &RunFilter, buckets: usize) -> Result<RunStats, String> {
        let filter = Filter { limit: None, before: None, ..filter(asked)? };
        figures::load(self.store(), &filter, buckets).map_err(|error| error.to_string())
    }
}

/// Reads a run summary and the id of its record.
fn in_one_line(row: &SqlRow) -> Result<(i64, ArchivedRun), Problem> {
    let cost = dollars(row, 18);
    let counted = row.count(13)?.zip(row.count(14)?);
    let usage = counted.map(|(input, output)| Usage::new(input, output).with_cost(cost));
    let run = ArchivedRun {
        run_id: row.text(2)?,
        trace_id: row.text(3)?,
        ts: row.text(4)?,
        module: row.text(5)?,
        version: row.text(6)?,
        model: row.text(7)?,
        ok: row.is_true(8)?,
        code: row.maybe_text(9)?,
        risk: row.text(10)?,
        confidence: row.real(11)?,
        latency_ms: row.real(12)?,
        usage,
        cost,
        key: row.maybe_text(15)?,
        user: row.maybe_text(16)?,
        has_payload: row.is_true(17)?,
        unfinished: row.str(1)? == "call",
        parent_span: row.maybe_text(19).ok().flatten(),
    };
    Ok((row.integer(0)?, run))
}
