//! Traces for a collector on loopback: what is exported, what is never exported, and that an unreachable collector
//! has no effect.

use std::sync::{Arc, Mutex};

use cognitive_contract::span::{Span, SpanSink};
use cognitive_net::{SpanExporter, SpanWorker, span_exporter};
use cognitive_testkit::SilentAddress;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::streams::{hear, say};
use crate::support::{ANSWER, Script, Server, ask, client, roomy};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A collector that receives one batch and returns it.
async fn collector() -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let batch = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut text, mut piece) = (String::new(), vec![0; 16 << 10]);
        loop {
            let count = stream.read(&mut piece).await.unwrap();
            text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
                return (head.to_owned(), serde_json::from_str(body).unwrap());
            }
        }
    });
    (address, batch)
}

/// An exporter that tells how many spans it was given: an answer is over only after its client has it. Its worker begins when all
/// spans are there, so that they are one batch, however far apart they were.
struct Counted {
    exporter: Arc<SpanExporter>,
    count: watch::Sender<usize>,
    worker: Mutex<Option<SpanWorker>>,
}

impl SpanSink for Counted {
    fn record_span(&self, span: Span) {
        self.exporter.record_span(span);
        self.count.send_modify(|count| *count += 1);
    }

    fn lost_spans(&self) -> u64 {
        self.exporter.lost_spans()
    }
}

impl Counted {
    /// Has the spans sent from now on.
    fn start(&self) -> JoinHandle<()> {
        let worker = self.worker.lock().unwrap().take().unwrap();
        tokio::spawn(worker.run())
    }

    /// Waits for so many spans.
    async fn given(&self, count: usize) {
        self.count.subscribe().wait_for(|found| *found == count).await.unwrap();
    }

    /// Waits for so many spans and until all of them were sent.
    async fn sent(&self, count: usize) {
        self.given(count).await;
        let worker = self.start();
        self.exporter.stop().await;
        worker.await.unwrap();
    }
}

async fn traced(address: &str, script: &Arc<Script>) -> (Server, Arc<Counted>) {
    let (exporter, worker) = span_exporter(address).unwrap();
    let worker = Mutex::new(Some(worker));
    let counted = Arc::new(Counted { exporter, count: watch::Sender::new(0), worker });
    let mut config = roomy();
    config.spans = Some(Arc::clone(&counted) as Arc<dyn SpanSink>);
    (Server::start(script, "both", config).await, counted)
}

fn attribute(span: &Value, name: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|each| each["key"] == name).map(|each| each["value"].clone());
    let value = found.unwrap_or_default();
    value.get("stringValue").or_else(|| value.get("intValue")).cloned().unwrap_or_default()
}

// S-05: the server's span is a child of the caller's, the run's of the server's, and the model's of the run's, with
// the published names.
#[tokio::test]
async fn s_05_a_collector_gets_a_span_for_the_answer_one_for_the_run_and_one_for_the_model() {
    let (address, batch) = collector().await;
    let (server, collected) = traced(&address, &Script::free(&ANSWER)).await;
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let response = ask(&server, "application/json").header("traceparent", &parent).send().await.unwrap();
    let ours = response.headers()["traceparent"].to_str().unwrap().to_owned();
    assert_eq!(response.status(), 200);
    collected.sent(3).await;
    let (head, batch) = batch.await.unwrap();
    assert!(
        head.starts_with("POST /v1/traces HTTP/1.1\r\n") && head.contains("content-type: application/json")
    );
    let spans = batch["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let of_kind = |kind: u64| spans.iter().find(|span| span["kind"] == kind).unwrap();
    let (http, run, model) = (of_kind(2), of_kind(1), of_kind(3));
    assert_eq!(spans.len(), 3);
    assert_eq!(http["name"], "POST /api/run/{module}");
    assert_eq!((&http["traceId"], &http["parentSpanId"]), (&TRACE.into(), &CALLER.into()));
    assert!(ours.contains(http["spanId"].as_str().unwrap()), "{ours}");
    assert_eq!(attribute(http, "http.request.method"), "POST");
    assert_eq!(attribute(http, "http.route"), "/api/run/{module}");
    assert_eq!(attribute(http, "http.response.status_code"), "200");
    assert_eq!((&run["name"], &run["traceId"]), (&"run words".into(), &TRACE.into()));
    assert_eq!(run["parentSpanId"], http["spanId"]);
    assert_eq!(attribute(run, "cogn.usage.input_tokens"), "7");
    assert_eq!(model["name"], "chat stub");
    assert_eq!((&model["traceId"], &model["parentSpanId"]), (&TRACE.into(), &run["spanId"]));
    let time = |span: &Value, end: &str| span[end].as_str().unwrap().parse::<u128>().unwrap();
    let began = [run, model].map(|span| time(span, "startTimeUnixNano"));
    let ended = [model, run].map(|span| time(span, "endTimeUnixNano"));
    assert!(began.is_sorted() && ended.is_sorted(), "{batch}");
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "script"),
        ("gen_ai.request.model", "stub"),
        ("gen_ai.response.model", "stub"),
        ("gen_ai.usage.input_tokens", "7"),
        ("gen_ai.usage.output_tokens", "5"),
        ("cogn.module", "words"),
    ] {
        assert_eq!(attribute(model, name), value, "{name}");
    }
    let sent = batch.to_string();
    for text in ["winter", "snow", "It is short", "Two words", "Find the words"] {
        assert!(!sent.contains(text), "nothing that anybody wrote is sent: {sent}");
    }
}

