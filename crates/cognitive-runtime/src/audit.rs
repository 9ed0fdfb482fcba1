//! Everything that a run writes to the audit log: a record of each model request before it leaves, of each
//! tool call, of fetched media and of the context that the model gets. One more record covers the run itself,
//! however it ends, even if it is dropped.
//! Refuses nothing, except a request that cannot be recorded when the operator requires that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

use cognitive_contract::address::shown_reason;
use cognitive_contract::context::MEMBER;
use cognitive_contract::failure::was_cancelled;
use cognitive_contract::lock::Lock;
use cognitive_contract::media::{hide_secrets, holds_secrets};
use cognitive_contract::ports::{AuditRecord, Provider};
use cognitive_contract::tools::ToolUse;
use cognitive_contract::{Envelope, ErrorCode, Failure, Module, RunSettings, Warning};
use serde_json::{Map, Value, json};

use crate::compose::lineage::Lineage;
use crate::host::{Host, RunInput, RunRequest};
use crate::ids;
use crate::receipt::Receipt;
use crate::run::milliseconds;
use crate::stages::input::ValidInput;
use crate::stages::media::MediaNote;

/// The code of warnings about the audit log.
const NOTICE: &str = "AUDIT";

/// Writes the records of one run. They share a run id and name the key, user and tenant of the run.
pub(crate) struct RunAudit<'a> {
    host: &'a Host,
    request: &'a RunRequest,
    /// Empty without an audit log.
    run_id: String,
    /// The number of requests that left.
    calls: AtomicU32,
    /// The model of the last request, as it was requested.
    asked: Lock<Option<String>>,
    /// The reason why the first unrecorded request could not be recorded.
    unrecorded: Lock<Option<String>>,
}

impl<'a> RunAudit<'a> {
    fn new(host: &'a Host, request: &'a RunRequest) -> Self {
        let id = host.audit.as_ref().map(|_| ids::run_id(SystemTime::now()));
        Self {
            host,
            request,
            run_id: id.unwrap_or_default(),
            calls: AtomicU32::new(0),
            asked: Lock::default(),
            unrecorded: Lock::default(),
        }
    }

