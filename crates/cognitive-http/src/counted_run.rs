//! Counts a run in the metrics once, when it is over or its client has disconnected, under the model that was called.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cognitive_contract::ports::{Event, EventSink, Stage};
use cognitive_contract::{Envelope, Failure};
use cognitive_runtime::Host;

use crate::app::AppState;

/// Counts a run when it is over, including a run that was dropped because its client disconnected.
pub(crate) struct CountedRun<'a> {
    shared: &'a AppState,
    host: &'a Host,
    module: &'a str,
    started: Instant,
    was_asked: &'a AtomicBool,
    is_over: bool,
}

impl<'a> CountedRun<'a> {
    /// Starts counting a run; an [`ModelCallFlag`] records whether it calls a model.
    pub(crate) fn begin(
        shared: &'a AppState,
        host: &'a Host,
        module: &'a str,
        was_asked: &'a AtomicBool,
    ) -> Self {
        Self { shared, host, module, started: Instant::now(), was_asked, is_over: false }
    }

    pub(crate) fn finish(mut self, envelope: &Envelope) {
        self.is_over = true;
        self.count(envelope);
    }

    fn count(&self, envelope: &Envelope) {
        let asked = called_model(self.host, self.module, self.was_asked, envelope);
        self.shared.metrics.count_run(self.module, envelope, asked.as_deref(), self.started.elapsed());
    }
}

/// Records that a model is called, and forwards no events.
pub(crate) struct ModelCallFlag<'a>(pub(crate) &'a AtomicBool);

impl EventSink for ModelCallFlag<'_> {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Stage(Stage::Call)) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Stage events reach every sink; producing any other event would be wasted work.
    fn is_heard(&self) -> bool {
        false
    }
}

/// Returns the model of a run that called one, if its envelope names none.
pub(crate) fn called_model(
    host: &Host,
    module: &str,
    was_asked: &AtomicBool,
    envelope: &Envelope,
) -> Option<String> {
    if envelope.meta().extra.contains_key("model") {
        return None;
    }
    let provider = &host.models_for(module).first;
    was_asked
        .load(Ordering::Relaxed)
        .then(|| provider.destination())?
        .map(|to| to.model_label(provider.name()))
}

impl Drop for CountedRun<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let envelope = Failure::cancellation("the client disconnected").into_envelope();
            self.count(&envelope);
        }
    }
}
