//! A server on loopback, a module, and a scripted model that writes its pieces on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, ModuleSource, PortFuture, Provider, ProviderError, Usage,
};
use cognitive_http::{App, ServerConfig};
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::Host;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};

/// A model that writes its pieces one by one, each when it gets a permit.
pub(crate) struct Script {
    pieces: Vec<String>,
    leave: Semaphore,
    /// The number of pieces after which each call waits for ever.
    most: usize,
    pub(crate) calls: AtomicUsize,
    /// The number of calls in flight.
    pub(crate) open: watch::Sender<usize>,
}

impl Script {
    /// A model that may write everything at once.
    pub(crate) fn free(pieces: &[&str]) -> Arc<Self> {
        Self::with_leave(pieces, Semaphore::MAX_PERMITS)
    }

    /// A model that may write this many pieces and then waits.
    pub(crate) fn with_leave(pieces: &[&str], leave: usize) -> Arc<Self> {
        Arc::new(Self {
            pieces: pieces.iter().map(|piece| (*piece).to_owned()).collect(),
            leave: Semaphore::new(leave),
            most: usize::MAX,
            calls: AtomicUsize::new(0),
            open: watch::Sender::new(0),
        })
    }

    /// A model whose every call writes this many pieces and then waits for ever, in any order of calls.
    pub(crate) fn stuck_after(pieces: &[&str], most: usize) -> Arc<Self> {
        let script = Self::with_leave(pieces, Semaphore::MAX_PERMITS);
        Arc::new(Self { most, ..Arc::into_inner(script).unwrap() })
    }

    pub(crate) fn allow(&self, pieces: usize) {
        self.leave.add_permits(pieces);
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Waits until exactly this many calls are in flight.
    pub(crate) async fn until_open(&self, count: usize) {
        self.open.subscribe().wait_for(|open| *open == count).await.unwrap();
    }
}

/// Counts a call as open until it is dropped.
struct Open<'a>(&'a watch::Sender<usize>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl Provider for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            self.open.send_modify(|open| *open += 1);
            let _open = Open(&self.open);
            for (number, piece) in self.pieces.iter().enumerate() {
                if number >= self.most {
                    std::future::pending::<()>().await;
                }
                self.leave.acquire().await.unwrap().forget();
                sink.piece(piece);
                tokio::task::yield_now().await;
            }
            let mut end = ModelEnd::complete("stub", DecodeMode::Prompt);
            end.usage = Some(Usage::new(7, 5));
            Ok(end)
        })
    }
}

/// The pieces of a valid answer. Six of them carry text of fields.
pub(crate) const ANSWER: [&str; 9] = [
    r#"{"ok": true, "data": {"rationale": "It "#,
    "is sh",
    r"ort \u26",
    r#"15.", "words": ["#,
    r#"{"text": "wi"#,
    r#"nter"}, {"text": "sn"#,
    r#"ow"}]}"#,
    r#", "meta": {"confidence": 0.9, "risk": "low","#,
    r#" "explain": "Two words"}}"#,
];

const MANIFEST: &str = "name: words\nversion: 1.0.0\nresponsibility: Find words\ntier: decision\n";

const SCHEMA: &str = r#"{
  "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale", "words"], "properties": {
    "rationale": {"type": "string"},
    "words": {"type": "array", "items": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}}}}
}"#;

/// A folder with one module, `words`, of this response mode.
pub(crate) fn module_cache(mode: &str) -> (tempfile::TempDir, ModuleCache) {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("cognitive/modules/words");
    std::fs::create_dir_all(&module).unwrap();
    let manifest = format!("{MANIFEST}response:\n  mode: {mode}\n");
    std::fs::write(module.join("module.yaml"), manifest).unwrap();
    std::fs::write(module.join("prompt.md"), "Find the words.").unwrap();
    std::fs::write(module.join("schema.json"), SCHEMA).unwrap();
    let module_cache = ModuleCache::new(Library::new(folder.path(), None, &[]));
    (folder, module_cache)
}

