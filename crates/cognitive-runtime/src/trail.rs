//! What a run leaves in the audit: a record of each request before it leaves for a model, and one of the run, however it
//! ends. Also where it just stops, because nobody waits for it any more. Decides nothing about runs, except that nothing
//! leaves unrecorded where the operator wants that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use cognitive_contract::failure::was_cancelled;
use cognitive_contract::media::{hide_secrets, holds_secrets};
use cognitive_contract::ports::AuditRecord;
use cognitive_contract::{Envelope, ErrorCode, Failure, Module, Warning};
use serde_json::{Value, json};

use crate::host::{Host, RunInput, RunOptions, RunRequest};
use crate::receipt::Receipt;
use crate::run::milliseconds;

/// What the records of one run share.
#[derive(Debug, Default)]
pub(crate) struct RunMark {
    id: String,
    /// Requests that left.
    calls: AtomicU32,
    /// The model of the last one, as it was asked for.
    asked: Mutex<Option<String>>,
    /// Why the first request that could not be recorded was not.
    unrecorded: Mutex<Option<String>>,
}

impl RunMark {
    /// A mark for a run that begins. Without an audit nobody asks for its id.
    pub(crate) fn new(host: &Host) -> Arc<Self> {
        let id = host.audit.as_ref().map(|_| uuid::Uuid::new_v4().simple().to_string());
        Arc::new(Self { id: id.unwrap_or_default(), ..Self::default() })
    }
}

/// Says whose record it is, and which run it belongs to.
fn attribute(record: &mut AuditRecord, options: &RunOptions) {
    record.run_id.clone_from(&options.mark.id);
    record.key.clone_from(&options.key);
    record.user.clone_from(&options.user);
    record.tenant.clone_from(&options.tenant);
}

/// Keeps a record of something that happened in a run, if there is an audit.
pub(crate) fn note(host: &Host, request: &RunRequest, mut record: AuditRecord) -> Result<(), String> {
    let Some(audit) = &host.audit else { return Ok(()) };
    attribute(&mut record, &request.options);
    audit.record(&record)
}

