//! The listeners of a run: the surface's own sink, the spans, the stream if there is one, and the early stop of a
//! call. Does not change the events that the sink receives.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{DecodeMode, Event, EventSink, ModelEnd, Provider};
use cognitive_contract::{Envelope, ErrorCode, Failure, Module, Warning};
use serde_json::{Map, Value};

use super::chunk_listener::ChunkListener;
use crate::early_stop::{EarlyStop, EarlyStopVerdict};
use crate::reply::ReplyScanner;
use crate::spans::{RunSpan, SpanParent};
use crate::stages::call::DEFAULT_REPLY_CAPACITY;
use crate::stages::parse;

/// Everything that listens to one run.
pub(crate) struct RunListeners<'l> {
    sink: &'l mut dyn EventSink,
    stream: Option<&'l mut dyn ChunkListener>,
    module: Option<Arc<Module>>,
    call: Option<Arc<Lock<CallInProgress>>>,
    span: Option<Box<RunSpan>>,
    /// Set if the text of calls is withheld from the listeners, because it may not become the answer.
    held: bool,
}

/// The state of the current call. Shared with the future that waits for the call and may stop it.
struct CallInProgress {
    strict: bool,
    scanner: ReplyScanner,
    early_stop: Option<EarlyStop>,
    /// Set if the reply can only be one document, so that the call may be stopped.
    is_bound: bool,
}

impl CallInProgress {
    /// Scans the text that was not scanned yet; returns whether the call cannot succeed any more.
    fn is_hopeless(&mut self) -> bool {
        let Some(early_stop) = &mut self.early_stop else { return false };
        if !self.is_bound {
            return false;
        }
        self.scanner.scan(early_stop);
        early_stop.verdict().is_some()
    }
}

/// A call that was stopped early.
pub(crate) struct StoppedCall {
    pub(crate) verdict: EarlyStopVerdict,
    pub(crate) text: String,
}

impl<'l> RunListeners<'l> {
    pub(crate) fn new(sink: &'l mut dyn EventSink, stream: Option<&'l mut dyn ChunkListener>) -> Self {
        Self { sink, stream, module: None, call: None, span: None, held: false }
    }

    /// The partial answer of the current call, if the module allows partial data.
    pub(crate) fn partial(&self) -> Option<Map<String, Value>> {
        let call = self.call.as_ref()?.lock();
        parse::partial_data(self.module.as_ref()?, call.scanner.text(), call.strict)
    }

    /// Returns whether the answer is streamed, and not delivered whole.
    pub(crate) fn streams(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.streams())
    }

    /// Records the module.
    pub(crate) fn record_module(&mut self, module: &Arc<Module>) {
        self.module = Some(Arc::clone(module));
        if let Some(span) = &mut self.span {
            span.record_module(module);
        }
        if let Some(stream) = &mut self.stream {
            stream.on_module(module);
        }
    }

    /// The warning if a stream was requested and is not available.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let degraded = self.stream.as_ref().is_some_and(|stream| !stream.streams());
        degraded.then(|| {
            let message = "streaming is not available here; the answer came whole";
            Warning::new(ErrorCode::StreamingNotSupported.number(), message)
        })
    }

    /// Starts a call. Without a stream and an early stop, nothing is scanned.
    pub(crate) fn begin_call(&mut self, strict: bool, early_stop: Option<EarlyStop>) {
        if let Some(stream) = &mut self.stream {
            stream.begin_call();
        }
        let scanner = ReplyScanner::with_capacity(strict, DEFAULT_REPLY_CAPACITY);
        let call = CallInProgress { strict, scanner, early_stop, is_bound: false };
        self.call = Some(Arc::new(Lock::new(call)));
    }

    /// Sets whether the text of calls is withheld from the listeners.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// The current call, for the future that waits for it.
    pub(crate) fn live_call(&self) -> LiveCall {
        LiveCall(self.call.clone())
    }

    /// Returns why the current call was stopped, and its text.
    pub(crate) fn take_stopped_call(&mut self) -> Option<StoppedCall> {
        if let Some(span) = &mut self.span {
            span.cut();
        }
        let call = self.call.take()?;
        let mut call = call.lock();
        let verdict = call.early_stop.as_ref()?.verdict()?.clone();
        Some(StoppedCall { verdict, text: call.scanner.take_text() })
    }

    /// Handles a piece of text. Without a stream, the early stop scans only when the run has to wait for more text: a
    /// reply that arrives at once is judged whole.
    fn handle_text(&mut self, text: &str) {
        let Some(call) = &self.call else { return };
        let mut call = call.lock();
        let CallInProgress { scanner, early_stop, .. } = &mut *call;
        scanner.keep(text);
        if let Some(stream) = self.stream.as_mut().filter(|_| !self.held) {
            stream.scan(scanner, early_stop.as_mut());
        }
    }

    /// Forwards stages and parts to the stream.
    fn tell_stream(&mut self, event: &Event<'_>) {
        match (event, &mut self.stream) {
            (Event::Stage(stage), Some(stream)) => stream.stage(*stage),
            (Event::Part(part), Some(stream)) => stream.part(*part),
            _ => {}
        }
    }

    /// Records the decode mode. With a schema or a grammar, no later text can turn the answer into another document,
    /// and no name can be a duplicate. Plain JSON mode promises only the first.
    fn decode_mode(&mut self, decode: DecodeMode) {
        if let Some(call) = &self.call {
            call.lock().is_bound = decode.is_bound();
        }
    }

    /// Starts the span of the run, if the caller wants spans.
    pub(crate) fn begin_span(&mut self, span: Option<Box<RunSpan>>) {
        self.span = span;
    }

    /// The parent of the spans of the run's parts.
    pub(crate) fn span_parent(&self) -> Option<Arc<SpanParent>> {
        self.span.as_ref().map(|span| Arc::clone(span.as_parent()))
    }

    /// Records that the model is asked.
    pub(crate) fn record_asking(&mut self, provider: &dyn Provider) {
        if let Some(span) = &mut self.span {
            span.record_asking(provider);
        }
    }

    /// Records that it has answered, or failed.
    pub(crate) fn record_outcome(&mut self, outcome: Result<&ModelEnd, &Failure>) {
        if let Some(span) = &mut self.span {
            span.record_outcome(outcome);
        }
    }

    /// Ends the span of the run.
    pub(crate) fn end_span(&mut self, envelope: &Envelope) {
        if let Some(span) = self.span.take() {
            span.finish(envelope);
        }
    }
}

impl EventSink for RunListeners<'_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Text(text) => self.handle_text(text),
            Event::Bound(decode) => self.decode_mode(*decode),
            other => self.tell_stream(other),
        }
        if !(self.held && matches!(event, Event::Text(_))) {
            self.sink.event(event);
        }
    }

    /// Only the surface's sink counts: the stream and the early stop are fed directly.
    fn is_heard(&self) -> bool {
        self.sink.is_heard()
    }
}

/// Returns whether a call in progress cannot succeed any more.
pub(crate) struct LiveCall(Option<Arc<Lock<CallInProgress>>>);

/// Waits for a future until the call cannot succeed any more. After `None` the caller drops the future and its
/// connection. If both are ready, the future counts, because dropping its result saves nothing.
pub(crate) async fn unless_stopped_early<F: Future>(
    mut future: Pin<&mut F>,
    call: &LiveCall,
) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if call.0.as_ref().is_some_and(|call| call.lock().is_hopeless()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}
