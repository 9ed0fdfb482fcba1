//! A server that answers from a script, and helpers for tests. Contains no assertions about behaviour.

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cognitive_contract::ports::{
    Attempt, CallSink, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_net::{Kind, Pause, ProviderConfig, Proxies, Secret, provider};
use cognitive_schema::{ProviderSchema, SchemaTarget};
use cognitive_testkit::PATIENCE;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The key of every provider in these tests.
pub(crate) const KEY: &str = "k3y-0f-ours-0123456789";
/// The text of every good recording.
pub(crate) const TEXT: &str = r#"{"ok": true, "word": "naïve 👍 Größe"}"#;

/// Runs a test on a separate runtime.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// Runs a test with a paused clock that advances when all tasks wait, so that minutes take no time.
pub(crate) fn run_without_waiting<T>(test: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap().block_on(test)
}

/// The server's reaction to one request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends an answer.
    Reply(Reply),
    /// Resets the connection without an answer.
    Reset,
    /// Never answers.
    Stall,
    /// Sends raw bytes after the first bytes of a request.
    Raw(&'static [u8]),
}

/// An answer.
#[derive(Clone)]
pub(crate) struct Reply {
    head: String,
    body: Vec<u8>,
    cut: usize,
    then: Then,
}

/// The end of an answer's body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The body ends normally.
    End,
    /// The connection is reset.
    Reset,
    /// No more bytes are sent.
    Stall,
    /// The body is sent repeatedly.
    Repeat,
}