    /// The trace id that every record of the run carries. A run has one from its start.
    pub(crate) fn trace_id(&self) -> &'a str {
        self.request.options.trace_id.as_deref().unwrap_or_default()
    }

    /// The name or path that the caller gave for the module.
    fn name(&self) -> &'a str {
        self.request.module.name()
    }

    /// Returns a reason as the caller may see it.
    fn visible_reason<'r>(&self, reason: &'r str) -> &'r str {
        shown_reason(reason, self.request.options.remote)
    }

    /// Sets the run id, key, user and tenant of a record.
    fn attribute(&self, record: &mut AuditRecord) {
        let options = &self.request.options;
        record.run_id.clone_from(&self.run_id);
        record.key.clone_from(&options.key);
        record.user.clone_from(&options.user);
        record.tenant.clone_from(&options.tenant);
    }

    /// Writes a record of an event in a run. Returns a warning that names `what` if it cannot be written.
    fn note(&self, module: &Module, mut record: AuditRecord, what: &str) -> Option<Warning> {
        let audit = self.host.audit.as_ref()?;
        record.version.clone_from(&module.manifest.version);
        self.attribute(&mut record);
        let reason = audit.submit(record).err()?;
        Some(Warning::new(NOTICE, format!("{what} was not recorded: {}", self.visible_reason(&reason))))
    }

    /// Records which context the model is about to get, without its values. (CTX-043)
    pub(crate) fn note_context(&self, module: &Module, input: &ValidInput) -> Option<Warning> {
        self.host.audit.as_ref()?;
        let (access, hash, now) = (input.access()?, input.sha256(), self.host.clock.now());
        let record = AuditRecord::context_access(now, self.trace_id(), self.name(), &access, &hash);
        self.note(module, record, "the use of context")
    }

    /// Records what was fetched for the run: kinds, sizes and hashes, no addresses. (S-22)
    pub(crate) fn note_fetches(&self, module: &Module, media: &[MediaNote]) -> Option<Warning> {
        self.host.audit.as_ref().and(self.host.media.as_ref())?;
        let fetched: Vec<&MediaNote> = media.iter().filter(|note| note.source != "base64").collect();
        if fetched.is_empty() {
            return None;
        }
        let ok = fetched.iter().all(|note| note.status != "failed");
        let (now, media) = (self.host.clock.now(), json!({ "media": fetched }));
        let record = AuditRecord::media_fetch(now, self.trace_id(), self.name(), ok, media);
        self.note(module, record, "the fetching of media")
    }

    /// Records that a model requested a tool, and the outcome.
    pub(crate) fn note_tool(&self, module: &Module, used: &ToolUse) -> Option<Warning> {
        self.host.audit.as_ref()?;
        let record = AuditRecord::tool_call(self.host.clock.now(), self.trace_id(), self.name(), used);
        self.note(module, record, "the use of a tool")
    }

    /// Records a request that is about to leave. Resolves when the record survives the death of this process.
    /// Records nothing if no request leaves, as with saved replies.
    pub(crate) async fn commit_call(&self, module: &Module, provider: &dyn Provider) -> Result<(), Failure> {
        let Self { host, .. } = self;
        let Some(audit) = &host.audit else { return Ok(()) };
        let Some(to) = provider.destination() else { return Ok(()) };
        let provider = provider.name();
        let attempt = self.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let asked = to.model_label(provider);
        let receipt =
            json!({ "attempt": attempt, "provider": provider, "model": to.model, "address": to.address });
        let mut record = AuditRecord::call(SystemTime::now(), self.trace_id(), self.name(), receipt);
        self.attribute(&mut record);
        record.version.clone_from(&module.manifest.version);
        record.model.clone_from(&asked);
        *self.asked.lock() = Some(asked);
        match audit.commit(record).await {
            Err(reason) if host.audit_required => Err(audit_failure(self.visible_reason(&reason))),
            Err(reason) => {
                self.unrecorded.lock().get_or_insert(reason);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

/// The failure if the operator requires every call to be recorded and this one cannot be.
fn audit_failure(reason: &str) -> Failure {
    let message = format!("the model call was not made, because it cannot be recorded: {reason}");
    Failure::new(ErrorCode::InternalError, message)
        .with_detail("kind", json!("audit"))
        .suggest("Make the audit log writable, or turn the requirement off with `audit: {required: false}`")
}

/// The record of one run in progress. It is always written. If the run is dropped before its end (client
/// disconnect, timeout of a part), it records the cancellation and the cost so far.
pub(crate) struct RunRecord<'a> {
    pub(crate) audit: RunAudit<'a>,
    pub(crate) started: Instant,
    /// The input, if payloads are recorded or the run may need a review.
    given: Option<RunInput>,
    /// The name in the module's manifest, once it is loaded.
    pub(crate) own_name: String,
    /// The module's version, once it is loaded.
    pub(crate) version: String,
    /// The path of the runs above it; `None` for a root run.
    above: Option<String>,
    pub(crate) receipt: Receipt,
    /// The settings of the run, once they are decided.
    pub(crate) settings: RunSettings,
    is_closed: bool,
}

impl<'a> RunRecord<'a> {
    /// Begins the record of a run that already has its trace id.
    pub(crate) fn begin(
        host: &'a Host,
        request: &'a RunRequest,
        given: &RunInput,
        lineage: &Lineage,
    ) -> Self {
        let is_recorded = host.audit.is_some() && host.audit_payloads;
        let has_rules =
            !host.is_experimental && host.review.as_ref().is_some_and(|review| !review.rules.is_empty());
        let is_kept = is_recorded || (has_rules && lineage.is_empty());
        Self {
            audit: RunAudit::new(host, request),
            started: Instant::now(),
            given: is_kept.then(|| with_context(given, &lineage.context)),
            own_name: String::new(),
            version: String::new(),
            above: lineage.span(),
            receipt: Receipt::default(),
            settings: request.options.settings,
            is_closed: false,
        }
    }

    pub(crate) fn host(&self) -> &'a Host {
        self.audit.host
    }

    pub(crate) fn request(&self) -> &'a RunRequest {
        self.audit.request
    }

    /// Returns whether the run has no run above it.
    pub(crate) fn is_root(&self) -> bool {
        self.above.is_none()
    }

    /// The id that the records of the run share; empty without an audit log.
    pub(crate) fn run_id(&self) -> &str {
        &self.audit.run_id
    }

    /// The module's manifest name, or the requested name if the module was not found.
    pub(crate) fn module(&self) -> &str {
        if self.own_name.is_empty() { self.audit.name() } else { &self.own_name }
    }

    /// The model that answered, else the one that was asked; empty if no model was asked.
    pub(crate) fn model(&self) -> String {
        let answered = self.receipt.model.clone();
        answered.or_else(|| self.audit.asked.lock().clone()).unwrap_or_default()
    }

    /// The input with credentials hidden, if it was kept.
    pub(crate) fn input_value(&self) -> Option<Value> {
        let given = self.given.clone()?;
        let is_json = matches!(given, RunInput::Raw(_));
        Some(match input_json(given) {
            Value::String(text) if is_json => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            value => value,
        })
    }

    /// Writes the record of a finished run. A record that cannot be written causes a warning; it never fails
    /// the run. If the operator requires records, the answer waits until this one is stored.
    pub(crate) async fn close(mut self, latency_ms: f64, envelope: &mut Envelope) {
        self.is_closed = true;
        if let Some(reason) = self.audit.unrecorded.lock().take() {
            let message =
                format!("a model call was made without a record: {}", self.audit.visible_reason(&reason));
            envelope.meta_mut().warn(&Warning::new(NOTICE, message));
        }
        let host = self.audit.host;
        let written = match (&host.audit, self.end_record(latency_ms, envelope)) {
            (Some(log), Some(record)) if host.audit_required => log.commit(record).await,
            (Some(log), Some(record)) => log.submit(record),
            _ => Ok(()),
        };
        if let Err(reason) = written {
            let message = format!("the run was not recorded: {}", self.audit.visible_reason(&reason));
            envelope.meta_mut().warn(&Warning::new(NOTICE, message));
        }
    }

    /// The record of the end of the run; `None` without an audit log.
    fn end_record(&mut self, latency_ms: f64, envelope: &Envelope) -> Option<AuditRecord> {
        let run = &self.audit;
        run.host.audit.as_ref()?;
        let mut record = AuditRecord::new(SystemTime::now(), run.trace_id(), run.name(), envelope);
        run.attribute(&mut record);
        record.version = std::mem::take(&mut self.version);
        record.latency_ms = latency_ms;
        record.usage = self.receipt.usage;
        record.model = self.model();
        record.receipt = serde_json::to_value(&self.receipt).unwrap_or_default();
        if let Value::Object(members) = &mut record.receipt {
            if run.host.is_experimental {
                members.insert("experiment".to_owned(), json!(true));
            }
            if was_cancelled(envelope) {
                members.insert("end".to_owned(), json!("cancelled"));
            }
            // The columns of the log have tokens. Their cost and the service's cache tokens are stored only
            // here.
            if let Some(usage) = record.usage.filter(|usage| usage.cost.is_some()) {
                members.insert("usage".to_owned(), usage.to_value());
            }
        }
        if let (Some(above), Value::Object(members)) = (&self.above, &mut record.receipt) {
            members.insert("parent_span".to_owned(), json!(above));
        }
        let given = self.given.take().filter(|_| self.audit.host.audit_payloads);
        record.payload = given.map(|given| json!({ "input": input_json(given), "envelope": envelope }));
        Some(record)
    }
}

