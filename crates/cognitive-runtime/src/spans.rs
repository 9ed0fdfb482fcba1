//! The spans of a run: one per run of a module, below its caller's span, and below it one per model call. Names
//! follow the OpenTelemetry conventions for generative AI. Every surface gets them from here, and they reach the port
//! as they end. A run without spans reads no clock for them. Contains names, counts and codes, never a text of a
//! request or an answer; an unknown module name counts as such a text.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::ports::{ModelEnd, Provider, Usage};
use cognitive_contract::span::{Span, SpanKind, SpanSink};
use cognitive_contract::trace::PartState;
use cognitive_contract::{Envelope, ErrorCode, Failure, Module};

use crate::clock::Clock;
use crate::host::{Host, RunOptions};
use crate::ids::{span_id, unique_number};

/// The parent span of a run, and the sink of its spans. For one run: its clock is set when it is created.
#[derive(Clone)]
pub struct SpanParent {
    sink: Arc<dyn SpanSink>,
    /// 32 hex digits; known once a run has started.
    trace_id: Option<Arc<str>>,
    parent: Option<Arc<str>>,
    model: Option<Arc<str>>,
    clock: Clock,
}

impl SpanParent {
    /// The parent of a root run, with no span above it.
    #[must_use]
    pub fn new(sink: Arc<dyn SpanSink>) -> Self {
        Self { sink, trace_id: None, parent: None, model: None, clock: Clock::new() }
    }

    /// Sets the parent span in the same trace: 16 hex digits.
    #[must_use]
    pub fn with_parent(mut self, span: Option<&str>) -> Self {
        self.parent = span.map(Arc::from);
        self
    }

    /// Sets the model that the provider requests, if it is known.
    #[must_use]
    pub fn asking_for(mut self, model: Option<&str>) -> Self {
        self.model = model.map(Arc::from);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn by_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

impl fmt::Debug for SpanParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, parent, model, .. } = self;
        let mut shown = f.debug_struct("SpanParent");
        shown
            .field("trace_id", trace_id)
            .field("parent", parent)
            .field("model", model)
            .finish_non_exhaustive()
    }
}

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanWork {
    /// One run.
    Run,
    /// A repetition of the same module.
    Repeat,
}

/// The span of a run in progress. If it is dropped before its end, it is reported as cancelled.
pub(crate) struct RunSpan {
    /// The parent of spans on behalf of this run.
    as_parent: Arc<SpanParent>,
    trace_id: Arc<str>,
    id: Arc<str>,
    parent: Option<Arc<str>>,
    work: SpanWork,
    /// The name of the provider, and its name in traces.
    provider: (String, String),
    started: SystemTime,
    /// Name and version; `None` until a module was found.
    module: Option<(String, String)>,
    /// The start time of the model call in flight.
    asked: Option<SystemTime>,
    over: bool,
}

impl RunSpan {
    /// Begins a span, if the caller wants spans.
    pub(crate) fn begin(work: SpanWork, host: &Host, options: &RunOptions) -> Option<Box<Self>> {
        let above = options.spans.as_ref()?;
        let own = || Arc::from(in_hex(options.trace_id.as_deref()));
        let trace_id = above.trace_id.clone().unwrap_or_else(own);
        let id: Arc<str> = span_id().into();
        let parent = above.parent.clone();
        let as_parent = Arc::new(SpanParent {
            trace_id: Some(Arc::clone(&trace_id)),
            parent: Some(Arc::clone(&id)),
            ..SpanParent::clone(above)
        });
        let started = as_parent.clock.now();
        let provider = names(host.models.first.as_ref());
        let (module, asked, over) = (None, None, false);
        Some(Box::new(Self { as_parent, trace_id, id, parent, work, provider, started, module, asked, over }))
    }

    /// The parent of spans on behalf of this run.
    pub(crate) fn as_parent(&self) -> &Arc<SpanParent> {
        &self.as_parent
    }

    /// Records the module.
    pub(crate) fn record_module(&mut self, module: &Module) {
        self.module = Some((module.manifest.name.clone(), module.manifest.version.clone()));
    }

    /// Records that a model of this provider is asked.
    pub(crate) fn record_asking(&mut self, provider: &dyn Provider) {
        self.provider = names(provider);
        self.asked = Some(self.as_parent.clock.now());
    }

    /// Records that it has answered, or failed.
    pub(crate) fn record_outcome(&mut self, outcome: Result<&ModelEnd, &Failure>) {
        match outcome {
            Ok(end) => self.end_call(Some(end), None),
            Err(failure) => self.end_call(None, Some(failure.code().number())),
        }
    }

