//! Exports finished spans to a collector: OTLP over HTTP, in JSON. Spans wait in a bounded queue and are sent in
//! batches. Spans that do not fit or cannot be delivered are counted and dropped. No caller waits for the collector,
//! and a span carries no text of users or models (see [`Span`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cognitive_contract::ports::ProviderError;
use cognitive_contract::span::{Span, SpanKind, SpanSink, SpanValue};
use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::client;
use crate::config::Proxies;

/// The most spans in the queue. Without it, an unavailable collector would fill the memory.
const WAITING: usize = 4_096;
/// The most spans per request. Collectors refuse very large requests.
const BATCH: usize = 512;
/// The longest time that the first span of a batch waits for others.
const COMPANY: Duration = Duration::from_secs(1);
/// The time limit for one batch. Without it, a silent collector would hold all later spans.
const TIME: Duration = Duration::from_secs(5);

/// The sink that queues spans for a collector.
#[derive(Debug)]
pub struct SpanExporter {
    queue: mpsc::Sender<Message>,
    lost: Arc<AtomicU64>,
}

/// The worker that sends queued spans. It must be run; spans not sent when it is dropped count as lost.
#[derive(Debug)]
pub struct SpanWorker {
    queue: mpsc::Receiver<Message>,
    /// The spans that have left the queue and are not yet delivered.
    batch: Vec<Span>,
    lost: Arc<AtomicU64>,
    client: Client,
    place: Url,
}

#[derive(Debug)]
enum Message {
    Span(Box<Span>),
    Stop,
}

/// Creates an exporter for the collector at this address, such as `http://127.0.0.1:4318`, and its worker, which must
/// be run. Fails with [`ProviderError::Misconfigured`] if the address is invalid.
pub fn span_exporter(address: &str) -> Result<(Arc<SpanExporter>, SpanWorker), ProviderError> {
    let place = place(address)?;
    let here = place.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    let client = client::client(&place, if here { Proxies::None } else { Proxies::OfTheMachine })?;
    let (send, receive) = mpsc::channel(WAITING);
    let lost = Arc::<AtomicU64>::default();
    let worker = SpanWorker { queue: receive, batch: Vec::new(), lost: Arc::clone(&lost), client, place };
    Ok((Arc::new(SpanExporter { queue: send, lost }), worker))
}

fn place(address: &str) -> Result<Url, ProviderError> {
    let wrong = || {
        // The address may contain a password, so the message does not repeat it.
        ProviderError::Misconfigured("the address of the collector is not `http://HOST:PORT`".to_owned())
    };
    let mut url = Url::parse(address).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong());
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/v1/traces") {
        url.set_path(&format!("{path}/v1/traces"));
    }
    Ok(url)
}

impl SpanExporter {
    /// Stops the worker after it has sent all queued spans.
    pub async fn stop(&self) {
        let _ = self.queue.send(Message::Stop).await;
    }
}

impl SpanSink for SpanExporter {
    fn record_span(&self, span: Span) {
        if self.queue.try_send(Message::Span(Box::new(span))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lost_spans(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl SpanWorker {
    /// Sends spans until the exporter is stopped or dropped.
    pub async fn run(mut self) {
        loop {
            let more = self.gather().await;
            if !self.batch.is_empty() && self.send().await {
                self.batch.clear();
            }
            self.forget();
            if !more {
                return;
            }
        }
    }

    /// Collects the next batch. Returns false if it is the last one.
    async fn gather(&mut self) -> bool {
        let Some(Message::Span(first)) = self.queue.recv().await else { return false };
        self.batch.push(*first);
        let until = Instant::now() + COMPANY;
        while self.batch.len() < BATCH {
            match timeout_at(until, self.queue.recv()).await {
                Ok(Some(Message::Span(span))) => self.batch.push(*span),
                Ok(Some(Message::Stop) | None) => return false,
                Err(_) => break,
            }
        }
        true
    }

    /// Counts undelivered spans as lost and drops them.
    fn forget(&mut self) {
        self.lost.fetch_add(self.batch.len() as u64, Ordering::Relaxed);
        self.batch.clear();
    }

    async fn send(&self) -> bool {
        let body = request(&self.batch).to_string();
        let request = self.client.post(self.place.clone()).header("content-type", "application/json");
        let sent = request.timeout(TIME).body(body).send().await;
        sent.is_ok_and(|answer| answer.status().is_success())
    }
}

impl Drop for SpanWorker {
    fn drop(&mut self) {
        while let Ok(message) = self.queue.try_recv() {
            if let Message::Span(span) = message {
                self.batch.push(*span);
            }
        }
        self.forget();
    }
}

/// Builds an OTLP request. Its JSON encoding uses hex ids and strings for 64-bit numbers.
fn request(batch: &[Span]) -> Value {
    let spans: Vec<Value> = batch.iter().map(span_json).collect();
    let version = env!("CARGO_PKG_VERSION");
    let resource = [attribute("service.name", text("cogn")), attribute("service.version", text(version))];
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "cogn", "version": version }, "spans": spans }],
    }] })
}

