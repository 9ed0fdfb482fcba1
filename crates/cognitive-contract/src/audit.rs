//! One audit record: a run, a request to a model, or another event of a run. Contains no payload unless
//! requested, and never a value of context, of a tool or of a media item.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::code::ErrorCode;
use crate::context::Access;
use crate::envelope::Envelope;
use crate::tools::{ToolOutcome, ToolUse};
use crate::usage::Usage;

/// The event of a finished run.
const RUN: &str = "run";
/// The event of a request to a model, recorded just before it is sent.
const CALL: &str = "call";

/// One record. Contains no payload unless requested.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// The time of the event; for a run, its end.
    pub at: SystemTime,
    /// The event: `run`, `call`, `context_access`, `media_fetch`, `tool_call`, `policy_denied`, or one of
    /// [`change`](AuditRecord::change).
    pub event: &'static str,
    /// The id that envelope and logs share.
    pub trace_id: String,
    /// The id that all records of one run share; a trace may have several runs. Empty if unknown.
    pub run_id: String,
    /// The name of the caller's API key, if the server has keys.
    pub key: Option<String>,
    /// The user, if known.
    pub user: Option<String>,
    /// The tenant of the user, if there are tenants.
    pub tenant: Option<String>,
    /// The module as the caller named it.
    pub module: String,
    /// The module's version; empty if the module was not found.
    pub version: String,
    /// True if the run succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// `provider/model`; empty if no model was called.
    pub model: String,
    /// Confidence, risk and latency, for statistics without payload.
    pub confidence: f64,
    /// See `confidence`.
    pub risk: String,
    /// See `confidence`.
    pub latency_ms: f64,
    /// Tokens, if known.
    pub usage: Option<Usage>,
    /// A receipt: how the answer was obtained.
    pub receipt: Value,
    /// Input and envelope, only if requested.
    pub payload: Option<Value>,
}

impl AuditRecord {
    /// A record of an event of a run.
    fn for_event(
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
            run_id: String::new(),
            key: None,
            user: None,
            tenant: None,
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

    /// The record of a finished run, with the fields that every run has.
    #[must_use]
    pub fn new(at: SystemTime, trace_id: &str, module: &str, envelope: &Envelope) -> Self {
        Self {
            code: envelope.error().map(|error| error.code().to_owned()),
            confidence: envelope.meta().confidence.get(),
            risk: envelope.meta().risk.level().word().to_owned(),
            ..Self::for_event(RUN, at, trace_id, module, envelope.ok(), Value::Null)
        }
    }

    /// A record of a request that is about to be sent to a model: the model, the destination and its number
    /// within the run. The record of the run holds the outcome; a call without one is unfinished.
    #[must_use]
    pub fn call(at: SystemTime, trace_id: &str, module: &str, receipt: Value) -> Self {
        Self::for_event(CALL, at, trace_id, module, false, receipt)
    }

    /// A record of an action of a person outside any run: a login, an edit of a module.
    #[must_use]
    pub fn change(event: &'static str, at: SystemTime, trace_id: &str, module: &str, receipt: Value) -> Self {
        Self::for_event(event, at, trace_id, module, true, receipt)
    }

    /// Returns the owner whose retention budget the record uses: the tenant, else the key, else the local user
    /// (empty). Records of one owner never evict those of another.
    #[must_use]
    pub fn owner(&self) -> String {
        match (&self.tenant, &self.key) {
            (Some(tenant), _) => format!("tenant:{tenant}"),
            (None, Some(key)) => format!("key:{key}"),
            (None, None) => String::new(),
        }
    }

    /// Returns whether the record is about an event within a run, not about a run or a call. Details can be
    /// numerous, so they never evict runs or calls.
    #[must_use]
    pub fn is_detail(&self) -> bool {
        !matches!(self.event, RUN | CALL)
    }

    /// A record of a tool call that a model requested: tool, outcome and duration, no values. (S-22, POL-004)
    #[must_use]
    pub fn tool_call(at: SystemTime, trace_id: &str, module: &str, used: &ToolUse) -> Self {
        let denied = matches!(used.outcome, ToolOutcome::Denied);
        let event = if denied { "policy_denied" } else { "tool_call" };
        let ok = used.outcome == ToolOutcome::Ok;
        Self {
            code: denied.then(|| ErrorCode::PermissionDenied.number().to_owned()),
            latency_ms: used.elapsed.as_secs_f64() * 1_000.0,
            ..Self::for_event(event, at, trace_id, module, ok, json!({ "tool": used }))
        }
    }

    /// A record of the media fetched for a run: kinds, sizes and hashes, no URLs. (S-22)
    #[must_use]
    pub fn media_fetch(at: SystemTime, trace_id: &str, module: &str, ok: bool, receipt: Value) -> Self {
        Self::for_event("media_fetch", at, trace_id, module, ok, receipt)
    }

    /// A record of the context given to a model: types, sizes and a hash, no values. (CTX-043)
    #[must_use]
    pub fn context_access(
        at: SystemTime,
        trace_id: &str,
        module: &str,
        access: &Access,
        input_sha256: &str,
    ) -> Self {
        let receipt = json!({ "sizes": access.sizes, "sha256": { "input": input_sha256 } });
        Self::for_event("context_access", at, trace_id, module, true, receipt)
    }
}