/// A running server.
pub(crate) struct Server {
    pub(crate) base: String,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) folder: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts a server with one module, `words`, of this response mode.
    pub(crate) async fn start(script: &Arc<Script>, mode: &str, config: ServerConfig) -> Self {
        let (folder, module_cache) = module_cache(mode);
        Self::with_modules(folder, Arc::new(module_cache), script, config).await
    }

    /// Starts a server with the given modules.
    pub(crate) async fn with_modules(
        folder: tempfile::TempDir,
        modules: Arc<dyn ModuleSource>,
        script: &Arc<Script>,
        config: ServerConfig,
    ) -> Self {
        let provider: Arc<dyn Provider> = Arc::clone(script) as Arc<dyn Provider>;
        Self::with_host(folder, Host::new(modules, provider), config).await
    }

    /// Starts a server with the given host.
    pub(crate) async fn with_host(folder: tempfile::TempDir, host: Host, config: ServerConfig) -> Self {
        let app = App::new(host, config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(cognitive_http::serve(app, listener, async {
            let _ = stopped.await;
        }));
        Self { base: format!("http://{address}"), address, folder, stop: Some(stop), task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Sends bytes unchanged and reads until the server closes the connection.
    pub(crate) async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // A reset after the answer is a valid end too.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    /// Waits until it has seen all that was sent before: connections are taken in their order, and one thread does everything.
    pub(crate) async fn is_up_to_date(&self) {
        let answer = self.raw(b"GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }

    /// Asks it to stop, as a signal would.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}

/// Returns the head of a run of `words` with this announced body length.
pub(crate) fn head(length: usize, more: &str) -> String {
    format!(
        "POST /api/run/words HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n"
    )
}

/// An endless answer, longer than what the system buffers for a connection.
pub(crate) fn endless() -> Arc<Script> {
    let begin = r#"{"ok": true, "data": {"rationale": ""#.to_owned();
    let mut pieces = vec![begin];
    pieces.extend(std::iter::repeat_n("x".repeat(512 << 10), 24));
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    Script::with_leave(&pieces, 24)
}

/// Lets so much time pass on the clock of the runtime, in a moment. A limit of hours fires exactly where a test says so, and never
/// because the machine is slow.
pub(crate) async fn time_passes(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Limits that no test meets by accident.
pub(crate) fn roomy() -> ServerConfig {
    let mut config = ServerConfig::default();
    config.runs_per_minute = 0;
    config.streams_per_client = 0;
    config
}

pub(crate) fn client() -> reqwest::Client {
    // The client needs a cryptography provider even if a test uses none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// JSON bodies, for a client that was built without them.
pub(crate) trait SendJson {
    fn json(self, body: &Value) -> Self;
}

impl SendJson for reqwest::RequestBuilder {
    fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }
}

/// A run of `words`.
pub(crate) fn ask(server: &Server, accept: &str) -> reqwest::RequestBuilder {
    client()
        .post(server.url("/api/run/words"))
        .header("content-type", "application/json")
        .header("accept", accept)
        .body(json!({ "text": "winter snow" }).to_string())
}

pub(crate) async fn json_of(response: reqwest::Response) -> Value {
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// Returns the events of a body, without comments.
pub(crate) fn events(body: &str) -> Vec<Event> {
    let line = |block: &str, name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned).unwrap_or_default()
    };
    let blocks = body.split("\n\n").filter(|block| block.contains("data: "));
    blocks
        .map(|block| Event {
            name: line(block, "event: "),
            id: line(block, "id: "),
            data: serde_json::from_str(&line(block, "data: ")).unwrap(),
        })
        .collect()
}

/// Removes the members that differ between runs from chunks.
pub(crate) fn timeless(chunks: Vec<Value>) -> Vec<Value> {
    chunks
        .into_iter()
        .map(|mut chunk| {
            let members = chunk.as_object_mut().unwrap();
            members.shift_remove("session_id");
            members.shift_remove("id");
            if let Some(meta) = members.get_mut("meta").and_then(Value::as_object_mut) {
                meta.shift_remove("trace_id");
                meta.shift_remove("latency_ms");
                meta.shift_remove("processing_time_ms");
            }
            chunk
        })
        .collect()
}
