//! The one entry for every surface: find the module, run it, leave a record, close with exactly one envelope.
//! Anything that a stage could do belongs into a stage.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::trace::Trace;
use cognitive_contract::{Envelope, ErrorCode, Failure};
use serde_json::{Value, json};

use crate::departure::CallBudget;
use crate::host::{Host, RunInput, RunRequest};
use crate::live::watch::Watch;
use crate::receipt::Receipt;
use crate::spans::{Drawing, Work};
use crate::stages::media;
use crate::trail::{RunMark, Trail};
use crate::{panics, pipeline, stream};

/// The member of `meta` that says how long models took. (C-44)
pub(crate) const MODEL_TIME: &str = "processing_time_ms";

/// Runs a module. Never fails: what goes wrong is in the envelope.
pub async fn run(host: &Host, request: RunRequest, sink: &mut dyn EventSink) -> Envelope {
    run_until(host, request, sink, pending()).await
}

/// The same for a surface that may have to end the run before its time: when `stop` resolves, the call is dropped, and
/// the envelope and the audit say why.
pub async fn run_until(
    host: &Host,
    mut request: RunRequest,
    sink: &mut dyn EventSink,
    stop: impl Future<Output = Failure>,
) -> Envelope {
    run_watched(host, &mut request, &mut Watch::new(sink, None), pin!(stop)).await
}

/// The same with whoever else listens. What is large is lent: handed over by value it is kept twice.
pub(crate) async fn run_watched(
    host: &Host,
    request: &mut RunRequest,
    watch: &mut Watch<'_, '_>,
    stop: Pin<&mut impl Future<Output = Failure>>,
) -> Envelope {
    let started = Instant::now();
    request.options.trace_id.get_or_insert_with(|| uuid::Uuid::new_v4().to_string());
    if request.options.above.budgets().is_empty() {
        let budget = CallBudget::of_operator(&request.options);
        request.options.above.limit_calls(budget);
    }
    watch.draw(Drawing::begin(Work::Run, host, &mut request.options));
    request.options.mark = RunMark::new(host);
    // The input is handed on and not copied: with media in it, it is most of what the run needs of the memory.
    let given = std::mem::replace(&mut request.input, RunInput::Json(Value::Null));
    // Declared before the run itself, and so dropped after it: a run that nobody waits for any more leaves its record.
    let mut trail = Trail::begin(host, request, &given, started);
    let outcome = {
        let run = pin!(find_and_answer(host, request, given, watch, &mut trail));
        unless_stopped(pin!(panics::catch(run)), stop).await
    };
    let mut envelope = match outcome {
        Ok(Ok(Ok(envelope))) => envelope,
        Ok(Ok(Err(failure))) => failure.into_envelope(),
        Err(reason) => reason.with_partial(watch.partial()).into_envelope(),
        Ok(Err(panics::Panicked)) => {
            let message = "the runtime met a fault of its own and stopped the run";
            let failure = Failure::new(ErrorCode::InternalError, message);
            failure.suggest("Report it with the trace id; the input was not changed").into_envelope()
        }
    };
    let latency_ms = milliseconds(started);
    attest(&mut envelope, &trail.receipt, request.options.receipt);
    for warning in request.options.warnings.iter().chain(&watch.warning()) {
        envelope.meta_mut().warn(warning);
    }
    let extra = &mut envelope.meta_mut().extra;
    extra.insert("trace_id".to_owned(), json!(request.options.trace_id));
    extra.insert("latency_ms".to_owned(), json!(latency_ms));
    if let Some(time) = trail.receipt.model_time {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        extra.insert(MODEL_TIME.to_owned(), json!(milliseconds));
    }
    if trail.receipt.media_count > 0 {
        let members = media::meta(trail.receipt.media_count, &trail.receipt.media);
        extra.extend(members.map(|(name, value)| (name.to_owned(), value)));
    }
    if let Some(span) = request.options.above.span() {
        extra.insert("parent_span".to_owned(), Value::String(span));
    }
    let parts = std::mem::take(&mut trail.receipt.parts);
    let usage = trail.receipt.usage;
    let trace = || Trace::of(&request.module, &trail.version, &envelope, latency_ms, usage).with_parts(parts);
    let trace = watch.is_heard().then(trace);
    watch.finish_drawing(&envelope);
    trail.close(latency_ms, &mut envelope);
    if let Some(trace) = &trace {
        watch.event(Event::Trace(trace));
    }
    watch.event(Event::Finished(&envelope));
    envelope
}

/// Says who answered and what it cost, and shows the receipt to who wants it: also where nothing came of the answer.
fn attest(envelope: &mut Envelope, receipt: &Receipt, is_wanted: bool) {
    if let Some(usage) = receipt.usage {
        envelope.meta_mut().set_usage(usage);
    }
    let is_due = is_wanted && (envelope.ok() || receipt.was_asked());
    let extra = &mut envelope.meta_mut().extra;
    if let Some(model) = &receipt.model {
        extra.insert("model".to_owned(), Value::String(model.clone()));
    }
    if is_due {
        extra.insert("provenance".to_owned(), serde_json::to_value(receipt).unwrap_or_default());
    }
}

/// Waits for a run or for the reason to end it. A run that is done in the same moment counts.
async fn unless_stopped<T>(
    mut run: Pin<&mut impl Future<Output = T>>,
    mut stop: Pin<&mut impl Future<Output = Failure>>,
) -> Result<T, Failure> {
    poll_fn(|context| match run.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => stop.as_mut().poll(context).map(Err),
    })
    .await
}

async fn find_and_answer(
    host: &Host,
    request: &mut RunRequest,
    given: RunInput,
    watch: &mut Watch<'_, '_>,
    trail: &mut Trail<'_>,
) -> Result<Envelope, Failure> {
    watch.event(Event::Stage("load"));
    let module = request.options.above.in_tier(host.modules.module(&request.module)?);
    watch.loaded(&module);
    if let Some(budget) = CallBudget::of_module(&module) {
        request.options.above.limit_calls(budget);
    }
    if request.options.require_streaming && !watch.streams() {
        return Err(stream::not_streamed());
    }
    trail.version.clone_from(&module.manifest.version);
    trail.receipt.is_read = host.audit.is_some() || request.options.receipt;
    trail.receipt.sha256.module = trail.receipt.hash(|| module.digest.module.clone());
    trail.receipt.sha256.schema = trail.receipt.hash(|| module.digest.schema.clone());
    pipeline::answer(host, &module, request, given, watch, &mut trail.receipt).await
}

/// Milliseconds with microsecond precision.
pub(crate) fn milliseconds(since: Instant) -> f64 {
    let micros = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1_000.0
}
