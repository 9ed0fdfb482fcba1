//! Who listens to a run: the surface's own sink, the fuse, and the stream if there is one. One scanner feeds them all.
//! Changes nothing of what the sink hears.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use cognitive_contract::manifest::Mode;
use cognitive_contract::ports::{DecodeMode, Event, EventSink, ModelEnd};
use cognitive_contract::trace::{PartEvent, PartState};
use cognitive_contract::{Envelope, ErrorCode, Failure, Module, Warning};

use serde_json::{Map, Value};

use super::deltas::Deltas;
use super::fuse::{Fuse, Verdict};
use crate::reply::{JsonEvent, JsonListener, ReplyScanner};
use crate::spans::Drawing;
use crate::stages::call::USUAL_REPLY;
use crate::stages::parse;

/// The listeners of one run.
pub(crate) struct Watch<'w, 'o> {
    sink: &'w mut dyn EventSink,
    deltas: Option<&'w mut Deltas<'o>>,
    module: Option<Arc<Module>>,
    call: Option<Arc<Mutex<Call>>>,
    drawing: Option<Box<Drawing>>,
}

/// What is known of the present call. Shared with whoever waits for it and may cut it.
struct Call {
    strict: bool,
    scanner: ReplyScanner,
    fuse: Option<Fuse>,
    /// Whether one document is all that can come, so that the fuse may blow.
    is_bound: bool,
}

impl Call {
    /// Scans what nobody has looked at yet; says whether the call is of no use any more.
    fn is_blown(&mut self) -> bool {
        let Some(fuse) = self.fuse.as_mut().filter(|_| self.is_bound) else { return false };
        self.scanner.scan(fuse);
        fuse.verdict().is_some()
    }
}

/// A panic ends the run, so nobody asks a call any more that one has left half scanned.
fn lock(call: &Mutex<Call>) -> MutexGuard<'_, Call> {
    call.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that was cut.
pub(crate) struct Cut {
    pub(crate) verdict: Verdict,
    pub(crate) text: String,
}

/// Feeds two listeners.
struct Both<'a, 'o> {
    fuse: Option<&'a mut Fuse>,
    deltas: Option<&'a mut Deltas<'o>>,
}

impl JsonListener for Both<'_, '_> {
    fn event(&mut self, event: JsonEvent<'_>, at: usize) {
        if let Some(fuse) = &mut self.fuse {
            fuse.event(event, at);
        }
        if let Some(deltas) = &mut self.deltas {
            deltas.event(event, at);
        }
    }
}

impl<'w, 'o> Watch<'w, 'o> {
    pub(crate) fn new(sink: &'w mut dyn EventSink, deltas: Option<&'w mut Deltas<'o>>) -> Self {
        Self { sink, deltas, module: None, call: None, drawing: None }
    }

    /// What there is of the answer to the present call, as far as the module hands over unfinished work.
    pub(crate) fn partial(&self) -> Option<Map<String, Value>> {
        let call = lock(self.call.as_ref()?);
        parse::interrupted(self.module.as_ref()?, call.scanner.text(), call.strict)
    }

    /// Whether there is a stream, and the answer does not go out whole.
    pub(crate) fn streams(&self) -> bool {
        self.deltas.as_ref().is_some_and(|deltas| deltas.streams())
    }

    /// The module is known. One that offers no streams is answered whole.
    pub(crate) fn loaded(&mut self, module: &Arc<Module>) {
        self.module = Some(Arc::clone(module));
        if let Some(drawing) = &mut self.drawing {
            drawing.loaded(module);
        }
        let Some(deltas) = &mut self.deltas else { return };
        deltas.configure(module);
        let outlet = deltas.outlet();
        outlet.configure(module);
        if module.manifest.response.mode == Mode::Sync {
            outlet.silence();
        }
    }

