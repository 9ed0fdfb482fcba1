//! A record as read from the database, and its JSON form.

use cognitive_contract::ports::Usage;
use cognitive_contract::text::hex;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::sql::SqlRow;

/// The columns of a row, in the order in which [`Row::read`] reads them.
pub(crate) const COLUMNS: &str = "id, ts, event, trace_id, module, version, ok, code, model, confidence, risk, \
     latency_ms, input_tokens, output_tokens, receipt, payload, run_id, key, \"user\", tenant, \
     payload IS NULL AND payload_sha256 IS NOT NULL, chain, seq, hash, \
     event = 'call' AND NOT EXISTS (SELECT 1 FROM audit AS closing WHERE closing.run_id = audit.run_id \
        AND closing.event = 'run')";

/// One record. As JSON it has the members of the audit format: `ts`, `event`, `trace_id`, `session_id`, `module`,
/// `version`, `outcome` (`ok` or `error`; `asked` or `unfinished` for a call), `code`, `sizes`, `input_hash`; then `model`,
/// `confidence`, `risk`, `latency_ms`, `usage`, `run_id`, `parent_span`, `key`, `user`, `tenant`, `link` and `receipt`. They
/// are always there, as null if unknown. Only `payload` is not, unless the record has one, and `payload_dropped`, unless it had one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// A number that increases with every record.
    pub id: i64,
    /// The end of the run, in RFC 3339 format in UTC.
    pub ts: String,
    /// The kind of event, such as `run`.
    pub event: String,
    /// The trace id, which the envelope and the logs share.
    pub trace_id: String,
    /// The module as requested.
    pub module: String,
    /// The module's version; empty if it was not found.
    pub version: String,
    /// True if the run succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// `provider/model`; empty if no model was called.
    pub model: String,
    /// The confidence of the answer.
    pub confidence: f64,
    /// The risk of the answer.
    pub risk: String,
    /// The duration of the run, in milliseconds.
    pub latency_ms: f64,
    /// The token counts, if known.
    pub usage: Option<Usage>,
    /// The receipt: how the answer was obtained.
    pub receipt: Value,
    /// The input and the envelope, if payloads are recorded.
    pub payload: Option<Value>,
    /// True if the record had a payload that retention dropped.
    pub payload_dropped: bool,
    /// The id shared by the records of one run.
    pub run_id: String,
    /// The name of the API key used by the caller.
    pub key: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// The tenant of the user.
    pub tenant: Option<String>,
    /// The position in its chain; `None` for records from before chains existed.
    pub link: Option<ChainLink>,
    /// True for a call whose run has no record: the process died, or the run is still active.
    pub unfinished: bool,
}

/// Returns the tokens of a record. Cost and cache counts come from the receipt.
fn usage(input_tokens: u64, output_tokens: u64, receipt: &Value) -> Usage {
    let mut usage = receipt.get("usage").map(Usage::from_value).unwrap_or_default();
    (usage.input_tokens, usage.output_tokens) = (input_tokens, output_tokens);
    usage
}

/// The position of a record in its chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChainLink {
    /// The id of the chain.
    pub chain: i64,
    /// The number of the record within the chain.
    pub seq: i64,
    /// The hash, in hexadecimal.
    pub hash: String,
}

impl Row {
    pub(crate) fn read(row: &SqlRow) -> Result<Self, Problem> {
        let counted = row.count(12)?.zip(row.count(13)?);
        let receipt = value(row.text(14)?);
        let usage = counted.map(|(input_tokens, output_tokens)| usage(input_tokens, output_tokens, &receipt));
        Ok(Self {
            id: row.integer(0)?,
            ts: row.text(1)?,
            event: row.text(2)?,
            trace_id: row.text(3)?,
            module: row.text(4)?,
            version: row.text(5)?,
            ok: row.is_true(6)?,
            code: row.maybe_text(7)?,
            model: row.text(8)?,
            confidence: row.real(9)?,
            risk: row.text(10)?,
            latency_ms: row.real(11)?,
            usage,
            receipt,
            payload: row.maybe_text(15)?.map(value),
            run_id: row.text(16)?,
            key: row.maybe_text(17)?,
            user: row.maybe_text(18)?,
            tenant: row.maybe_text(19)?,
            payload_dropped: row.is_true(20)?,
            link: link(row)?,
            unfinished: row.is_true(24)?,
        })
    }

    /// Returns the record as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let text = |text: &str| if text.is_empty() { Value::Null } else { Value::from(text) };
        let from_receipt = |name: &str| self.receipt.get(name).cloned().unwrap_or_default();
        let hash = self.receipt.pointer("/sha256/input").and_then(Value::as_str).unwrap_or_default();
        let mut object: Map<String, Value> = [
            ("ts", Value::from(self.ts.as_str())),
            ("event", Value::from(self.event.as_str())),
            ("trace_id", Value::from(self.trace_id.as_str())),
            ("session_id", from_receipt("session_id")),
            ("module", Value::from(self.module.as_str())),
            ("version", text(&self.version)),
            ("outcome", Value::from(self.outcome())),
            ("code", self.code.as_deref().map_or(Value::Null, Value::from)),
            ("sizes", from_receipt("sizes")),
            ("input_hash", text(hash)),
            ("model", text(&self.model)),
            ("confidence", Value::from(self.confidence)),
            ("risk", text(&self.risk)),
            ("latency_ms", Value::from(self.latency_ms)),
            ("usage", self.usage.map_or(Value::Null, Usage::to_value)),
            ("run_id", text(&self.run_id)),
            ("parent_span", from_receipt("parent_span")),
            ("key", Value::from(self.key.as_deref())),
            ("user", Value::from(self.user.as_deref())),
            ("tenant", Value::from(self.tenant.as_deref())),
            ("link", serde_json::to_value(&self.link).unwrap_or_default()),
            ("receipt", self.receipt.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        if let Some(payload) = &self.payload {
            object.insert("payload".to_owned(), payload.clone());
        }
        if self.payload_dropped {
            object.insert("payload_dropped".to_owned(), Value::Bool(true));
        }
        Value::Object(object)
    }

    fn outcome(&self) -> &'static str {
        match self.event.as_str() {
            "call" if self.unfinished => "unfinished",
            "call" => "asked",
            _ if self.ok => "ok",
            _ => "error",
        }
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

fn link(row: &SqlRow) -> Result<Option<ChainLink>, Problem> {
    let place = row.maybe_integer(21)?.zip(row.maybe_integer(22)?);
    let hash = row.maybe_blob(23)?;
    Ok(place.zip(hash).map(|((chain, seq), hash)| ChainLink { chain, seq, hash: hex(&hash) }))
}

/// Parses stored JSON. Invalid text, from manual edits, is returned as a string.
fn value(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
