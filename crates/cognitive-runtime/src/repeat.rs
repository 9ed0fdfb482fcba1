//! Runs the same module repeatedly, until a condition holds or the rounds are used up. (COMP-005)
//! Every round is an ordinary run with the same trace id; the answer is that of the last one. The rule for the input
//! of the next round is in `cognitive_contract::compose`.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use cognitive_contract::compose::{Repeat, Round};
use cognitive_contract::ports::{Event, EventSink, Usage};
use cognitive_contract::trace::Trace;
use cognitive_contract::{Envelope, Failure, Module, Warning};
use serde_json::{Map, Value, json};

use crate::compose::lineage::Lineage;
use crate::host::{Host, ModuleRef, RunInput, RunRequest};
use crate::run::{MODEL_TIME, milliseconds, run_below};
use crate::spans::{RunSpan, SpanWork};
use crate::stages::input;
use crate::stream::listeners::RunListeners;

/// The code of warnings about rounds.
const NOTICE: &str = "ITERATION";

/// Runs a module until the condition holds for its envelope. Never fails: errors are in the envelope.
pub async fn repeat(host: &Host, request: RunRequest, until: &Repeat, sink: &mut dyn EventSink) -> Envelope {
    repeat_until(host, request, until, sink, pending()).await
}

/// Repeats a run like [`repeat`], for a surface that may cancel it in any round.
pub async fn repeat_until(
    host: &Host,
    mut request: RunRequest,
    until: &Repeat,
    sink: &mut dyn EventSink,
    stop: impl Future<Output = Failure>,
) -> Envelope {
    request.options.trace_id.get_or_insert_with(|| uuid::Uuid::new_v4().to_string());
    let mut span = RunSpan::begin(SpanWork::Repeat, host, &request.options);
    let module = request.module.load(host.modules.as_ref()).ok();
    let mut lineage = Lineage::default();
    lineage.rounds = until.rounds();
    if let Some(module) = &module {
        // All rounds together are one run.
        let plan = host.decide(&module.manifest.name, &request.options);
        lineage.limit_by_operator(plan.settings.call_limit());
        lineage.limit_by_module(module);
        request.module = ModuleRef::from_module(request.module.name(), Arc::clone(module));
    }
    if let Some(span) = &mut span {
        if let Some(module) = &module {
            span.record_module(module);
        }
        request.options.spans = Some(Arc::clone(span.as_parent()));
    }
    let (mut stop, mut rounds) = (pin!(stop), Rounds::new(span));
    loop {
        let mut listener = RoundListener { sink: &mut *sink, trace: None };
        let mut listeners = RunListeners::new(&mut listener, None);
        let (mut round, mut above) = (request.clone(), lineage.clone());
        let mut envelope = run_below(host, &mut round, &mut above, &mut listeners, stop.as_mut()).await;
        let trace = listener.trace;
        rounds.take(&mut envelope, trace);
        let value = serde_json::to_value(&envelope).unwrap_or_default();
        let (Some(module), true) = (&module, envelope.ok()) else {
            return rounds.close(module.as_deref(), envelope, false, sink);
        };
        match until.evaluate(rounds.finished, &value) {
            Round::Done => return rounds.close(Some(module), envelope, true, sink),
            Round::GiveUp => {
                let message = format!("the condition is not met after {} rounds", rounds.finished);
                envelope.meta_mut().warn(&Warning::new(NOTICE, message));
                return rounds.close(Some(module), envelope, false, sink);
            }
            Round::Again => {
                rounds.last = envelope.into_data();
                let warned = feed(&mut request, &mut lineage, until, &value);
                rounds.warning = rounds.warning.or(warned);
            }
        }
    }
}

/// Sets the input of the next round. Returns a warning if it did not change.
fn feed(
    request: &mut RunRequest,
    lineage: &mut Lineage,
    until: &Repeat,
    envelope: &Value,
) -> Option<Warning> {
    let ModuleRef::Loaded { module, .. } = &request.module else { return None };
    let given = input::read(request.input.clone()).ok()?;
    let next = until.next_input(module, given.value(), envelope);
    // A cached answer to the same question would be the same answer.
    if next == *given.value() {
        request.options.settings.no_cache = Some(true);
        let message = "the answer of a round does not change the input of the next one";
        return Some(Warning::new(NOTICE, message));
    }
    // From now on the input contains model output.
    lineage.references = lineage.references.or_from_input(given.value());
    request.input = RunInput::Json(next);
    None
}

/// The state of a repetition.
struct Rounds {
    started: Instant,
    /// The rounds that returned an envelope, good or bad.
    finished: u32,
    usage: Option<Usage>,
    /// The milliseconds that models took, in all rounds.
    model_time: Option<u64>,
    traces: Vec<Trace>,
    /// The data of the last good round.
    last: Option<Map<String, Value>>,
    warning: Option<Warning>,
    span: Option<Box<RunSpan>>,
}

impl Rounds {
    fn new(span: Option<Box<RunSpan>>) -> Self {
        let (traces, started) = (Vec::new(), Instant::now());
        Self { started, finished: 0, usage: None, model_time: None, traces, last: None, warning: None, span }
    }

    fn take(&mut self, envelope: &mut Envelope, trace: Option<Trace>) {
        self.finished += 1;
        if let Some(usage) = envelope.meta_mut().take_usage() {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
        let time = envelope.meta().extra.get(MODEL_TIME).and_then(Value::as_u64);
        self.model_time = time.map(|time| time + self.model_time.unwrap_or(0)).or(self.model_time);
        let before: f64 = self.traces.iter().map(|trace| trace.latency_ms).sum();
        if let Some(mut trace) = trace {
            trace.started_ms = before;
            self.traces.push(trace);
        }
    }

    /// The envelope of the whole repetition.
    fn close(
        self,
        module: Option<&Module>,
        envelope: Envelope,
        done: bool,
        sink: &mut dyn EventSink,
    ) -> Envelope {
        let mut envelope = match (envelope.error(), self.last) {
            // A failed later round keeps the result of an earlier one.
            (Some(error), Some(last))
                if module.is_some_and(|module| module.manifest.failure.partial_allowed) =>
            {
                Envelope::failure(envelope.meta().clone(), error.clone(), Some(last))
            }
            _ => envelope,
        };
        if let Some(usage) = self.usage {
            envelope.meta_mut().set_usage(usage);
        }
        if let Some(warning) = &self.warning {
            envelope.meta_mut().warn(warning);
        }
        let latency_ms = milliseconds(self.started);
        let extra = &mut envelope.meta_mut().extra;
        extra.insert("latency_ms".to_owned(), json!(latency_ms));
        extra.extend(self.model_time.map(|time| (MODEL_TIME.to_owned(), json!(time))));
        extra.insert("iteration".to_owned(), json!({ "rounds": self.finished, "done": done }));
        let (name, version) = self.traces.last().map_or(("", ""), |last| (&last.module, &last.version));
        let trace = Trace::from_envelope(name, version, &envelope, latency_ms, self.usage)
            .with_parts(self.traces.clone());
        if let Some(span) = self.span {
            span.finish(&envelope);
        }
        sink.event(Event::Trace(&trace));
        sink.event(Event::Finished(&envelope));
        envelope
    }
}

/// Forwards the events of a round, except its end: more rounds may follow.
struct RoundListener<'s> {
    sink: &'s mut dyn EventSink,
    trace: Option<Trace>,
}

impl EventSink for RoundListener<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Trace(trace) => self.trace = Some(trace.clone()),
            Event::Finished(_) => {}
            other => self.sink.event(other),
        }
    }
}
