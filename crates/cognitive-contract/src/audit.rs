//! One line in the books: a run, or something that happened in one. Carries no payload unless asked to, and never a value
//! of context, of a tool or of a medium.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::code::ErrorCode;
use crate::context::Access;
use crate::envelope::Envelope;
use crate::ports::Usage;
use crate::tools::{ToolOutcome, ToolUse};

/// One run in the books. Carries no payload unless asked to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// When the run ended.
    pub at: SystemTime,
    /// What happened: `run`, `context_access`, `media_fetch`, `tool_call`, `policy_denied`.
    pub event: &'static str,
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
    /// Confidence, risk and latency, for statistics without payload.
    pub confidence: f64,
    /// See `confidence`.
    pub risk: String,
    /// See `confidence`.
    pub latency_ms: f64,
    /// Tokens, if known.
    pub usage: Option<Usage>,
    /// How the answer was obtained.
    pub receipt: Value,
    /// Input and envelope, only when asked for.
    pub payload: Option<Value>,
}

impl AuditRecord {
    /// A record of something that happened in a run.
    fn of(
        event: &'static str,
        at: SystemTime,
        trace_id: &str,
        module: &str,
        ok: bool,
        receipt: Value,
    ) -> Self {
        Self {
            at,
            event,
            trace_id: trace_id.to_owned(),
            module: module.to_owned(),
            version: String::new(),
            ok,
            code: None,
            model: String::new(),
            confidence: 0.0,
            risk: String::new(),
            latency_ms: 0.0,
            usage: None,
            receipt,
            payload: None,
        }
    }

    /// A record with what every run has.
    #[must_use]
    pub fn new(at: SystemTime, trace_id: &str, module: &str, envelope: &Envelope) -> Self {
        Self {
            code: envelope.error().map(|error| error.code().to_owned()),
            confidence: envelope.meta().confidence.get(),
            risk: envelope.meta().risk.level().word().to_owned(),
            ..Self::of("run", at, trace_id, module, envelope.ok(), Value::Null)
        }
    }

    /// A record of a tool that a model asked for: which, how it went, how long it took; no values. (S-22, POL-004)
    #[must_use]
    pub fn tool_call(at: SystemTime, trace_id: &str, module: &str, used: &ToolUse) -> Self {
        let denied = matches!(used.outcome, ToolOutcome::Denied);
        let event = if denied { "policy_denied" } else { "tool_call" };
        let ok = used.outcome == ToolOutcome::Ok;
        Self {
            code: denied.then(|| ErrorCode::PermissionDenied.number().to_owned()),
            latency_ms: used.elapsed.as_secs_f64() * 1_000.0,
            ..Self::of(event, at, trace_id, module, ok, json!({ "tool": used }))
        }
    }

    /// A record of the media that were fetched for a run: kinds, sizes and hashes, no addresses. (S-22)
    #[must_use]
    pub fn media_fetch(at: SystemTime, trace_id: &str, module: &str, ok: bool, receipt: Value) -> Self {
        Self::of("media_fetch", at, trace_id, module, ok, receipt)
    }

    /// A record of the context that a model got: types, sizes and a hash, no values. (CTX-043)
    #[must_use]
    pub fn context_access(
        at: SystemTime,
        trace_id: &str,
        module: &str,
        access: &Access,
        input_sha256: &str,
    ) -> Self {
        let receipt = json!({ "sizes": access.sizes, "sha256": { "input": input_sha256 } });
        Self::of("context_access", at, trace_id, module, true, receipt)
    }
}
