//! The way to a collector of traces, as far as commands need it: opened from what was typed, closed within two seconds.
//! A collector that is away costs its spans and nothing else; how many were lost is counted.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::span::SpanSink;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_net::{SpanExporter, SpanWorker};
use tokio::task::JoinHandle;

use crate::async_runtime;

/// How long a process waits for the collector to take the last spans.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// A collector that nothing was sent to yet.
pub struct Collector {
    exporter: Arc<SpanExporter>,
    worker: SpanWorker,
}

impl Collector {
    /// The collector at this address, if there is one.
    pub fn open(address: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(address) = address else { return Ok(None) };
        let (exporter, worker) = cognitive_net::span_exporter(address).map_err(|error| {
            Failure::new(ErrorCode::InvalidInput, error.to_string())
                .suggest("Use `--otlp http://127.0.0.1:4318`")
        })?;
        Ok(Some(Self { exporter, worker }))
    }

    /// Takes spans for it. They wait until they are sent.
    #[must_use]
    pub fn sink(&self) -> Arc<dyn SpanSink> {
        Arc::clone(&self.exporter) as Arc<dyn SpanSink>
    }

    /// Sends spans from now on, beside everything else.
    #[must_use]
    pub fn start(self) -> RunningCollector {
        RunningCollector { exporter: self.exporter, worker: tokio::spawn(self.worker.run()) }
    }

    /// Sends what was taken so far; gives the number of spans that were lost. For a command that is done with everything
    /// else: neither its run nor the reader of its answer waits for a collector.
    #[must_use]
    pub fn deliver(self) -> u64 {
        let Self { exporter, worker } = self;
        match async_runtime::on_this_thread() {
            Ok(runtime) => {
                let sent = async { tokio::join!(exporter.stop(), worker.run()) };
                let _ = runtime.block_on(async { tokio::time::timeout(LAST_SPANS, sent).await });
                // Without this a name that nobody resolves would be waited for.
                runtime.shutdown_background();
            }
            Err(_) => drop(worker),
        }
        exporter.lost()
    }
}

/// A collector that spans are sent to.
pub struct RunningCollector {
    exporter: Arc<SpanExporter>,
    worker: JoinHandle<()>,
}

impl RunningCollector {
    /// Sends the last spans.
    pub async fn stop(self) {
        // A collector that is away must not keep the process from ending.
        let sent = async {
            self.exporter.stop().await;
            let _ = self.worker.await;
        };
        let _ = tokio::time::timeout(LAST_SPANS, sent).await;
    }
}
