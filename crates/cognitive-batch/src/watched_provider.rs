//! A provider wrapper that reports to the limiter in `tempo`: each rate-limited attempt, and the response
//! time of each successful one. Forwards everything unchanged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, FailureKind, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_runtime::Host;

use crate::tempo::Tempo;

/// Wraps all providers of a host.
pub(crate) fn watch(host: &mut Host, tempo: &Arc<Tempo>) {
    host.wrap_models(|provider| {
        Arc::new(WatchedProvider { inner: Arc::clone(provider), tempo: Arc::clone(tempo) })
    });
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
            self.tempo.record_rate_limit(self.began, Some(Duration::ZERO));
        } else if kind.is_none() {
            self.tempo.record_answer(attempt.elapsed);
        }
        self.inner.attempt(attempt);
    }

    fn decode_mode(&mut self, decode: DecodeMode) {
        self.inner.decode_mode(decode);
    }

    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        self.inner.before_retry()
    }
}

impl Provider for WatchedProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn inner(&self) -> Option<&dyn Provider> {
        Some(&*self.inner)
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
                self.tempo.record_rate_limit(sink.began, *retry_after);
            }
            outcome
        })
    }
}