fn span_json(span: &Span) -> Value {
    let kind = match span.kind {
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Internal => 1,
    };
    let attributes: Vec<Value> =
        span.attributes.iter().map(|(name, value)| attribute(name, any(value))).collect();
    let mut written = json!({
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": nanoseconds(span.started),
        "endTimeUnixNano": nanoseconds(span.ended),
        "attributes": attributes,
        "status": if span.failed { json!({ "code": 2 }) } else { json!({}) },
    });
    if let (Some(parent), Some(members)) = (&span.parent, written.as_object_mut()) {
        members.insert("parentSpanId".to_owned(), Value::from(parent.as_str()));
    }
    written
}

fn attribute(name: &str, value: Value) -> Value {
    json!({ "key": name, "value": value })
}

fn text(value: &str) -> Value {
    json!({ "stringValue": value })
}

fn any(value: &SpanValue) -> Value {
    match value {
        SpanValue::Text(value) => text(value),
        // Collectors parse a signed number and refuse the whole batch for a larger one.
        SpanValue::Count(count) => json!({ "intValue": (*count).min(i64::MAX.unsigned_abs()).to_string() }),
    }
}

fn nanoseconds(moment: SystemTime) -> String {
    moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_the_published_form() {
        let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_000_000_001);
        let mut span = Span::new(
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "00f067aa0ba902b7",
            "chat m",
            SpanKind::Client,
            (started, started),
        )
        .text("gen_ai.operation.name", "chat")
        .count("gen_ai.usage.input_tokens", 7)
        .with_error("E2002");
        span.parent = Some("1111111111111111".to_owned());
        let value = request(&[span]);
        let written = &value["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(
            *written,
            json!({
                "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                "spanId": "00f067aa0ba902b7",
                "name": "chat m",
                "kind": 3,
                "startTimeUnixNano": "1700000000000000001",
                "endTimeUnixNano": "1700000000000000001",
                "attributes": [
                    { "key": "gen_ai.operation.name", "value": { "stringValue": "chat" } },
                    { "key": "gen_ai.usage.input_tokens", "value": { "intValue": "7" } },
                    { "key": "error.type", "value": { "stringValue": "E2002" } },
                ],
                "status": { "code": 2 },
                "parentSpanId": "1111111111111111",
            })
        );
        assert_eq!(value["resourceSpans"][0]["resource"]["attributes"][0]["key"], "service.name");
    }

    #[test]
    fn an_address_is_completed_or_refused_without_being_shown() {
        let path = |address: &str| place(address).unwrap().to_string();
        assert_eq!(path("http://127.0.0.1:4318"), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(path("https://c.example/otlp/"), "https://c.example/otlp/v1/traces");
        assert_eq!(path("http://a/v1/traces"), "http://a/v1/traces");
        for wrong in ["127.0.0.1:4318", "ftp://secret@a", "", "http://"] {
            let error = place(wrong).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn nobody_waits_for_a_queue_that_is_full() {
        let (exporter, worker) = span_exporter("http://127.0.0.1:9").unwrap();
        let now = SystemTime::UNIX_EPOCH;
        for _ in 0..WAITING + 3 {
            exporter.record_span(Span::new("a", "b", "n", SpanKind::Internal, (now, now)));
        }
        assert_eq!(exporter.lost_spans(), 3);
        drop(worker);
        assert_eq!(exporter.lost_spans(), 3 + WAITING as u64, "what waits for a worker that is gone is lost");
        exporter.record_span(Span::new("a", "b", "n", SpanKind::Internal, (now, now)));
        assert_eq!(exporter.lost_spans(), 4 + WAITING as u64);
    }
}
