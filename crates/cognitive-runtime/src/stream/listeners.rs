//! The listeners of a run: the surface's own sink, the spans, the stream if there is one, and the watch on a call that may be
//! stopped early. Changes nothing of what the sink hears.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use cognitive_contract::ports::{DecodeMode, Event, EventSink, ModelEnd};
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
    call: Option<Arc<Mutex<CallInProgress>>>,
    span: Option<Box<RunSpan>>,
    /// Whether the text of calls is kept from whoever listens: nobody knows yet whether it will be the answer.
    held: bool,
}

/// What is known of the present call. Shared with the future that waits for the call and may stop it.
struct CallInProgress {
    strict: bool,
    scanner: ReplyScanner,
    early_stop: Option<EarlyStop>,
    /// Whether one document is all that can come, so that the call may be stopped.
    is_bound: bool,
}

impl CallInProgress {
    /// Scans the text that was not scanned yet; says whether the call is of no use any more.
    fn is_hopeless(&mut self) -> bool {
        let Some(early_stop) = &mut self.early_stop else { return false };
        if !self.is_bound {
            return false;
        }
        self.scanner.scan(early_stop);
        early_stop.verdict().is_some()
    }
}

/// A panic ends the run, so no call is asked any more that one has left half scanned.
fn lock(call: &Mutex<CallInProgress>) -> MutexGuard<'_, CallInProgress> {
    call.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// What there is of the answer to the present call, as far as the module hands over unfinished work.
    pub(crate) fn partial(&self) -> Option<Map<String, Value>> {
        let call = lock(self.call.as_ref()?);
        parse::interrupted(self.module.as_ref()?, call.scanner.text(), call.strict)
    }

    /// Whether there is a stream, and the answer does not go out whole.
    pub(crate) fn streams(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.streams())
    }

    /// The module is known.
    pub(crate) fn loaded(&mut self, module: &Arc<Module>) {
        self.module = Some(Arc::clone(module));
        if let Some(span) = &mut self.span {
            span.loaded(module);
        }
        if let Some(stream) = &mut self.stream {
            stream.loaded(module);
        }
    }

    /// What the surface is to be told besides: that there was no stream.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let degraded = self.stream.as_ref().is_some_and(|stream| !stream.streams());
        degraded.then(|| {
            let message = "streaming is not available here; the answer came whole";
            Warning::new(ErrorCode::StreamingNotSupported.number(), message)
        })
    }

    /// A call begins. Without a stream and an early stop, nothing is scanned.
    pub(crate) fn begin_call(&mut self, strict: bool, early_stop: Option<EarlyStop>) {
        if let Some(stream) = &mut self.stream {
            stream.begin_call();
        }
        let scanner = ReplyScanner::with_capacity(strict, DEFAULT_REPLY_CAPACITY);
        let call = CallInProgress { strict, scanner, early_stop, is_bound: false };
        self.call = Some(Arc::new(Mutex::new(call)));
    }

    /// Says whether the text of calls is kept from whoever listens.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// The present call, for the future that waits for it.
    pub(crate) fn live_call(&self) -> LiveCall {
        LiveCall(self.call.clone())
    }

    /// Why the present call was stopped, and what it had said.
    pub(crate) fn stopped(&mut self) -> Option<StoppedCall> {
        if let Some(span) = &mut self.span {
            span.cut();
        }
        let call = self.call.take()?;
        let mut call = lock(&call);
        let verdict = call.early_stop.as_ref()?.verdict()?.clone();
        Some(StoppedCall { verdict, text: call.scanner.take_text() })
    }

    /// Where there is no stream, the early stop looks at the text only when the run has to wait for more of it: a reply that comes
    /// at once is judged whole.
    fn heard(&mut self, text: &str) {
        let Some(call) = &self.call else { return };
        let mut call = lock(call);
        let CallInProgress { scanner, early_stop, .. } = &mut *call;
        scanner.keep(text);
        if let Some(stream) = self.stream.as_mut().filter(|_| !self.held) {
            stream.scan(scanner, early_stop.as_mut());
        }
    }

    /// A reader of a stream is told of stages and parts.
    fn tell_stream(&mut self, event: &Event<'_>) {
        match (event, &mut self.stream) {
            (Event::Stage(stage), Some(stream)) => stream.stage(*stage),
            (Event::Part(part), Some(stream)) => stream.part(*part),
            _ => {}
        }
    }

    /// Where the model is held to a schema or a grammar, no text can follow that makes another document of the answer, and no
    /// name can come twice. Plain JSON mode promises only the first.
    fn bound(&mut self, decode: DecodeMode) {
        if let Some(call) = &self.call {
            lock(call).is_bound = matches!(decode, DecodeMode::NativeSchema | DecodeMode::Grammar);
        }
    }

    /// From now on the run has a span, if the caller wants that.
    pub(crate) fn begin_span(&mut self, span: Option<Box<RunSpan>>) {
        self.span = span;
    }

    /// The parent of the spans of the run's parts.
    pub(crate) fn span_parent(&self) -> Option<Arc<SpanParent>> {
        self.span.as_ref().map(|span| Arc::clone(span.as_parent()))
    }

    /// The model is asked.
    pub(crate) fn asked(&mut self, provider: &str) {
        if let Some(span) = &mut self.span {
            span.asked(provider);
        }
    }

    /// It has answered, or failed.
    pub(crate) fn answered(&mut self, outcome: Result<&ModelEnd, &Failure>) {
        if let Some(span) = &mut self.span {
            span.answered(outcome);
        }
    }

    /// The run is over.
    pub(crate) fn end_span(&mut self, envelope: &Envelope) {
        if let Some(span) = self.span.take() {
            span.finish(envelope);
        }
    }
}

impl EventSink for RunListeners<'_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Text(text) => self.heard(text),
            Event::Bound(decode) => self.bound(*decode),
            other => self.tell_stream(other),
        }
        if !(self.held && matches!(event, Event::Text(_))) {
            self.sink.event(event);
        }
    }

    /// Only the surface's sink counts: what stream and early stop need is fed to them directly.
    fn is_heard(&self) -> bool {
        self.sink.is_heard()
    }
}

/// Tells when a call is of no use any more.
pub(crate) struct LiveCall(Option<Arc<Mutex<CallInProgress>>>);

/// Waits for a future until the call is of no use any more. After `None` the caller drops the future, and with it the
/// connection; a future that is done in the same moment counts, because nothing is saved by throwing its result away.
pub(crate) async fn unless_stopped_early<F: Future>(
    mut future: Pin<&mut F>,
    call: &LiveCall,
) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if call.0.as_ref().is_some_and(|call| lock(call).is_hopeless()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}