    /// Records an early stop: the answer could not become valid any more.
    pub(crate) fn cut(&mut self) {
        self.end_call(None, Some("cut"));
    }

    /// Ends the span of the run.
    pub(crate) fn finish(mut self, envelope: &Envelope) {
        // The model wrote the module's own codes, so they are not exported.
        let code = envelope
            .error()
            .map(|error| ErrorCode::find(error.code()).map_or("module_code", ErrorCode::number));
        self.close(code, envelope.meta().usage());
    }

    fn close(&mut self, code: Option<&'static str>, usage: Option<Usage>) {
        self.over = true;
        // The end of the run also ended the call in flight.
        self.end_call(None, code);
        let verb = match self.work {
            SpanWork::Run => "run",
            SpanWork::Repeat => "repeat",
        };
        let name =
            self.module.as_ref().map_or_else(|| verb.to_owned(), |(module, _)| format!("{verb} {module}"));
        let time = (self.started, self.as_parent.clock.now());
        let mut span = Span::new(&self.trace_id, &self.id, name, SpanKind::Internal, time);
        span.parent = self.parent.as_deref().map(str::to_owned);
        if let Some((module, version)) = self.module.take() {
            span = span.text("cogn.module", module).text("cogn.module.version", version);
        }
        // The tokens of parts are included, so this has a separate name: a sum over `gen_ai.usage` counts each token
        // once.
        if let Some(Usage { input_tokens, output_tokens, .. }) = usage {
            span = span
                .count("cogn.usage.input_tokens", input_tokens)
                .count("cogn.usage.output_tokens", output_tokens);
        }
        self.as_parent.sink.record_span(finish_span(span, code));
    }

    /// Ends the span of the call in flight, if any.
    fn end_call(&mut self, end: Option<&ModelEnd>, code: Option<&'static str>) {
        let Some(asked) = self.asked.take() else { return };
        let answered = end.map(|end| end.model.as_str());
        let wanted = self.as_parent.model.as_deref().or(answered);
        let (provider, telemetry_name) = &self.provider;
        // The model runs in this process.
        let inside = matches!(provider.as_str(), "embedded" | "replay");
        let kind = if inside { SpanKind::Internal } else { SpanKind::Client };
        let name = wanted.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let time = (asked, self.as_parent.clock.now());
        let mut span = Span::new(&self.trace_id, &span_id(), name, kind, time)
            .text("gen_ai.operation.name", "chat")
            .text("gen_ai.provider.name", telemetry_name);
        span.parent = Some(self.id.as_ref().to_owned());
        if let Some((module, _)) = &self.module {
            span = span.text("cogn.module", module);
        }
        for (name, model) in [("gen_ai.request.model", wanted), ("gen_ai.response.model", answered)] {
            if let Some(model) = model {
                span = span.text(name, model);
            }
        }
        if let Some(Usage { input_tokens, output_tokens, .. }) = end.and_then(|end| end.usage) {
            span = span
                .count("gen_ai.usage.input_tokens", input_tokens)
                .count("gen_ai.usage.output_tokens", output_tokens);
        }
        self.as_parent.sink.record_span(finish_span(span, code));
    }
}

impl Drop for RunSpan {
    fn drop(&mut self) {
        if !self.over {
            self.close(Some(PartState::Cancelled.word()), None);
        }
    }
}

fn names(provider: &dyn Provider) -> (String, String) {
    (provider.name().to_owned(), provider.telemetry_name().to_owned())
}

fn finish_span(span: Span, code: Option<&str>) -> Span {
    match code {
        Some(code) => span.with_error(code),
        None => span,
    }
}

/// Returns a trace id as 32 hex digits; generates another one for an id that collectors do not accept.
fn in_hex(id: Option<&str>) -> String {
    let bare: String = id.unwrap_or_default().chars().filter(|digit| *digit != '-').collect();
    let is_hex = bare.len() == 32 && bare.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_hex && bare.bytes().any(|digit| digit != b'0') {
        bare.to_ascii_lowercase()
    } else {
        format!("{:032x}", unique_number().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_kept_where_a_collector_takes_it() {
        let kept = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(in_hex(Some("4BF92F35-77b3-4da6-a3ce-929d0e0e4736")), kept);
        assert_eq!(in_hex(Some(kept)), kept);
        for other in [None, Some("my run"), Some(""), Some("00000000000000000000000000000000")] {
            let made = in_hex(other);
            assert!(made.len() == 32 && made.bytes().any(|digit| digit != b'0'), "{made}");
            assert_ne!(made, in_hex(other));
        }
    }
}
