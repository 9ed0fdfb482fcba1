//! The only entry point of every surface, and the object that every stage works on. Finds the module, runs the
//! pipeline, writes the record and returns exactly one envelope. Judges nothing: that belongs to the stages.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use cognitive_contract::manifest::{Policies, Tier};
use cognitive_contract::ports::{Event, EventSink, ModelCall, Provider, Stage};
use cognitive_contract::trace::Trace;
use cognitive_contract::{Envelope, ErrorCode, Failure, Module, Warning};
use cognitive_schema::SchemaTarget;
use serde_json::{Value, json};

use crate::audit::{RunAudit, RunRecord};
use crate::call_budget::CallPermit;
use crate::compose::lineage::Lineage;
use crate::host::{Host, RunInput, RunOptions, RunPlan, RunRequest};
use crate::panics::{self, PanicError};
use crate::receipt::Receipt;
use crate::run_context::RunContext;
use crate::spans::{RunSpan, SpanWork};
use crate::stages::media;
use crate::stream::listeners::RunListeners;
use crate::{cost, pipeline, review, stream};

/// The member of `meta` with the total time of model calls. (C-44)
pub(crate) const MODEL_TIME: &str = "processing_time_ms";

/// One run of a loaded module: its dependencies, its options, and its results so far. All stages take it, so that
/// each finds the results of the others in one place.
pub(crate) struct Run<'a, 'l> {
    pub(crate) host: &'a Host,
    /// The model that is asked now.
    pub(crate) provider: &'a dyn Provider,
    /// The models that can be asked after it.
    pub(crate) above: Vec<&'a dyn Provider>,
    pub(crate) module: &'a Arc<Module>,
    pub(crate) options: &'a RunOptions,
    /// The models and options that were decided for this run.
    pub(crate) plan: &'a RunPlan,
    pub(crate) lineage: &'a Lineage,
    pub(crate) audit: &'a RunAudit<'a>,
    pub(crate) context: RunContext<'a>,
    /// The policies of the module and of the modules above it.
    pub(crate) policies: Policies,
    pub(crate) listeners: &'a mut RunListeners<'l>,
    pub(crate) receipt: &'a mut Receipt,
    /// The warnings about the run. Warnings about an answer are stored with the answer.
    pub(crate) warnings: Vec<Warning>,
    /// The timeout of each call. Parts may leave less of it than the caller allows.
    pub(crate) call_timeout: Duration,
}

impl<'a, 'l> Run<'a, 'l> {
    fn new(
        module: &'a Arc<Module>,
        lineage: &'a Lineage,
        listeners: &'a mut RunListeners<'l>,
        (record, plan): (&'a mut RunRecord<'_>, &'a RunPlan),
    ) -> Self {
        let (host, options) = (record.host(), &record.request().options);
        Self {
            host,
            provider: plan.models.first.as_ref(),
            above: Vec::new(),
            module,
            options,
            plan,
            lineage,
            audit: &record.audit,
            context: RunContext::new(host.context.as_deref(), &host.clock, options),
            policies: lineage.policies(module),
            listeners,
            receipt: &mut record.receipt,
            warnings: Vec::new(),
            call_timeout: plan.settings.call_timeout(),
        }
    }

    /// Returns whether the model's text is parsed strictly.
    pub(crate) fn strict(&self) -> bool {
        self.plan.settings.is_strict() || self.module.manifest.tier == Tier::Exec
    }

    /// Returns whether a provider that enforces the contract writes null for an absent member.
    pub(crate) fn writes_null_for_absent(&self) -> bool {
        self.provider.target().is_some_and(SchemaTarget::writes_null_for_absent)
    }

    /// The permit that a request of the run must obtain before it leaves.
    pub(crate) fn permit(&self, call: &ModelCall) -> CallPermit<'a> {
        let Self { module, lineage, audit, provider, .. } = *self;
        CallPermit { module, lineage, audit, provider, cost: cost::call_cost(self, call) }
    }

    /// A timeout in a stream has a separate code (C-12).
    pub(crate) fn with_stream_code(&self, failure: Failure) -> Failure {
        match failure.code() {
            ErrorCode::Timeout if self.listeners.streams() => failure.with_code(ErrorCode::StreamTimeout),
            _ => failure,
        }
    }
}

/// Runs a module. Never fails: errors are in the envelope.
pub async fn run(host: &Host, request: RunRequest, sink: &mut dyn EventSink) -> Envelope {
    run_until(host, request, sink, pending()).await
}

/// Does the same for a surface that may have to cancel the run: when `stop` resolves, the call is dropped. The
/// envelope and the audit record give the reason.
pub async fn run_until(
    host: &Host,
    mut request: RunRequest,
    sink: &mut dyn EventSink,
    stop: impl Future<Output = Failure>,
) -> Envelope {
    let mut lineage = Lineage::default();
    run_below(host, &mut request, &mut lineage, &mut RunListeners::new(sink, None), pin!(stop)).await
}

