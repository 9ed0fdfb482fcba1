//! The events of parts while they run. Parts run concurrently, each with its own listener. Their events are
//! queued here and forwarded by the future that polls all parts, so that no listener is shared.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::trace::{PartEvent, PartState, Trace};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// The queued events that were not forwarded yet.
#[derive(Default)]
pub(crate) struct PartSignals {
    /// Events of nested parts, by path.
    inner: Lock<Vec<(String, PartState)>>,
    /// Set if some model has written. This event is frequent, so it is a flag and not a queue entry.
    speaks: AtomicBool,
}

/// The number of finished parts and of all parts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PartCount {
    pub(crate) done: usize,
    pub(crate) of: usize,
}

impl PartCount {
    pub(crate) fn tell(self, sink: &mut dyn EventSink, path: &str, state: PartState) {
        sink.event(Event::Part(PartEvent::new(path, state, self.done, self.of)));
    }
}

impl PartSignals {
    fn put(&self, path: String, state: PartState) {
        self.inner.lock().push((path, state));
    }

    fn tell(&self, sink: &mut dyn EventSink, count: PartCount) {
        if self.speaks.swap(false, Ordering::Relaxed) {
            count.tell(sink, "", PartState::Speaks);
        }
        let heard = std::mem::take(&mut *self.inner.lock());
        for (path, state) in heard {
            count.tell(sink, &path, state);
        }
    }

    /// Waits for the next part that is done, and forwards events in the meantime.
    pub(crate) async fn next<F: Future>(
        &self,
        running: &mut FuturesUnordered<F>,
        sink: &mut dyn EventSink,
        count: PartCount,
    ) -> Option<F::Output> {
        poll_fn(|context| {
            let polled = running.poll_next_unpin(context);
            self.tell(sink, count);
            polled
        })
        .await
    }
}

/// Listens to one part.
pub(crate) struct PartListener<'a> {
    name: &'a str,
    signals: &'a PartSignals,
    trace: Option<Trace>,
}

impl<'a> PartListener<'a> {
    pub(crate) fn new(name: &'a str, signals: &'a PartSignals) -> Self {
        Self { name, signals, trace: None }
    }

    /// The trace of the part; available once it is done.
    pub(crate) fn into_trace(self) -> Option<Trace> {
        self.trace
    }
}

impl EventSink for PartListener<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(_) | Event::Part(PartEvent { state: PartState::Speaks, .. }) => {
                self.signals.speaks.store(true, Ordering::Relaxed);
            }
            Event::Part(part) => self.signals.put(format!("{}/{}", self.name, part.path), part.state),
            Event::Trace(trace) => self.trace = Some(trace.clone()),
            _ => {}
        }
    }
}
