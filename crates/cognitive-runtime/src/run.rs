//! The one entry for every surface: find the module, run it, keep the books, close with exactly one envelope.
//! Anything that a stage could do belongs into a stage.

use std::time::{Instant, SystemTime};

use cognitive_contract::ports::{AuditRecord, Event, EventSink};
use cognitive_contract::{Envelope, ErrorCode, Failure, Warning};
use serde_json::{Value, json};

use crate::host::{Host, RunInput, RunRequest};
use crate::receipt::Receipt;
use crate::{panics, pipeline};

/// Runs a module. Never fails: what goes wrong is in the envelope.
pub async fn run(host: &Host, request: RunRequest, sink: &mut dyn EventSink) -> Envelope {
    let started = Instant::now();
    let trace_id = request.options.trace_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let mut books = Books::default();
    let outcome = panics::catch(find_and_answer(host, &request, sink, &mut books)).await;
    let mut envelope = match outcome {
        Ok(Ok(envelope)) => envelope,
        Ok(Err(failure)) => failure.into_envelope(),
        Err(panics::Panicked) => {
            let message = "the runtime met a fault of its own and stopped the run";
            let failure = Failure::new(ErrorCode::InternalError, message);
            failure.suggest("Report it with the trace id; the input was not changed").into_envelope()
        }
    };
    let latency_ms = milliseconds(started);
    if let Some(usage) = books.receipt.usage {
        envelope.set_beside("usage", usage.to_value());
    }
    for warning in &request.options.warnings {
        envelope.meta_mut().warn(warning);
    }
    let extra = &mut envelope.meta_mut().extra;
    extra.insert("trace_id".to_owned(), Value::String(trace_id.clone()));
    extra.insert("latency_ms".to_owned(), json!(latency_ms));
    keep_the_books(host, &request, &trace_id, latency_ms, books, &mut envelope);
    sink.event(Event::Finished(&envelope));
    envelope
}

/// What is known of a run besides its envelope.
#[derive(Default)]
struct Books {
    version: String,
    receipt: Receipt,
}

async fn find_and_answer(
    host: &Host,
    request: &RunRequest,
    sink: &mut dyn EventSink,
    books: &mut Books,
) -> Result<Envelope, Failure> {
    sink.event(Event::Stage("load"));
    let module = host.modules.module(&request.module)?;
    books.version.clone_from(&module.manifest.version);
    books.receipt.sha256.module.clone_from(&module.digest.module);
    books.receipt.sha256.schema.clone_from(&module.digest.schema);
    pipeline::answer(host, &module, request, sink, &mut books.receipt).await
}

/// A record that cannot be kept is a warning; it never fails the run that it is about.
fn keep_the_books(
    host: &Host,
    request: &RunRequest,
    trace_id: &str,
    latency_ms: f64,
    books: Books,
    envelope: &mut Envelope,
) {
    let Some(audit) = &host.audit else { return };
    let mut record = AuditRecord::new(SystemTime::now(), trace_id, &request.module, envelope);
    record.version = books.version;
    record.latency_ms = latency_ms;
    record.usage = books.receipt.usage;
    record.model = books.receipt.model.clone().unwrap_or_default();
    record.receipt = serde_json::to_value(&books.receipt).unwrap_or_default();
    if host.audit_payloads {
        let input = match &request.input {
            RunInput::Json(value) => value.clone(),
            RunInput::Text(text) | RunInput::Raw(text) => Value::String(text.clone()),
        };
        record.payload = Some(json!({ "input": input, "envelope": envelope }));
    }
    if let Err(reason) = audit.record(&record) {
        envelope.meta_mut().warn(&Warning::new("AUDIT", format!("the run was not recorded: {reason}")));
    }
}

/// Milliseconds with microsecond precision.
fn milliseconds(since: Instant) -> f64 {
    let micros = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1_000.0
}
