//! Keeps a record and lets the oldest go. Both happen in one transaction, so the limits hold after every write.

use cognitive_contract::ports::{AuditLog, AuditRecord};
use cognitive_contract::text::cut;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, named_params};
use serde_json::{Value, json};

use crate::store::{Retention, Store};
use crate::time;

/// The longest name, id or code that is kept, in characters. Callers can put anything into some of them.
const SHORT: usize = 256;
/// The longest receipt or payload that is kept, in bytes; one record must not push out all others.
const LONG: usize = 4 << 20;
/// What a row costs besides its texts, roughly.
const OVERHEAD: usize = 128;
/// The most that one write removes, so that a lowered limit does not make it slow.
const BATCH: u32 = 64;

impl AuditLog for Store {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        let entry = Entry::of(record);
        let retention = self.retention();
        self.with(|connection| keep(connection, &entry, retention)).map_err(|error| error.to_string())
    }
}

/// A record as columns, prepared before the lock is taken.
struct Entry<'a> {
    ts: String,
    event: &'a str,
    trace_id: &'a str,
    module: &'a str,
    version: &'a str,
    ok: bool,
    code: Option<&'a str>,
    model: &'a str,
    confidence: f64,
    risk: &'a str,
    latency_ms: f64,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    receipt: String,
    payload: Option<String>,
}

impl<'a> Entry<'a> {
    fn of(record: &'a AuditRecord) -> Self {
        Self {
            ts: time::text(record.at),
            event: record.event,
            trace_id: cut(&record.trace_id, SHORT),
            module: cut(&record.module, SHORT),
            version: cut(&record.version, SHORT),
            ok: record.ok,
            code: record.code.as_deref().map(|code| cut(code, SHORT)),
            model: cut(&record.model, SHORT),
            confidence: finite(record.confidence),
            risk: cut(&record.risk, SHORT),
            latency_ms: finite(record.latency_ms),
            input_tokens: record.usage.map(|usage| whole(usage.input_tokens)),
            output_tokens: record.usage.map(|usage| whole(usage.output_tokens)),
            receipt: bounded(&record.receipt),
            payload: record.payload.as_ref().map(bounded),
        }
    }

    fn bytes(&self) -> i64 {
        let short = [self.event, self.trace_id, self.module, self.version, self.model, self.risk];
        let texts = short.iter().map(|text| text.len()).sum::<usize>();
        let long = self.receipt.len() + self.payload.as_ref().map_or(0, String::len);
        let code = self.code.map_or(0, str::len);
        i64::try_from(OVERHEAD + self.ts.len() + texts + code + long).unwrap_or(i64::MAX)
    }
}

/// `SQLite` turns NaN into NULL, which the column refuses, and JSON knows neither NaN nor infinity.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

/// `SQLite` has no unsigned integers.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// JSON as text. What is too long is left out, and the record says so.
fn bounded(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= LONG {
        return text;
    }
    json!({ "omitted": format!("{} bytes, above the limit of {LONG}", text.len()) }).to_string()
}

/// Where the rows begin and end.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    id: i64,
    position: i64,
    bytes: i64,
}

fn keep(connection: &mut Connection, entry: &Entry<'_>, retention: Retention) -> rusqlite::Result<()> {
    // Immediate: two writers that both begin by reading could not both go on.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let last = mark(&transaction, "SELECT id, position, bytes FROM audit ORDER BY id DESC LIMIT 1")?;
    let new = Mark {
        id: last.id.saturating_add(1),
        position: last.position.saturating_add(last.bytes),
        bytes: entry.bytes(),
    };
    insert(&transaction, new, entry)?;
    let first = mark(&transaction, "SELECT id, position, bytes FROM audit ORDER BY id LIMIT 1")?;
    remove_oldest(&transaction, first, new, retention)?;
    transaction.commit()
}

fn mark(transaction: &Transaction<'_>, sql: &str) -> rusqlite::Result<Mark> {
    let row =
        |row: &rusqlite::Row<'_>| Ok(Mark { id: row.get(0)?, position: row.get(1)?, bytes: row.get(2)? });
    Ok(transaction.prepare_cached(sql)?.query_row([], row).optional()?.unwrap_or_default())
}

fn insert(transaction: &Transaction<'_>, at: Mark, entry: &Entry<'_>) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO audit (id, position, bytes, ts, event, trace_id, module, version, ok, code, model, confidence,
            risk, latency_ms, input_tokens, output_tokens, receipt, payload)
         VALUES (:id, :position, :bytes, :ts, :event, :trace_id, :module, :version, :ok, :code, :model, :confidence,
            :risk, :latency_ms, :input_tokens, :output_tokens, :receipt, :payload)",
    )?;
    statement.execute(named_params! {
        ":id": at.id,
        ":position": at.position,
        ":bytes": at.bytes,
        ":ts": entry.ts,
        ":event": entry.event,
        ":trace_id": entry.trace_id,
        ":module": entry.module,
        ":version": entry.version,
        ":ok": entry.ok,
        ":code": entry.code,
        ":model": entry.model,
        ":confidence": entry.confidence,
        ":risk": entry.risk,
        ":latency_ms": entry.latency_ms,
        ":input_tokens": entry.input_tokens,
        ":output_tokens": entry.output_tokens,
        ":receipt": entry.receipt,
        ":payload": entry.payload,
    })?;
    Ok(())
}

fn remove_oldest(
    transaction: &Transaction<'_>,
    first: Mark,
    new: Mark,
    retention: Retention,
) -> rusqlite::Result<()> {
    // Rows below either line are too old. The newest is never below.
    let id = new.id.saturating_sub(whole(retention.records.max(1))).saturating_add(1).min(new.id);
    let end = new.position.saturating_add(new.bytes);
    let position = end.saturating_sub(whole(retention.bytes)).min(new.position);
    if first.id >= id && first.position >= position {
        return Ok(());
    }
    // The inner select keeps SQLite from searching the whole table for more.
    transaction
        .prepare_cached(
            "DELETE FROM audit WHERE id IN (
                SELECT id FROM (SELECT id, position FROM audit ORDER BY id LIMIT ?1) WHERE id < ?2 OR position < ?3)",
        )?
        .execute((BATCH, id, position))?;
    Ok(())
}
