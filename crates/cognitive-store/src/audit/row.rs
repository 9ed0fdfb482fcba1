//! A record as it comes back, and the JSON object that stands for it outside.

use cognitive_contract::ports::Usage;
use cognitive_contract::text::hex;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::sql::SqlRow;

/// The columns of a row, in the order in which [`Row::read`] takes them.
pub(crate) const COLUMNS: &str = "id, ts, event, trace_id, module, version, ok, code, model, confidence, risk, \
     latency_ms, input_tokens, output_tokens, receipt, payload, run_id, key, \"user\", tenant, \
     payload IS NULL AND payload_sha256 IS NOT NULL, chain, seq, hash, \
     event = 'call' AND NOT EXISTS (SELECT 1 FROM audit AS closing WHERE closing.run_id = audit.run_id \
        AND closing.event = 'run')";

/// One record. As JSON it has the members of the audit format: `ts`, `event`, `trace_id`, `session_id`, `module`,
/// `version`, `outcome` (`ok` or `error`; `asked` or `unfinished` for a call), `code`, `sizes`, `input_hash`; then `model`,
/// `confidence`, `risk`, `latency_ms`, `usage`, `run_id`, `key`, `user`, `tenant`, `link` and `receipt`. They are always
/// there, as null if unknown. Only `payload` is not, unless the record has one, and `payload_dropped`, unless it had one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// Counts up with every record; the later of two has the higher one.
    pub id: i64,
    /// When the run ended, as of RFC 3339 in UTC.
    pub ts: String,
    /// What happened, such as `run`.
    pub event: String,
    /// The id that envelope and logs share.
    pub trace_id: String,
    /// The module as it was asked for.
    pub module: String,
    /// The module's version; empty if it was not found.
    pub version: String,
    /// Whether the run succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// `provider/model`; empty if no model was asked.
    pub model: String,
    /// How sure the answer was.
    pub confidence: f64,
    /// How risky it was.
    pub risk: String,
    /// How long the run took.
    pub latency_ms: f64,
    /// Tokens, if known.
    pub usage: Option<Usage>,
    /// How the answer was obtained.
    pub receipt: Value,
    /// Input and envelope, if they were to be kept.
    pub payload: Option<Value>,
    /// Whether there was one that had to make room.
    pub payload_dropped: bool,
    /// What the records of one run share.
    pub run_id: String,
    /// The name of the key that was shown to a server.
    pub key: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// The tenant of the user.
    pub tenant: Option<String>,
    /// Where it stands in its chain; nothing for records of before there were chains.
    pub link: Option<ChainLink>,
    /// Whether it is a call whose run left no record: the process died, or it still goes on.
    pub unfinished: bool,
}

/// The tokens of a record. Of what they cost, and of the service's cache, the receipt knows.
fn usage(input_tokens: u64, output_tokens: u64, receipt: &Value) -> Usage {
    let told = receipt.get("usage").map(Usage::from_value).unwrap_or_default();
    Usage { input_tokens, output_tokens, ..told }
}

/// The place of a record in its chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChainLink {
    /// Which chain.
    pub chain: i64,
    /// The how many-th of it.
    pub seq: i64,
    /// Its hash, in hexadecimal digits.
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

    /// The record as a JSON object.
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

/// Text that somebody made unreadable by hand is still shown.
fn value(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
