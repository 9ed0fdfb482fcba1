//! Runs replies in pieces: as a stream, at once, and through a provider that waits between two pieces.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cognitive_contract::Module;
use cognitive_contract::ports::{
    CallSink, DecodeMode, Finish, ModelCall, ModelEnd, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_contract::stream::{Chunk, assemble, check_log};
use cognitive_runtime::{Delivery, Host, RunRequest, run, stream};
use cognitive_testkit::{FakeProvider, LoadedModule, loaded_module};
use serde_json::{Value, json};

pub const META: &str = r#"{"confidence": 0.95, "risk": "low", "explain": "e"}"#;

pub fn good() -> String {
    format!(r#"{{"ok": true, "meta": {META}, "data": {{"rationale": "r", "answer": "42"}}}}"#)
}

pub fn other() -> String {
    good().replace("42", "7")
}

/// The data section of the corpus.
pub fn schema() -> Value {
    json!({
        "type": "object", "required": ["rationale", "answer"],
        "properties": {
            "rationale": { "type": "string" }, "answer": { "type": "string" },
            "severity": { "enum": ["minor", "major"] }, "count": { "type": "integer", "minimum": 0 },
            "items": { "type": "array", "items": { "type": "string" } },
        },
    })
}

/// A module with a partial manifest; it can be streamed unless the manifest disables that.
pub fn module(manifest: Value, data: &Value) -> Arc<Module> {
    static LOADED: Mutex<BTreeMap<String, Arc<Module>>> = Mutex::new(BTreeMap::new());
    let mut manifest = manifest;
    let response = manifest["response"].as_object().cloned().unwrap_or_default();
    manifest["response"] = json!({ "mode": "streaming" });
    manifest["response"].as_object_mut().unwrap().extend(response);
    let key = format!("{manifest}{data}");
    let mut loaded = LOADED.lock().unwrap();
    let module = loaded.entry(key).or_insert_with(|| {
        let schema = json!({ "input": { "type": "object", "properties": { "n": { "type": "integer" } } }, "data": data });
        loaded_module(&manifest, &schema, "Answer the question.")
    });
    Arc::clone(module)
}

/// The modules of the corpus, by name.
pub fn corpus_module(name: &str, chunk_type: &str) -> Arc<Module> {
    let mut manifest = match name {
        "exec" => json!({ "tier": "exec" }),
        "wraps" => json!({ "tier": "decision", "compat": { "accepts_v21_payload": true } }),
        "silent" => json!({ "tier": "decision", "failure": { "partial_allowed": false } }),
        _ => json!({ "tier": "decision" }),
    };
    manifest["response"] = json!({ "chunk_type": chunk_type });
    module(manifest, &schema())
}

/// A saved reply in pieces.
pub struct Pieces {
    pub texts: Vec<String>,
    pub end: Result<Finish, ProviderError>,
    /// Set if it waits after each piece.
    pub waits: bool,
    /// The decode mode that the service reports.
    pub decode: DecodeMode,
    pub given: AtomicUsize,
}

impl Pieces {
    pub fn new(pieces: &[&str], end: Result<Finish, ProviderError>) -> Self {
        let texts = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        Self { texts, end, waits: false, decode: DecodeMode::Prompt, given: AtomicUsize::new(0) }
    }
}

impl Provider for Pieces {
    fn name(&self) -> &'static str {
        "pieces"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            sink.decode_mode(self.decode);
            for piece in &self.texts {
                sink.piece(piece);
                self.given.fetch_add(1, Ordering::Relaxed);
                if self.waits {
                    once().await;
                }
            }
            let mut end = ModelEnd::complete("m", self.decode);
            end.finish = self.end.clone()?;
            Ok(end)
        })
    }
}

/// A model with a replaceable reply, so that one host serves many replies: creating a host costs more than a run.
#[derive(Clone, Default)]
pub struct Changing(Arc<Mutex<Option<Arc<Pieces>>>>);

impl Changing {
    pub fn says(&self, pieces: Pieces) {
        *self.0.lock().unwrap() = Some(Arc::new(pieces));
    }

    pub fn provider(&self) -> FakeProvider {
        let current = Arc::clone(&self.0);
        let answering = FakeProvider::from_future(move |call, sink| {
            let pieces = current.lock().unwrap().clone().unwrap();
            Box::pin(async move { pieces.ask(call, sink).await })
        });
        answering.with(|model| model.name = "pieces")
    }
}

/// Waits for one poll.
fn once() -> impl Future<Output = ()> {
    let mut waited = false;
    std::future::poll_fn(
        move |_| {
            if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
        },
    )
}

/// Polls until the future is done; nothing here waits for anything but a poll.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

pub fn host(module: &Arc<Module>, provider: Arc<impl Provider + 'static>) -> Host {
    Host::new(Arc::new(LoadedModule(Arc::clone(module))), provider)
}

pub fn request(strict: bool) -> RunRequest {
    let mut request = RunRequest::new("sample", json!({}));
    request.options.settings.strict_parse = Some(strict);
    request.options.settings.receipt = Some(true);
    request
}

/// Removes the members that differ between two equal runs.
pub fn stable(mut value: Value) -> Value {
    let meta = value["meta"].as_object_mut().unwrap();
    meta.shift_remove("trace_id");
    meta.shift_remove("latency_ms");
    meta.shift_remove("processing_time_ms");
    value
}

/// The envelope of a run without a stream.
pub fn sync(module: &Arc<Module>, provider: Pieces, strict: bool) -> Value {
    let host = host(module, Arc::new(provider));
    stable(serde_json::to_value(now(run(&host, request(strict), &mut NullSink))).unwrap())
}

/// The chunks of a stream, after a check that they are a legal log with one end.
pub fn chunks(host: &Host, request: RunRequest) -> (Vec<Value>, Delivery) {
    let mut sent: Vec<Chunk> = Vec::new();
    let delivery = now(stream(host, request, |chunk| sent.push(chunk)));
    let log: Vec<Value> = sent.iter().map(|chunk| serde_json::to_value(chunk).unwrap()).collect();
    assert!(log.is_empty() || check_log(&log).is_empty(), "{:?}\n{log:#?}", check_log(&log));
    (log, delivery)
}

/// The envelope that a reader assembles, without the marks of a failed stream.
pub fn assembled(log: &[Value]) -> Value {
    let mut value = serde_json::to_value(assemble(log.to_vec())).unwrap();
    let members = value.as_object_mut().unwrap();
    members.shift_remove("streaming");
    members.shift_remove("session_id");
    stable(value)
}

/// The data that the chunks before the terminal one add up to.
pub fn gathered(log: &[Value]) -> Value {
    let before = &log[..log.len() - 1];
    serde_json::to_value(assemble(before.to_vec())).unwrap()["partial_data"].clone()
}