/// Does the same below other runs, and with a stream that listens. Large arguments are borrowed: a future stores an
/// argument that is passed by value twice.
pub(crate) async fn run_below(
    host: &Host,
    request: &mut RunRequest,
    lineage: &mut Lineage,
    listeners: &mut RunListeners<'_>,
    stop: Pin<&mut impl Future<Output = Failure>>,
) -> Envelope {
    request.options.trace_id.get_or_insert_with(|| uuid::Uuid::new_v4().to_string());
    // The input is moved and not copied: with media, it is most of the run's memory.
    let input = std::mem::replace(&mut request.input, RunInput::Json(Value::Null));
    let request = &*request;
    listeners.begin_span(RunSpan::begin(SpanWork::Run, host, &request.options));
    // Declared before the run itself, and so dropped after it: a run that is dropped before its end still writes its
    // record.
    let mut record = RunRecord::begin(host, request, &input, lineage);
    let outcome = {
        let run = pin!(load_and_answer(lineage, input, listeners, &mut record));
        unless_stopped(pin!(panics::catch(run)), stop).await
    };
    let envelope = match outcome {
        Ok(Ok(Ok(envelope))) => envelope,
        Ok(Ok(Err(failure))) if request.options.remote => failure.for_remote_caller().into_envelope(),
        Ok(Ok(Err(failure))) => failure.into_envelope(),
        Err(reason) => reason.with_partial(listeners.partial()).into_envelope(),
        Ok(Err(PanicError)) => {
            let message = "internal error of the runtime: the run was stopped";
            let failure = Failure::new(ErrorCode::InternalError, message);
            failure.suggest("Report it with the trace id; the input was not changed").into_envelope()
        }
    };
    close(envelope, lineage, listeners, record).await
}

/// Waits for a run or for the reason to cancel it. If both are ready, the run counts.
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

async fn load_and_answer(
    lineage: &mut Lineage,
    input: RunInput,
    listeners: &mut RunListeners<'_>,
    record: &mut RunRecord<'_>,
) -> Result<Envelope, Failure> {
    listeners.event(Event::Stage(Stage::Load));
    let (host, request) = (record.host(), record.request());
    let module = lineage.in_tier(request.module.load(host.modules.as_ref())?);
    let plan = plan(host, request, lineage, &module);
    record.settings = plan.settings;
    listeners.record_module(&module);
    lineage.limit_by_operator(plan.settings.call_limit());
    lineage.limit_by_module(&module);
    if !module.is_standalone() {
        lineage.share_media();
    }
    if request.options.require_streaming && !listeners.streams() {
        return Err(stream::not_streamed());
    }
    record.own_name.clone_from(&module.manifest.name);
    record.version.clone_from(&module.manifest.version);
    let receipt = &mut record.receipt;
    receipt.is_read = host.audit.is_some() || plan.settings.wants_receipt();
    receipt.sha256.module = receipt.hash(|| module.digest.module.clone());
    receipt.sha256.schema = receipt.hash(|| module.digest.schema.clone());
    pipeline::answer(&mut Run::new(&module, lineage, listeners, (record, &plan)), input).await
}

/// Decides the models and options of a run. Those of a part were decided when its parent started it.
fn plan(host: &Host, request: &RunRequest, lineage: &Lineage, module: &Module) -> RunPlan {
    match &request.options.models {
        Some(models) if !lineage.is_empty() => {
            RunPlan { models: models.clone(), settings: request.options.settings }
        }
        _ => host.decide(&module.manifest.name, &request.options),
    }
}

/// Adds model, time and cost to `meta`, queues the run for review, writes the record and sends the listeners the end.
async fn close(
    mut envelope: Envelope,
    lineage: &Lineage,
    listeners: &mut RunListeners<'_>,
    mut record: RunRecord<'_>,
) -> Envelope {
    let (latency_ms, request) = (milliseconds(record.started), record.request());
    attest(&mut envelope, &record.receipt, record.settings.wants_receipt());
    for warning in request.options.warnings.iter().chain(&listeners.warning()) {
        envelope.meta_mut().warn(warning);
    }
    let extra = &mut envelope.meta_mut().extra;
    extra.insert("trace_id".to_owned(), json!(request.options.trace_id));
    extra.insert("latency_ms".to_owned(), json!(latency_ms));
    if let Some(time) = record.receipt.model_time {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        extra.insert(MODEL_TIME.to_owned(), json!(milliseconds));
    }
    if record.receipt.media_count > 0 {
        let members = media::meta(record.receipt.media_count, &record.receipt.media);
        extra.extend(members.map(|(name, value)| (name.to_owned(), value)));
    }
    if let Some(span) = lineage.span() {
        extra.insert("parent_span".to_owned(), Value::String(span));
    }
    review::calibrate(&mut envelope, &record);
    review::queue(&mut envelope, &mut record).await;
    let parts = std::mem::take(&mut record.receipt.parts);
    let trace = listeners.is_heard().then(|| {
        let (name, usage) = (request.module.name(), record.receipt.usage);
        Trace::from_envelope(name, &record.version, &envelope, latency_ms, usage).with_parts(parts)
    });
    listeners.end_span(&envelope);
    record.close(latency_ms, &mut envelope).await;
    if let Some(trace) = &trace {
        listeners.event(Event::Trace(trace));
    }
    listeners.event(Event::Finished(&envelope));
    envelope
}

/// Adds model and usage, and the receipt for a caller that wants it, also with a failure.
fn attest(envelope: &mut Envelope, receipt: &Receipt, is_wanted: bool) {
    if let Some(usage) = receipt.usage {
        envelope.meta_mut().set_usage(usage);
    }
    let is_due = is_wanted && (envelope.ok() || receipt.has_asked());
    let extra = &mut envelope.meta_mut().extra;
    if let Some(model) = &receipt.model {
        extra.insert("model".to_owned(), Value::String(model.clone()));
    }
    if is_due {
        extra.insert("provenance".to_owned(), serde_json::to_value(receipt).unwrap_or_default());
    }
}

/// Milliseconds with microsecond precision.
pub(crate) fn milliseconds(since: Instant) -> f64 {
    let micros = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1_000.0
}