/// The input of a part, merged with the context that it was given separately.
fn with_context(given: &RunInput, context: &Map<String, Value>) -> RunInput {
    let mut given = given.clone();
    if let RunInput::Shared(value) = &mut given
        && !context.is_empty()
        && let Value::Object(members) = Arc::make_mut(value)
    {
        members.insert(MEMBER.to_owned(), Value::Object(context.clone()));
    }
    given
}

/// An input as the audit log stores it: as sent, without the credentials of its media.
fn input_json(input: RunInput) -> Value {
    let hidden = |mut value: Value| {
        hide_secrets(&mut value);
        value
    };
    match input {
        RunInput::Json(value) => hidden(value),
        RunInput::Shared(value) => hidden(Arc::unwrap_or_clone(value)),
        RunInput::Text(text) => Value::String(text),
        RunInput::Raw(text) => match serde_json::from_str(&text).ok().filter(holds_secrets) {
            Some(value) => Value::String(hidden(value).to_string()),
            None => Value::String(text),
        },
        RunInput::Unreadable(_) => Value::Null,
    }
}

impl Drop for RunRecord<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            let mut envelope =
                Failure::cancellation("the caller no longer waits for the answer").into_envelope();
            if let Some(usage) = self.receipt.usage {
                envelope.meta_mut().set_usage(usage);
            }
            // The run is gone, so no answer can carry a warning; the log reports its own trouble.
            let record = self.end_record(milliseconds(self.started), &envelope);
            if let (Some(log), Some(record)) = (&self.audit.host.audit, record) {
                let _ = log.submit(record);
            }
        }
    }
}
