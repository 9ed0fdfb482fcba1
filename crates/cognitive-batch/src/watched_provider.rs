//! A provider wrapper that reports to the limiter in `tempo`: each rate-limited attempt, and the response
//! time of each successful one. Forwards everything unchanged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::Failure;
use cognitive_contract::media::{AcceptedForm, Category};
use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Destination, FailureKind, ModelCall, ModelEnd, PortFuture, Provider,
    ProviderError, RenderedRequest,
};
use cognitive_runtime::Host;
use cognitive_schema::SchemaTarget;

use crate::tempo::Tempo;

/// Wraps all providers of a host.
pub(crate) fn watch(host: &mut Host, tempo: &Arc<Tempo>) {
    host.wrap_models(|provider| watched(provider, tempo));
}

fn watched(inner: &Arc<dyn Provider>, tempo: &Arc<Tempo>) -> Arc<dyn Provider> {
    Arc::new(WatchedProvider { inner: Arc::clone(inner), tempo: Arc::clone(tempo) })
}

struct WatchedProvider {
    inner: Arc<dyn Provider>,
    tempo: Arc<Tempo>,
}

/// A sink that observes attempts and forwards them.
struct WatchedSink<'a> {
    inner: &'a mut dyn CallSink,
    tempo: &'a Tempo,
    began: Instant,
}

impl CallSink for WatchedSink<'_> {
    fn piece(&mut self, text: &str) {
        self.inner.piece(text);
    }

    fn attempt(&mut self, attempt: Attempt) {
        let kind = attempt.failed.as_ref().map(|failed| failed.kind);
        if attempt.status == Some(429) && kind != Some(FailureKind::Quota) {
            // The waiting time is only known at the end of the call; until then, lowering the limit is
            // enough.
            self.tempo.refused(self.began, Some(Duration::ZERO));
        } else if kind.is_none() {
            self.tempo.answered(attempt.elapsed);
        }
        self.inner.attempt(attempt);
    }

    fn bound(&mut self, decode: DecodeMode) {
        self.inner.bound(decode);
    }

    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        self.inner.before_retry()
    }
}

impl Provider for WatchedProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn target(&self) -> Option<SchemaTarget> {
        self.inner.target()
    }

    fn structured_output(&self) -> bool {
        self.inner.structured_output()
    }

    fn capabilities(&self) -> &[&str] {
        self.inner.capabilities()
    }

    fn lacks(&self) -> &[&str] {
        self.inner.lacks()
    }

    fn unavailable(&self) -> Option<&Failure> {
        self.inner.unavailable()
    }

    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        self.inner.takes(category)
    }

    fn gives(&self, category: Category) -> bool {
        self.inner.gives(category)
    }

    fn destination(&self) -> Option<Destination> {
        self.inner.destination()
    }

    fn rendered(&self, call: &ModelCall) -> Option<RenderedRequest> {
        self.inner.rendered(call)
    }

    fn stays_here(&self) -> bool {
        self.inner.stays_here()
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let mut sink = WatchedSink { inner: sink, tempo: &self.tempo, began: Instant::now() };
            let outcome = self.inner.ask(call, &mut sink).await;
            if let Err(ProviderError::RateLimited { retry_after }) = &outcome {
                self.tempo.refused(sink.began, *retry_after);
            }
            outcome
        })
    }
}
