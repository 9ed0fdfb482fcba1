//! A model server on a local socket, for workers in separate processes. Speaks OpenAI's wire format, answers
//! with a delay, and records each request with its time. The path of the address contains the worker's name.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// One request to the model.
#[derive(Clone)]
pub struct Asked {
    /// The case name, such as `case-17`.
    pub case: String,
    pub module: String,
    pub worker: String,
    pub at: Instant,
}

#[derive(Clone)]
pub struct Stub {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    pub async fn open(delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Self { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let serving = stub.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let stub = serving.clone();
                tokio::spawn(async move {
                    let answer = service_fn(move |request| stub.clone().answer(request, delay));
                    // A killed worker breaks its connections.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        stub
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    async fn answer(
        self,
        request: Request<Incoming>,
        delay: Duration,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let worker = request.uri().path().split('/').nth(1).unwrap_or_default().to_owned();
        let Ok(body) = request.into_body().collect().await else { return Ok(Response::default()) };
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        let module =
            body.split_once("I am `").and_then(|(_, rest)| rest.split_once('`')).unwrap().0.to_owned();
        let text = text_in(&body);
        let case = text.split('>').next().unwrap().to_owned();
        let asked = Asked { case, module: module.clone(), worker, at: Instant::now() };
        self.asked.lock().unwrap().push(asked);
        tokio::time::sleep(delay).await;
        Ok(streamed(&reply(&module, &text, &body)))
    }
}

/// Returns the last text in the request that starts with `case-`.
fn text_in(body: &str) -> String {
    let at = body.rfind("case-").unwrap();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '>';
    body[at..].chars().take_while(|letter| allowed(*letter)).collect()
}

fn reply(module: &str, text: &str, body: &str) -> Value {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    if module != "counter" {
        let data = json!({ "rationale": "r", "text": format!("{text}>{module}") });
        return json!({ "ok": true, "meta": meta, "data": data });
    }
    let before: u64 = body.rsplit_once("count").map_or(0, |(_, rest)| {
        let digits: String = rest
            .chars()
            .skip_while(|letter| !letter.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().unwrap()
    });
    let (count, data) = (before + 1, json!({ "rationale": "r", "text": (before + 1).to_string() }));
    json!({ "ok": true, "meta": meta, "data": data, "_emitted_context": { "tally": { "count": count } } })
}

fn streamed(answer: &Value) -> Response<Full<Bytes>> {
    let choice = json!({ "index": 0, "delta": { "content": answer.to_string() }, "finish_reason": "stop" });
    let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 });
    let event = |value: Value| format!("data: {value}\n\n");
    let body = event(json!({ "model": "stub-1", "choices": [choice] }))
        + &event(json!({ "model": "stub-1", "choices": [], "usage": usage }))
        + "data: [DONE]\n\n";
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Full::new(Bytes::from(body)))
        .unwrap()
}
