//! The connection of a command to a trace collector. It is opened from the command-line address and closed within two
//! seconds.
//! If the collector is unreachable, only spans are lost, and the loss is counted.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::span::SpanSink;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_net::{SpanExporter, SpanWorker};
use tokio::task::JoinHandle;

use crate::async_runtime;

/// The time that a process waits for the collector to accept the last spans. Without it, an unavailable collector would
/// block the exit.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// A collector before its first span is sent.
pub struct Collector {
    exporter: Arc<SpanExporter>,
    worker: SpanWorker,
}

impl Collector {
    /// Opens the collector at this address, if one is given.
    pub fn open(address: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(address) = address else { return Ok(None) };
        let (exporter, worker) = cognitive_net::span_exporter(address).map_err(|error| {
            Failure::new(ErrorCode::InvalidInput, error.to_string())
                .suggest("Use `--otlp http://127.0.0.1:4318`")
        })?;
        Ok(Some(Self { exporter, worker }))
    }

    /// Returns the sink for its spans. They are queued until they are sent.
    #[must_use]
    pub fn sink(&self) -> Arc<dyn SpanSink> {
        Arc::clone(&self.exporter) as Arc<dyn SpanSink>
    }

    /// Starts to send spans in a background task.
    #[must_use]
    pub fn start(self) -> RunningCollector {
        RunningCollector { exporter: self.exporter, worker: tokio::spawn(self.worker.run()) }
    }

    /// Sends the queued spans and returns the number of lost ones. Call it last: neither the run nor the reader of its
    /// answer should wait for a collector.
    #[must_use]
    pub fn deliver(self) -> u64 {
        let Self { exporter, worker } = self;
        match async_runtime::on_this_thread() {
            Ok(runtime) => {
                let sent = async { tokio::join!(exporter.stop(), worker.run()) };
                let _ = runtime.block_on(async { tokio::time::timeout(LAST_SPANS, sent).await });
                // Without this, a DNS lookup that hangs would block here.
                runtime.shutdown_background();
            }
            Err(_) => drop(worker),
        }
        exporter.lost_spans()
    }
}

/// A collector that receives spans.
pub struct RunningCollector {
    exporter: Arc<SpanExporter>,
    worker: JoinHandle<()>,
}

impl RunningCollector {
    /// Sends the last spans.
    pub async fn stop(self) {
        // An unreachable collector must not keep the process from ending.
        let sent = async {
            self.exporter.stop().await;
            let _ = self.worker.await;
        };
        let _ = tokio::time::timeout(LAST_SPANS, sent).await;
    }
}