    /// What the surface is to be told besides, such as that there was no stream.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let degraded = self.deltas.as_ref().is_some_and(|deltas| !deltas.streams());
        degraded.then(|| {
            let message = "streaming was asked for and is not available here; the answer came whole";
            Warning::new(ErrorCode::StreamingNotSupported.number(), message)
        })
    }

    /// A call begins. Without anybody to listen, nothing is scanned.
    pub(crate) fn begin_call(&mut self, module: &Module, strict_parse: bool, fuse: Option<Fuse>) {
        let strict = parse::is_strict(module, strict_parse);
        if let Some(deltas) = &mut self.deltas {
            deltas.begin_call();
        }
        let scanner = ReplyScanner::with_capacity(strict, USUAL_REPLY);
        let call = Call { strict, scanner, fuse, is_bound: false };
        self.call = Some(Arc::new(Mutex::new(call)));
    }

    /// What tells when the present call is of no use any more.
    pub(crate) fn fuse(&self) -> LiveFuse {
        LiveFuse(self.call.clone())
    }

    /// Why the present call was cut, and what it had said.
    pub(crate) fn cut(&mut self) -> Option<Cut> {
        if let Some(drawing) = &mut self.drawing {
            drawing.cut();
        }
        let call = self.call.take()?;
        let mut call = lock(&call);
        let verdict = call.fuse.as_ref()?.verdict()?.clone();
        Some(Cut { verdict, text: call.scanner.take_text() })
    }

    /// Where there is no stream, the fuse looks at the text only when the run has to wait for more of it: a reply that comes
    /// at once is judged whole.
    fn heard(&mut self, text: &str) {
        let Some(call) = &self.call else { return };
        let mut call = lock(call);
        let Call { scanner, fuse, .. } = &mut *call;
        scanner.keep(text);
        if let Some(deltas) = &mut self.deltas {
            let mut both = Both { fuse: fuse.as_mut(), deltas: Some(&mut **deltas) };
            scanner.scan(&mut both);
            deltas.end_piece();
        }
    }

    /// Where the model is held to a schema or a grammar, no text can follow that makes another document of the answer, and no
    /// name can come twice. Plain JSON mode promises only the first.
    fn bound(&mut self, decode: DecodeMode) {
        if let Some(call) = &self.call {
            lock(call).is_bound = matches!(decode, DecodeMode::NativeSchema | DecodeMode::Grammar);
        }
    }

    fn stage(&mut self, stage: &'static str) {
        let Some(deltas) = &mut self.deltas else { return };
        let outlet = deltas.outlet();
        match stage {
            // Before the first call a failure is one error chunk and nothing else.
            "call" => {
                outlet.open();
                outlet.progress(10, stage);
            }
            "tools" => outlet.progress(10, stage),
            "check" => outlet.progress(90, stage),
            // The answer is there already; what follows is its last chunk.
            "kept" | "composed" => outlet.open(),
            _ => {}
        }
    }
}

impl Watch<'_, '_> {
    /// From now on the run is drawn, if somebody wants that.
    pub(crate) fn draw(&mut self, drawing: Option<Box<Drawing>>) {
        self.drawing = drawing;
    }

    /// The model is asked.
    pub(crate) fn asked(&mut self) {
        if let Some(drawing) = &mut self.drawing {
            drawing.asked();
        }
    }

    /// It has answered, or failed.
    pub(crate) fn answered(&mut self, outcome: Result<&ModelEnd, &Failure>) {
        if let Some(drawing) = &mut self.drawing {
            drawing.answered(outcome);
        }
    }

    /// The run is over.
    pub(crate) fn finish_drawing(&mut self, envelope: &Envelope) {
        if let Some(drawing) = self.drawing.take() {
            drawing.finish(envelope);
        }
    }

    /// A reader of a stream is told how far the parts of a composition are.
    fn part(&mut self, part: PartEvent<'_>) {
        let Some(deltas) = &mut self.deltas else { return };
        if part.state == PartState::Speaks {
            return;
        }
        let outlet = deltas.outlet();
        outlet.open();
        let share = part.done.saturating_mul(70) / part.of.max(1);
        let percent = u8::try_from(share).unwrap_or(u8::MAX).min(70) + 10;
        outlet.part(percent, &format!("{} {}", part.path, part.state.word()));
    }
}

impl EventSink for Watch<'_, '_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Text(text) => self.heard(text),
            Event::Bound(decode) => self.bound(*decode),
            Event::Stage(stage) => self.stage(stage),
            Event::Part(part) => self.part(*part),
            _ => {}
        }
        self.sink.event(event);
    }

    /// By others: what a stream and the fuse need of a run, they get here.
    fn is_heard(&self) -> bool {
        self.sink.is_heard()
    }
}

/// Tells when a call is of no use any more.
pub(crate) struct LiveFuse(Option<Arc<Mutex<Call>>>);

/// Waits for a future until the fuse blows. After `None` the caller drops the future, and with it the
/// connection; a future that is done in the same moment counts, because nothing is saved by throwing its result away.
pub(crate) async fn unless_blown<F: Future>(mut future: Pin<&mut F>, fuse: &LiveFuse) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if fuse.0.as_ref().is_some_and(|call| lock(call).is_blown()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}
