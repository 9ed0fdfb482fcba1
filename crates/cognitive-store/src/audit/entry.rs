//! Converts a record to columns, before the lock is taken. Truncates overlong text from callers and models, and marks
//! the omission.

use cognitive_contract::ports::AuditRecord;
use cognitive_contract::text::cut;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::chain::Chain;
use crate::sql::{SqlValue as Value, to_signed};
use crate::time;

/// The longest name, id or code, in characters. Callers control some of them.
const SHORT: usize = 256;
/// The largest receipt, in bytes, so that one record cannot evict all others.
const RECEIPT: usize = 256 << 10;
/// The largest member kept in a receipt above the limit, in bytes. Larger ones are replaced with a note, so that the
/// others survive.
const MEMBER: usize = 16 << 10;
/// The largest payload, in bytes. One of them must not evict the payloads of many other runs.
const PAYLOAD: usize = 4 << 20;
/// The approximate size of a row without its texts, in bytes.
const OVERHEAD: usize = 256;

/// The columns of the facts, in the order in which they are hashed and stored in [`NewAuditRow::facts`].
pub(super) const FACTS: [&str; 19] = [
    "ts",
    "event",
    "trace_id",
    "run_id",
    "key",
    "\"user\"",
    "tenant",
    "module",
    "version",
    "ok",
    "code",
    "model",
    "confidence",
    "risk",
    "latency_ms",
    "input_tokens",
    "output_tokens",
    "receipt",
    "payload_sha256",
];

/// A record to be written.
pub(super) struct NewAuditRow {
    /// The owner whose limits apply.
    pub(super) owner: String,
    /// `runs` or `details`.
    pub(super) kind: &'static str,
    /// The values of [`FACTS`].
    pub(super) facts: [Value; FACTS.len()],
    /// The time of the record, as text.
    pub(super) ts: String,
    /// The size of the record without its payload.
    pub(super) bytes: i64,
    pub(super) payload: Option<String>,
    /// The number of expired records of its chain, if this record reports a sweep.
    pub(super) swept: i64,
}

/// The event of a record that reports a retention sweep of its chain.
pub(super) const SWEPT: &str = "retention";

/// The kind of runs and calls.
pub(super) const RUNS: &str = "runs";
/// The kind of events within runs.
pub(super) const DETAILS: &str = "details";

impl NewAuditRow {
    pub(super) fn from_record(record: &AuditRecord) -> Self {
        let text = |text: &str| Value::Text(writable(cut(text, SHORT)));
        let maybe = |given: &Option<String>| given.as_deref().map_or(Value::Null, text);
        let tokens = |count: Option<u64>| count.map_or(Value::Null, |count| Value::Integer(to_signed(count)));
        let ts = time::text(record.at);
        let payload = record.payload.as_ref().map(bounded_json);
        let hash = payload.as_ref().map(|payload| Sha256::digest(payload.as_bytes()).to_vec());
        let facts = [
            Value::Text(ts.clone()),
            text(record.event),
            text(&record.trace_id),
            text(&record.run_id),
            maybe(&record.key),
            maybe(&record.user),
            maybe(&record.tenant),
            text(&record.module),
            text(&record.version),
            Value::Integer(i64::from(record.ok)),
            maybe(&record.code),
            text(&record.model),
            Value::Real(finite(record.confidence)),
            text(&record.risk),
            Value::Real(finite(record.latency_ms)),
            tokens(record.usage.map(|usage| usage.input_tokens)),
            tokens(record.usage.map(|usage| usage.output_tokens)),
            Value::Text(short_receipt(&record.receipt)),
            hash.map_or(Value::Null, Value::Blob),
        ];
        let kind = if record.is_detail() { DETAILS } else { RUNS };
        let owner = writable(cut(&record.owner(), SHORT));
        let bytes = length(OVERHEAD + facts.iter().map(Value::size).sum::<usize>());
        Self { owner, kind, facts, ts, bytes, payload, swept: 0 }
    }

    /// Creates a record that reports `count` expired records of a chain.
    pub(super) fn sweep_record(chain: &Chain, ts: &str, count: i64) -> Self {
        let text = |text: &str| Value::Text(text.to_owned());
        let named = |kind: &str| chain.owner.strip_prefix(kind).map_or(Value::Null, text);
        let receipt = json!({ "dropped": count }).to_string();
        let facts = [
            text(ts),
            text(SWEPT),
            text(""),
            text(""),
            named("key:"),
            Value::Null,
            named("tenant:"),
            text(""),
            text(""),
            Value::Integer(1),
            Value::Null,
            text(""),
            Value::Real(0.0),
            text(""),
            Value::Real(0.0),
            Value::Null,
            Value::Null,
            Value::Text(receipt),
            Value::Null,
        ];
        let kind = if chain.kind == DETAILS { DETAILS } else { RUNS };
        let bytes = length(OVERHEAD + facts.iter().map(Value::size).sum::<usize>());
        Self {
            owner: chain.owner.clone(),
            kind,
            facts,
            ts: ts.to_owned(),
            bytes,
            payload: None,
            swept: count,
        }
    }

    pub(super) fn payload_bytes(&self) -> i64 {
        length(self.payload.as_ref().map_or(0, String::len))
    }
}

/// Replaces zero characters, which PostgreSQL cannot store. Applied for every backend, so that records are identical.
pub(crate) fn writable(text: &str) -> String {
    if text.as_bytes().contains(&0) { text.replace('\0', "\u{fffd}") } else { text.to_owned() }
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Replaces non-finite numbers with 0: `SQLite` stores NaN as NULL, which the column refuses, and JSON has neither
/// NaN nor infinity. Adding 0.0 drops the sign of zero, which `SQLite` does not store.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number + 0.0 } else { 0.0 }
}

/// Serialises a payload. One above the limit is replaced with a note.
fn bounded_json(value: &Json) -> String {
    let text = encode(value);
    if text.len() <= PAYLOAD { text } else { omission_note(text.len(), PAYLOAD).to_string() }
}

/// Serialises a value. Its `to_string` does the same through a formatter, which is slower.
fn encode(value: &Json) -> String {
    // The keys of a value are strings, so this cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn omission_note(found: usize, limit: usize) -> Json {
    json!({ "omitted": format!("{found} bytes, above the limit of {limit}") })
}

/// Serialises a receipt. Above the limit, its large members are replaced with notes; hashes and sizes stay.
fn short_receipt(receipt: &Json) -> String {
    let text = encode(receipt);
    let Json::Object(members) = receipt else {
        return if text.len() <= RECEIPT { text } else { omission_note(text.len(), RECEIPT).to_string() };
    };
    if text.len() <= RECEIPT {
        return text;
    }
    let shorter = |(name, value): (&String, &Json)| {
        let long = value.to_string().len();
        (name.clone(), if long <= MEMBER { value.clone() } else { omission_note(long, MEMBER) })
    };
    let short = Json::Object(members.iter().map(shorter).collect()).to_string();
    if short.len() <= RECEIPT { short } else { omission_note(text.len(), RECEIPT).to_string() }
}
