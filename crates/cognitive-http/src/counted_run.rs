//! A run as the metrics count it: once, when it is over or its client is gone, under the model that answered or was asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cognitive_contract::ports::{Event, EventSink, Stage};
use cognitive_contract::{Envelope, Failure};
use cognitive_runtime::Host;

use crate::app::Shared;

/// Counts a run when it is over, also one that was dropped because its client is gone.
pub(crate) struct CountedRun<'a> {
    shared: &'a Shared,
    host: &'a Host,
    module: &'a str,
    started: Instant,
    was_asked: &'a AtomicBool,
    is_over: bool,
}

impl<'a> CountedRun<'a> {
    /// A run that begins now; an [`AskedSink`] notes whether it asks a model.
    pub(crate) fn begin(
        shared: &'a Shared,
        host: &'a Host,
        module: &'a str,
        was_asked: &'a AtomicBool,
    ) -> Self {
        Self { shared, host, module, started: Instant::now(), was_asked, is_over: false }
    }

    pub(crate) fn ended(mut self, envelope: &Envelope) {
        self.is_over = true;
        self.count(envelope);
    }

    fn count(&self, envelope: &Envelope) {
        let asked = asked_model(self.host, self.module, self.was_asked);
        self.shared.metrics.ran(self.module, envelope, asked.as_deref(), self.started.elapsed());
    }
}

/// Notes that a model is asked, and passes nothing on.
pub(crate) struct AskedSink<'a>(pub(crate) &'a AtomicBool);

impl EventSink for AskedSink<'_> {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Stage(Stage::Call)) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Stages are told to everybody; all else would be work for nobody.
    fn is_heard(&self) -> bool {
        false
    }
}

/// The model of a run that asked one.
pub(crate) fn asked_model(host: &Host, module: &str, was_asked: &AtomicBool) -> Option<String> {
    let provider = &host.models_for(module).first;
    was_asked.load(Ordering::Relaxed).then(|| provider.destination())?.map(|to| to.asked(provider.name()))
}

impl Drop for CountedRun<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let envelope = Failure::cancelled("the client disconnected").into_envelope();
            self.count(&envelope);
        }
    }
}