// A run whose client disconnects is recorded below its request, which is recorded too.
#[tokio::test]
async fn a_client_that_goes_before_its_answer_leaves_a_whole_tree() {
    let (address, batch) = collector().await;
    let script = Script::with_leave(&ANSWER, 0);
    let (server, collected) = traced(&address, &script).await;
    let asking = tokio::spawn(ask(&server, "application/json").send());
    script.until_open(1).await;
    asking.abort();
    script.until_open(0).await;
    collected.sent(3).await;
    let (_, batch) = batch.await.unwrap();
    let spans = batch["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let of_kind = |kind: u64| spans.iter().find(|span| span["kind"] == kind).unwrap();
    let (http, run, model) = (of_kind(2), of_kind(1), of_kind(3));
    assert_eq!((&run["parentSpanId"], &model["parentSpanId"]), (&http["spanId"], &run["spanId"]));
    for span in [http, run, model] {
        assert_eq!(attribute(span, "error.type"), "cancelled", "{span}");
    }
    assert_eq!(attribute(http, "http.response.status_code"), Value::Null);
}

#[tokio::test]
async fn a_run_that_fails_says_how_and_a_caller_that_draws_nothing_gets_nothing() {
    let (address, batch) = collector().await;
    let (server, collected) = traced(&address, &Script::free(&["no JSON"])).await;
    let unseen = format!("00-{TRACE}-{CALLER}-00");
    ask(&server, "application/json").header("traceparent", &unseen).send().await.unwrap();
    let streamed = ask(&server, "application/x-ndjson").send().await.unwrap().text().await.unwrap();
    assert!(streamed.contains("E1000"), "{streamed}");
    let odd = client().request("SECRET".parse().unwrap(), server.url("/secret/path?secret=1"));
    assert_eq!(odd.send().await.unwrap().status(), 404);
    collected.sent(4).await;
    let (_, batch) = batch.await.unwrap();
    let spans = batch["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 4, "{batch}");
    let run = spans.iter().find(|span| span["name"] == "run words").unwrap();
    assert_eq!((&attribute(run, "error.type"), &run["status"]["code"]), (&"E1000".into(), &2.into()));
    let model = spans.iter().find(|span| span["name"] == "chat stub").unwrap();
    assert_eq!(model["status"], json!({}), "the model has answered; its answer was of no use");
    let odd = spans.iter().find(|span| span["name"] == "HTTP").unwrap();
    assert_eq!(attribute(odd, "http.request.method"), "_OTHER");
    assert!(!batch.to_string().to_lowercase().contains("secret"), "{batch}");
}

// S-05: the parent of a run on a socket is in the trace of the run: the caller's span, or the socket's.
#[tokio::test]
async fn s_05_a_run_on_a_socket_has_its_place_in_its_own_trace() {
    let (address, batch) = collector().await;
    let (server, collected) = traced(&address, &Script::free(&ANSWER)).await;
    let (of_run, flags) = ("0af7651916cd43dd8448eb211c80319c", ["01", "00"]);
    let mut request = format!("ws://{}/ws", server.address).into_client_request().unwrap();
    request.headers_mut().insert("traceparent", format!("00-{TRACE}-{CALLER}-01").parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let run = json!({ "type": "run", "module": "words", "input": { "text": "a" } });
    let own = flags.map(|flags| {
        let mut run = run.clone();
        run["traceparent"] = json!(format!("00-{of_run}-{CALLER}-{flags}"));
        run
    });
    for message in own.iter().chain([&run]) {
        say(&mut socket, message).await;
        while hear(&mut socket).await.get("final").is_none() {}
    }
    collected.sent(5).await;
    let (_, batch) = batch.await.unwrap();
    let spans = batch["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let find = |name: &str, trace: &str| {
        spans.iter().find(|span| span["name"] == name && span["traceId"] == trace).unwrap()
    };
    assert_eq!(spans.len(), 5, "what is not recorded is not sent: {batch}");
    assert_eq!(find("run words", of_run)["parentSpanId"], CALLER);
    assert_eq!(find("run words", TRACE)["parentSpanId"], find("GET /ws", TRACE)["spanId"]);
    assert_eq!(find("chat stub", of_run)["parentSpanId"], find("run words", of_run)["spanId"]);
}

// An unreachable collector loses its spans and affects nothing else.
#[tokio::test]
async fn a_collector_that_is_away_is_not_missed() {
    let silent = SilentAddress::take();
    let (server, collected) = traced(&format!("http://{}", silent.address()), &Script::free(&ANSWER)).await;
    let worker = collected.start();
    for _ in 0..3 {
        assert_eq!(ask(&server, "application/json").send().await.unwrap().status(), 200);
    }
    collected.given(9).await;
    collected.exporter.stop().await;
    worker.await.unwrap();
    assert_eq!(collected.lost_spans(), 9);
    let metrics = client().get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("cogn_spans_lost_total 9\n"), "{metrics}");
}
