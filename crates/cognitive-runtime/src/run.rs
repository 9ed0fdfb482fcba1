//! The one entry for every surface: find the module, run it, close with exactly one envelope.
//! Anything that a stage could do belongs into a stage.

use std::time::Instant;

use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::{Envelope, ErrorCode, Failure};
use serde_json::{Value, json};

use crate::host::{Host, RunRequest};
use crate::{panics, pipeline};

/// Runs a module. Never fails: what goes wrong is in the envelope.
pub async fn run(host: &Host, request: RunRequest, sink: &mut dyn EventSink) -> Envelope {
    let started = Instant::now();
    let trace_id = request.options.trace_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let outcome = panics::catch(find_and_answer(host, &request, sink)).await;
    let mut envelope = match outcome {
        Ok(Ok(envelope)) => envelope,
        Ok(Err(failure)) => failure.into_envelope(),
        Err(panics::Panicked) => {
            let failure = Failure::new(
                ErrorCode::InternalError,
                "the runtime met a fault of its own and stopped the run",
            );
            failure.suggest("Report it with the trace id; the input was not changed").into_envelope()
        }
    };
    let extra = &mut envelope.meta_mut().extra;
    extra.insert("trace_id".to_owned(), Value::String(trace_id));
    extra.insert("latency_ms".to_owned(), json!(milliseconds(started)));
    sink.event(Event::Finished(&envelope));
    envelope
}

async fn find_and_answer(
    host: &Host,
    request: &RunRequest,
    sink: &mut dyn EventSink,
) -> Result<Envelope, Failure> {
    sink.event(Event::Stage("load"));
    let module = host.modules.module(&request.module)?;
    pipeline::answer(host, &module, request, sink).await
}

/// Milliseconds with microsecond precision.
fn milliseconds(since: Instant) -> f64 {
    let micros = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1_000.0
}