/// Keeps a record of a request that is about to leave, and comes back when no death of this process can take it away. Where
/// nothing leaves, as with saved replies, there is nothing to record.
pub(crate) async fn before_request(
    host: &Host,
    module: &Module,
    request: &RunRequest,
) -> Result<(), Failure> {
    let (Some(audit), Some(to)) = (&host.audit, host.provider.destination()) else { return Ok(()) };
    let (options, provider) = (&request.options, host.provider.name());
    let mark = &options.mark;
    let attempt = mark.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    let receipt =
        json!({ "attempt": attempt, "provider": provider, "model": to.model, "address": to.address });
    let trace_id = options.trace_id.as_deref().unwrap_or_default();
    let mut record = AuditRecord::call(SystemTime::now(), trace_id, &request.module, receipt);
    attribute(&mut record, options);
    record.version.clone_from(&module.manifest.version);
    record.model = to.model.map_or_else(|| provider.to_owned(), |model| format!("{provider}/{model}"));
    *lock(&mark.asked) = Some(record.model.clone());
    match audit.commit(&record).await {
        Err(reason) if host.audit_required => Err(unrecorded(&reason)),
        Err(reason) => {
            lock(&mark.unrecorded).get_or_insert(reason);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The operator wants every call to be recorded, and this one cannot be.
fn unrecorded(reason: &str) -> Failure {
    let message = format!("the model call cannot be recorded, so it is not made: {reason}");
    Failure::new(ErrorCode::InternalError, message)
        .with_detail("kind", json!("audit"))
        .suggest("Make the audit writable, or do without it with `audit: {required: false}`")
}

/// The record of one run in the making. One is left whatever happens: when the run is dropped before its end, because its
/// client is gone or because a part took too long, it says that it was cancelled, and what it had cost by then.
pub(crate) struct Trail<'a> {
    host: &'a Host,
    started: Instant,
    module: String,
    options: RunOwner,
    /// The input, if payloads are kept.
    given: Option<RunInput>,
    pub(crate) version: String,
    pub(crate) receipt: Receipt,
    is_closed: bool,
}

/// The part of the options that a record needs.
struct RunOwner {
    trace_id: String,
    key: Option<String>,
    user: Option<String>,
    tenant: Option<String>,
    mark: Arc<RunMark>,
}

impl<'a> Trail<'a> {
    /// Begins with a run that has its mark and its trace id.
    pub(crate) fn begin(host: &'a Host, request: &RunRequest, given: &RunInput, started: Instant) -> Self {
        let options = &request.options;
        Self {
            host,
            started,
            module: request.module.clone(),
            options: RunOwner {
                trace_id: options.trace_id.clone().unwrap_or_default(),
                key: options.key.clone(),
                user: options.user.clone(),
                tenant: options.tenant.clone(),
                mark: Arc::clone(&options.mark),
            },
            given: (host.audit.is_some() && host.audit_payloads).then(|| given.clone()),
            version: String::new(),
            receipt: Receipt::default(),
            is_closed: false,
        }
    }

    /// Keeps the record of a run that has come to its end. A record that cannot be kept is a warning; it never fails the run
    /// that it is about.
    pub(crate) fn close(mut self, latency_ms: f64, envelope: &mut Envelope) {
        self.is_closed = true;
        if let Some(reason) = lock(&self.options.mark.unrecorded).take() {
            let message = format!("a model call was not recorded before it was made: {reason}");
            envelope.meta_mut().warn(&Warning::new("AUDIT", message));
        }
        if let Err(reason) = self.keep(latency_ms, envelope) {
            envelope.meta_mut().warn(&Warning::new("AUDIT", format!("the run was not recorded: {reason}")));
        }
    }

    fn keep(&mut self, latency_ms: f64, envelope: &Envelope) -> Result<(), String> {
        let Some(audit) = &self.host.audit else { return Ok(()) };
        let whose = &mut self.options;
        let mut record = AuditRecord::new(SystemTime::now(), &whose.trace_id, &self.module, envelope);
        record.run_id.clone_from(&whose.mark.id);
        (record.key, record.user, record.tenant) = (whose.key.take(), whose.user.take(), whose.tenant.take());
        record.version = std::mem::take(&mut self.version);
        record.latency_ms = latency_ms;
        record.usage = self.receipt.usage;
        let model = self.receipt.model.clone().or_else(|| lock(&whose.mark.asked).clone());
        record.model = model.unwrap_or_default();
        record.receipt = serde_json::to_value(&self.receipt).unwrap_or_default();
        if let (true, Value::Object(members)) = (was_cancelled(envelope), &mut record.receipt) {
            members.insert("end".to_owned(), json!("cancelled"));
        }
        let given = self.given.take();
        record.payload = given.map(|given| json!({ "input": recorded(given), "envelope": envelope }));
        audit.record(&record)
    }
}

/// An input as the audit keeps it: as it was sent, but for what opens a door in the media that it names.
fn recorded(input: RunInput) -> Value {
    let hidden = |mut value: Value| {
        hide_secrets(&mut value);
        value
    };
    match input {
        RunInput::Json(value) => hidden(value),
        RunInput::Text(text) => Value::String(text),
        RunInput::Raw(text) => match serde_json::from_str(&text).ok().filter(holds_secrets) {
            Some(value) => Value::String(hidden(value).to_string()),
            None => Value::String(text),
        },
    }
}

impl Drop for Trail<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            let mut envelope = Failure::cancelled("nobody waits for the answer any more").into_envelope();
            if let Some(usage) = self.receipt.usage {
                envelope.meta_mut().set_usage(usage);
            }
            // There is nobody left to tell if it cannot be kept; what keeps records complains for itself.
            let _ = self.keep(milliseconds(self.started), &envelope);
        }
    }
}
