//! A record as columns, prepared before the lock is taken. What callers and models make too long is cut here, and says so.

use cognitive_contract::ports::AuditRecord;
use cognitive_contract::text::cut;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::chain::Chain;
use crate::sql::{SqlValue as Value, whole};
use crate::time;

/// The longest name, id or code that is kept, in characters. Callers can put anything into some of them.
const SHORT: usize = 256;
/// The longest receipt that is kept, in bytes: one record must not push out all others.
const RECEIPT: usize = 256 << 10;
/// A member of a longer receipt that is longer than this goes.
const MEMBER: usize = 16 << 10;
/// The longest payload that is kept, in bytes.
const PAYLOAD: usize = 4 << 20;
/// What a row costs besides its texts, roughly.
const OVERHEAD: usize = 256;

/// The columns that say what happened, in the order in which they are hashed and [`NewAuditRow::facts`] gives them.
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

/// A record that is about to be kept.
pub(super) struct NewAuditRow {
    /// Whose budget it counts against.
    pub(super) owner: String,
    /// `runs` or `details`.
    pub(super) kind: &'static str,
    /// See [`FACTS`].
    pub(super) facts: [Value; FACTS.len()],
    /// When it happened, as text.
    pub(super) ts: String,
    /// What it costs, its payload apart.
    pub(super) bytes: i64,
    pub(super) payload: Option<String>,
    /// How many records of its chain had become too old when it was written.
    pub(super) swept: i64,
}

/// The event that says that records of a chain had become too old and went.
pub(super) const SWEPT: &str = "retention";

/// Runs and calls.
pub(super) const RUNS: &str = "runs";
/// What happened in runs.
pub(super) const DETAILS: &str = "details";

impl NewAuditRow {
    pub(super) fn of(record: &AuditRecord) -> Self {
        let text = |text: &str| Value::Text(writable(cut(text, SHORT)));
        let maybe = |given: &Option<String>| given.as_deref().map_or(Value::Null, text);
        let tokens = |count: Option<u64>| count.map_or(Value::Null, |count| Value::Integer(whole(count)));
        let ts = time::text(record.at);
        let payload = record.payload.as_ref().map(bounded);
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
        let bytes = length(OVERHEAD + facts.iter().map(size).sum::<usize>());
        Self { owner, kind, facts, ts, bytes, payload, swept: 0 }
    }

    /// A record of the audit about itself: so many of a chain had become too old.
    pub(super) fn swept(chain: &Chain, ts: &str, count: i64) -> Self {
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
        let bytes = length(OVERHEAD + facts.iter().map(size).sum::<usize>());
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

/// PostgreSQL has no text with a zero in it. A record is the same wherever it is kept.
pub(crate) fn writable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// `SQLite` turns NaN into NULL, which the column refuses, and JSON knows neither NaN nor infinity. It does not keep the
/// sign of zero either.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number + 0.0 } else { 0.0 }
}

/// A payload as text. What is too long is left out, and the record says so.
fn bounded(value: &Json) -> String {
    let text = value.to_string();
    if text.len() <= PAYLOAD { text } else { omitted(text.len(), PAYLOAD).to_string() }
}

fn omitted(found: usize, limit: usize) -> Json {
    json!({ "omitted": format!("{found} bytes, above the limit of {limit}") })
}

/// A receipt as text. Where it is too long, its long members are left out: hashes and sizes stay.
fn short_receipt(receipt: &Json) -> String {
    let text = receipt.to_string();
    let Json::Object(members) = receipt else {
        return if text.len() <= RECEIPT { text } else { omitted(text.len(), RECEIPT).to_string() };
    };
    if text.len() <= RECEIPT {
        return text;
    }
    let shorter = |(name, value): (&String, &Json)| {
        let long = value.to_string().len();
        (name.clone(), if long <= MEMBER { value.clone() } else { omitted(long, MEMBER) })
    };
    let short = Json::Object(members.iter().map(shorter).collect()).to_string();
    if short.len() <= RECEIPT { short } else { omitted(text.len(), RECEIPT).to_string() }
}