/// Loads a recording below `tests/wire`.
pub(crate) fn recorded(name: &str) -> Reply {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(format!("{name}.http"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (head, body) = text.split_once("\n\n").unwrap();
    Reply { head: head.to_owned(), body: body.as_bytes().to_vec(), cut: usize::MAX, then: Then::End }
}

/// Returns a stored request below `tests/wire`.
pub(crate) fn written(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(format!("{name}.request.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

impl Reply {
    /// Creates an answer without a recording.
    pub(crate) fn new(status: &str, headers: &str, body: &str) -> Self {
        let head = format!("HTTP/1.1 {status}\n{headers}").trim_end().to_owned();
        Self { head, body: body.as_bytes().to_vec(), cut: usize::MAX, then: Then::End }
    }

    /// Replaces the body.
    pub(crate) fn bytes(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// Sends the body in pieces of this many bytes.
    pub(crate) fn cut(mut self, bytes: usize) -> Self {
        self.cut = bytes;
        self
    }

    /// Sets the end of the body.
    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, header: &str) -> Self {
        self.head = format!("{}\n{header}", self.head);
        self
    }

    pub(crate) fn act(self) -> Act {
        Act::Reply(self)
    }
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Method and path.
    pub(crate) line: String,
    /// The headers, in lower case.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A server with a script.
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    script: Mutex<Vec<Act>>,
    seen: Mutex<Vec<Request>>,
    connections: Mutex<usize>,
    /// Told when the server has said all that it says on a connection, and leaves it open.
    stalls: Notify,
    /// Told when a connection that the server left open was closed by the client.
    left: Notify,
}

impl Server {
    /// Starts a server that runs the script, one act per request, and stalls after it.
    pub(crate) async fn start(mut script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        script.reverse();
        let state = Arc::new(State {
            script: Mutex::new(script),
            seen: Mutex::default(),
            connections: Mutex::new(0),
            stalls: Notify::new(),
            left: Notify::new(),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *shared.connections.lock().unwrap() += 1;
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { url, state }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }

    /// Waits until the client has closed a connection that the server left open.
    pub(crate) async fn client_left(&self) -> bool {
        tokio::time::timeout(PATIENCE, self.state.left.notified()).await.is_ok()
    }

    /// Waits until the server has said all that it says, and leaves the connection open.
    pub(crate) async fn stalls(&self) {
        self.state.stalls.notified().await;
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    loop {
        let next = state.script.lock().unwrap().last().cloned();
        if let Some(Act::Raw(bytes)) = next {
            state.script.lock().unwrap().pop();
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(bytes).await;
            return;
        }
        let Some(request) = read_request(&mut stream).await else { return };
        state.seen.lock().unwrap().push(request);
        let act = state.script.lock().unwrap().pop();
        let then = match act {
            Some(Act::Reply(reply)) => match send(&mut stream, &reply).await {
                Ok(()) => reply.then,
                Err(_) => return,
            },
            Some(Act::Reset) => Then::Reset,
            Some(Act::Stall | Act::Raw(_)) | None => Then::Stall,
        };
        match then {
            Then::End => {}
            Then::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
            Then::Stall | Then::Repeat => {
                state.stalls.notify_one();
                // Zero bytes, or an error: the client is gone.
                while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {}
                state.left.notify_one();
                return;
            }
        }
    }
}

async fn send(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let head = reply.head.lines().collect::<Vec<_>>().join("\r\n");
    stream.write_all(format!("{head}\r\ntransfer-encoding: chunked\r\n\r\n").as_bytes()).await?;
    loop {
        for piece in reply.body.chunks(reply.cut.clamp(1, reply.body.len().max(1))) {
            let size = format!("{:x}\r\n", piece.len());
            stream.write_all(&[size.as_bytes(), piece, b"\r\n"].concat()).await?;
            stream.flush().await?;
        }
        if reply.then != Then::Repeat {
            break;
        }
    }
    if reply.then == Then::End {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.flush().await
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let (line, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
            let lower = headers.to_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            while bytes.len() < end + 4 + length {
                read_more(stream, &mut bytes).await?;
            }
            let body = String::from_utf8(bytes[end + 4..].to_vec()).unwrap();
            return Some(Request { line: line.to_owned(), headers: lower, body });
        }
        read_more(stream, &mut bytes).await?;
    }
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 4096];
    let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
    bytes.extend_from_slice(&piece[..count]);
    Some(())
}

/// Never waits, and records the requested waits.
#[derive(Default)]
pub(crate) struct NoPause {
    waits: Mutex<Vec<Duration>>,
}

impl NoPause {
    /// Returns the waits in milliseconds.
    pub(crate) fn waits(&self) -> Vec<u128> {
        self.waits.lock().unwrap().iter().map(Duration::as_millis).collect()
    }
}

impl Pause for NoPause {
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()> {
        self.waits.lock().unwrap().push(time);
        Box::pin(async {})
    }

    fn jitter(&self) -> f64 {
        1.0
    }
}

/// Records the pieces and attempts of a call.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) attempts: Vec<Attempt>,
}

impl CallSink for Heard {
    fn piece(&mut self, text: &str) {
        assert!(!text.is_empty(), "a piece without text");
        self.text.push_str(text);
    }

    fn attempt(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
    }
}

/// Returns the configuration of every test: the server's address, the test key, no proxy, no waits.
pub(crate) fn config(kind: Kind, url: &str) -> ProviderConfig {
    let base = kind.default_base_url().unwrap_or("http://host/v1");
    let base = base.splitn(4, '/').nth(3).unwrap_or_default();
    ProviderConfig::new(kind)
        .with_model(kind.default_model().unwrap_or("m-1"))
        .with_key(Secret::new(KEY))
        .with_base_url(format!("{url}/{base}"))
        .with_proxies(Proxies::None)
        .with_pause(Arc::new(NoPause::default()))
}

/// Creates a provider of a kind for a server.
pub(crate) fn at(kind: Kind, server: &Server) -> Arc<dyn Provider> {
    provider(config(kind, &server.url)).unwrap()
}

/// Creates a call bound to a schema for this target.
pub(crate) fn call(target: Option<SchemaTarget>) -> ModelCall {
    let mut call = ModelCall::new("Judge the code. Answer in JSON.".to_owned(), "let x = 1;".to_owned(), 0.2);
    call.seed = Some(7);
    call.max_output_tokens = Some(900);
    call.timeout = Duration::from_secs(5);
    call.schema = target.map(|target| Arc::new(ProviderSchema::new(target, schema(), Vec::new())));
    call
}

/// Returns the schema of that call.
pub(crate) fn schema() -> Value {
    json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] })
}

/// The outcome of a call.
pub(crate) struct Outcome {
    pub(crate) end: Result<ModelEnd, ProviderError>,
    pub(crate) heard: Heard,
}

impl Outcome {
    pub(crate) fn error(&self) -> &ProviderError {
        self.end.as_ref().err().unwrap_or_else(|| panic!("it worked: {:?}", self.heard))
    }

    pub(crate) fn ok(&self) -> &ModelEnd {
        self.end.as_ref().unwrap_or_else(|error| panic!("{error}: {:?}", self.heard))
    }

    /// Returns the status of each attempt.
    pub(crate) fn statuses(&self) -> Vec<Option<u16>> {
        self.heard.attempts.iter().map(|attempt| attempt.status).collect()
    }
}

/// Runs a call.
pub(crate) async fn ask(provider: &dyn Provider, call: &ModelCall) -> Outcome {
    let mut heard = Heard::default();
    let end = provider.ask(call, &mut heard).await;
    Outcome { end, heard }
}

/// Runs a call against a server with this script. The call is bound to the target of the kind's provider.
pub(crate) async fn play(kind: Kind, script: Vec<Act>) -> (Outcome, Server) {
    let server = Server::start(script).await;
    let provider = at(kind, &server);
    let outcome = ask(provider.as_ref(), &call(provider.target())).await;
    (outcome, server)
}
