//! One record of the audit: a run, a request to a model, or something else that happened in a run. Carries no payload
//! unless asked to, and never a value of context, of a tool or of a medium.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::code::ErrorCode;
use crate::context::Access;
use crate::envelope::Envelope;
use crate::tools::{ToolOutcome, ToolUse};
use crate::usage::Usage;

/// The event of a run that is over.
const RUN: &str = "run";
/// The event of a request that is about to leave for a model.
const CALL: &str = "call";

/// One record. Carries no payload unless asked to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// When the run ended.
    pub at: SystemTime,
    /// What happened: `run`, `call`, `context_access`, `media_fetch`, `tool_call`, `policy_denied`.
    pub event: &'static str,
    /// The id that envelope and logs share.
    pub trace_id: String,
    /// What the records of one run share; a trace may have several runs. Empty where nobody said.
    pub run_id: String,
    /// The name of the key that was shown, where a server has keys.
    pub key: Option<String>,
    /// The user, where one is known.
    pub user: Option<String>,
    /// The tenant of the user, where there are tenants.
    pub tenant: Option<String>,
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

    /// A record with what every run has.
    #[must_use]
    pub fn new(at: SystemTime, trace_id: &str, module: &str, envelope: &Envelope) -> Self {
        Self {
            code: envelope.error().map(|error| error.code().to_owned()),
            confidence: envelope.meta().confidence.get(),
            risk: envelope.meta().risk.level().word().to_owned(),
            ..Self::of(RUN, at, trace_id, module, envelope.ok(), Value::Null)
        }
    }

    /// A record of a request that is about to leave for a model: which model, where to, the how many-th of its run. What
    /// came of it is in the record of the run; a call whose run has none is unfinished.
    #[must_use]
    pub fn call(at: SystemTime, trace_id: &str, module: &str, receipt: Value) -> Self {
        Self::of(CALL, at, trace_id, module, false, receipt)
    }

    /// A record of something that a person did and no run: a login, an edit of a module.
    #[must_use]
    pub fn change(event: &'static str, at: SystemTime, trace_id: &str, module: &str, receipt: Value) -> Self {
        Self::of(event, at, trace_id, module, true, receipt)
    }

    /// Whose budget the record counts against: that of the tenant, else of the key, else of whoever uses this machine.
    /// Nobody's records make room for those of another owner.
    #[must_use]
    pub fn owner(&self) -> String {
        match (&self.tenant, &self.key) {
            (Some(tenant), _) => format!("tenant:{tenant}"),
            (None, Some(key)) => format!("key:{key}"),
            (None, None) => String::new(),
        }
    }

    /// Whether it is about something that happened in a run, rather than about a run or a call itself. There can be many of
    /// these, so they never make a run or a call go.
    #[must_use]
    pub fn is_detail(&self) -> bool {
        !matches!(self.event, RUN | CALL)
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
