//! `/ws`: several runs over one socket, each with the id that the client chose (API-006, S-17). An unusable message
//! is answered with an error chunk and never closes the socket.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{Response, StatusCode};
use cognitive_contract::capabilities::WantedAnswer;
use cognitive_contract::stream::ChunkWriter;
use cognitive_contract::{ErrorCode, Failure, numbers};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{ModuleRef, RunRequest, large_json};
use futures_util::FutureExt;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};

use crate::app::{AppState, shutdown_failure};
use crate::auth::Client;
use crate::frames::{self, BrokenFrame, ClientFrame, FrameReader, ServerFrame};
use crate::handshake;
use crate::intake;
use crate::memory_budget::MemoryClaim;
use crate::other_servers;
use crate::request::Options;
use crate::routes::{body_limit, limit_for_any};
use crate::run;
use crate::session::{Reader, Session};
use crate::studio::choice::ChosenRun;
use crate::trace::Trace;

/// Chunks queued for a slow client before its runs wait. A longer queue would only hide that the client is slow.
const WAITING: usize = 64;
/// Heartbeat intervals without any message before a client counts as gone. A live client answers the pings between
/// them.
const SILENCE: u32 = 8;
/// The length limit of a run's `id`, which is repeated in every chunk.
const LABEL: usize = 128;
/// A message above this size is a run: a rate-limited client is refused before the message is parsed.
const LONG: usize = 64 << 10;

/// Close codes (RFC 6455, 7.4.1).
mod code {
    pub(super) const AWAY: u16 = 1001;
    pub(super) const PROTOCOL: u16 = 1002;
    pub(super) const INVALID: u16 = 1007;
    pub(super) const POLICY: u16 = 1008;
    pub(super) const SIZE: u16 = 1009;
    pub(super) const ERROR: u16 = 1011;
    pub(super) const AGAIN: u16 = 1013;
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum SocketRequest {
    Run(Box<SocketRun>),
    Cancel { session_id: String },
    Ping,
}

#[derive(Debug, Deserialize)]
struct SocketRun {
    #[serde(default)]
    id: Option<Value>,
    module: String,
    /// Taken from the message before the rest is deserialized: it may be large.
    #[serde(skip)]
    input: Option<Value>,
    #[serde(default)]
    args: Option<String>,
    #[serde(default)]
    options: Options,
    /// W3C trace context of this run.
    #[serde(default)]
    traceparent: Option<String>,
}

fn is_label(id: &Value) -> bool {
    id.is_null() || id.is_number() || id.as_str().is_some_and(|id| id.len() <= LABEL)
}

/// Upgrades the connection to a WebSocket.
pub(crate) async fn upgrade(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    mut request: Request,
) -> Response<Body> {
    if !shared.host.capabilities.carries("websocket") {
        return crate::response::failure(run::no_such_transport(&shared));
    }
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().ok_or(StatusCode::UPGRADE_REQUIRED);
    let accepted =
        handshake::accept(request.method(), request.headers()).and_then(|response| Ok((response, upgrade?)));
    match accepted {
        Ok((response, upgrade)) => {
            tokio::spawn(async move {
                if let Ok(connection) = upgrade.await {
                    talk(connection, shared, client).await;
                }
            });
            response
        }
        Err(status) => {
            let failure = Failure::new(ErrorCode::InvalidInput, "this endpoint supports only WebSocket")
                .suggest("Connect with a WebSocket client, or use `POST /api/run/{module}`");
            crate::response::failure_as(status, failure)
        }
    }
}

/// Reads messages until the client disconnects; everything sent passes through one channel.
async fn talk(connection: Upgraded, shared: Arc<AppState>, client: Arc<Client>) {
    let (read, write) = tokio::io::split(TokioIo::new(connection));
    // A message larger than any module accepts is not read.
    let limit = limit_for_any(&shared, None).await;
    let mut reader = FrameReader::new(read, limit, shared.room.clone(), shared.config.read_timeout);
    let (out, outgoing) = mpsc::channel::<ServerFrame>(WAITING);
    let mut writer = tokio::spawn(say_all(write, outgoing));
    let mut socket = Socket { shared, client, out, runs: HashMap::new(), silence: 0 };
    let listening = AssertUnwindSafe(socket.listen(&mut reader)).catch_unwind();
    let end = tokio::select! {
        end = listening => end.unwrap_or(Some(ServerFrame::close_frame(code::ERROR, "internal error of the server"))),
        // A client that reads nothing is gone, even if it still sends.
        _ = &mut writer => None,
    };
    // After the end of the socket no more chunks are sent. During shutdown all runs have already sent their last
    // chunk.
    for forwarder in socket.runs.values() {
        forwarder.task.abort();
    }
    if let Some(goodbye) = end {
        socket.send(goodbye).await;
    }
    // Dropping the last sender ends the writer; dropping the forwarders' readers ends the runs.
    drop(socket);
    if !writer.is_finished() {
        let _ = writer.await;
    }
}

/// Writes all outgoing messages, up to the close frame or until the client stops reading.
async fn say_all(mut write: WriteHalf<TokioIo<Upgraded>>, mut outgoing: mpsc::Receiver<ServerFrame>) {
    while let Some(saying) = outgoing.recv().await {
        let is_last = matches!(saying, ServerFrame::Close(_));
        if frames::write(&mut write, saying).await.is_err() {
            return;
        }
        if is_last {
            break;
        }
    }
    let _ = write.shutdown().await;
}

/// Returns the close message for a socket that cannot be read any more (S-17); `None` if the client is gone.
fn complaint(reason: BrokenFrame) -> Option<ServerFrame> {
    let (code, reason) = match reason {
        BrokenFrame::Frame => (code::PROTOCOL, "not a WebSocket frame"),
        BrokenFrame::NoUtf8 => (code::INVALID, "the message is not UTF-8"),
        BrokenFrame::TooBig => (code::SIZE, "the message is too big"),
        BrokenFrame::NoRoom => (code::AGAIN, "too many large requests at once"),
        BrokenFrame::Late => (code::POLICY, "the message did not arrive in time"),
        BrokenFrame::Gone => return None,
    };
    Some(ServerFrame::close_frame(code, reason))
}

/// Waits until the server stops and all runs of this socket have sent their last chunk. Cancel-safe.
async fn wait_until_drained(draining: &mut watch::Receiver<bool>, runs: &mut HashMap<String, Forwarder>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        return std::future::pending().await;
    }
    loop {
        runs.retain(|_, run| !run.task.is_finished());
        let Some(run) = runs.values_mut().next() else { return };
        let _ = (&mut run.task).await;
    }
}

struct Forwarder {
    /// Weak: an idle socket must not hold the log of an ended run.
    session: Weak<Session>,
    task: tokio::task::JoinHandle<()>,
}

struct Socket {
    shared: Arc<AppState>,
    client: Arc<Client>,
    out: mpsc::Sender<ServerFrame>,
    runs: HashMap<String, Forwarder>,
    /// The number of heartbeat intervals in a row without a message.
    silence: u32,
}

impl Socket {
    /// Handles messages until one side closes. Returns the last message to send, if any.
    async fn listen(&mut self, reader: &mut FrameReader<ReadHalf<TokioIo<Upgraded>>>) -> Option<ServerFrame> {
        let mut draining = self.shared.draining.subscribe();
        let heartbeat = self.shared.config.heartbeat;
        loop {
            let received = tokio::select! {
                received = tokio::time::timeout(heartbeat, reader.next()) => received,
                () = wait_until_drained(&mut draining, &mut self.runs) => {
                    return Some(ServerFrame::close_frame(code::AWAY, "the server is shutting down"));
                }
            };
            let Ok(received) = received else {
                self.silence += 1;
                if self.silence > SILENCE {
                    return Some(ServerFrame::close_frame(
                        code::POLICY,
                        "the client sent nothing, not even a pong",
                    ));
                }
                // A full queue already keeps the connection active.
                let _ = self.out.try_send(ServerFrame::Ping);
                continue;
            };
            self.silence = 0;
            match received {
                Ok(ClientFrame::Text(text, claim)) => {
                    if let Some(goodbye) = self.hear(text, claim).await {
                        return Some(goodbye);
                    }
                }
                Ok(ClientFrame::Binary) => {
                    self.refuse(None, Failure::new(ErrorCode::InvalidInput, "messages must be text")).await;
                }
                // Pings are answered as far as the queue has room, which RFC 6455, 5.5.3 allows.
                Ok(ClientFrame::Ping(payload)) => drop(self.out.try_send(ServerFrame::Pong(payload))),
                Ok(ClientFrame::Pong) => {}
                Ok(ClientFrame::Close(payload)) => return Some(ServerFrame::Close(payload)),
                Err(reason) => return complaint(reason),
            }
        }
    }

    /// Parses a message within the limit of its module. Returns a close message if it is too large.
    async fn hear(&mut self, text: Vec<u8>, claim: MemoryClaim) -> Option<ServerFrame> {
        let length = text.len();
        if length > self.shared.config.body_limit && length > self.limit_of(&text).await {
            return complaint(BrokenFrame::TooBig);
        }
        if length > LONG
            && self.client.is_limited
            && let Some(wait) = self.shared.limits.wait_time(&self.client.name, Instant::now())
        {
            self.refuse(None, run::out_of_rate(wait)).await;
            return None;
        }
        match intake::read(&self.shared, text, claim, |text| Ok(SocketMessage::parse(text))).await {
            Ok((understood, claim)) => self.wish(understood, claim).await,
            Err(failure) => self.refuse(None, failure).await,
        }
        None
    }

    /// Returns the body limit of the module that a message names, without parsing the rest of the message.
    async fn limit_of(&self, text: &[u8]) -> usize {
        let name = large_json::member(text, "module").unwrap_or_default();
        match self.shared.module(name).await {
            Ok(module) => body_limit(&self.shared, &module),
            Err(_) => self.shared.config.body_limit,
        }
    }

    async fn wish(&mut self, understood: SocketMessage, claim: MemoryClaim) {
        let SocketMessage { wish, id, inexact } = understood;
        let refused = match (wish, inexact) {
            (Ok(SocketRequest::Ping), _) => {
                return self.send(ServerFrame::Text(br#"{"type":"pong"}"#.to_vec())).await;
            }
            (Ok(SocketRequest::Cancel { session_id }), _) => {
                match self.runs.get(&session_id).and_then(|run| run.session.upgrade()) {
                    Some(session) => {
                        return session.cancel(other_servers::cancelled_by_client());
                    }
                    None => Failure::new(ErrorCode::SessionExpired, "this connection has no such run"),
                }
            }
            (Ok(SocketRequest::Run(_)), Some(inexact)) => inexact,
            (Ok(SocketRequest::Run(wish)), None) => match self.run(*wish, claim).await {
                Ok(()) => return,
                Err(failure) => failure,
            },
            (Err(failure), _) => failure,
        };
        self.refuse(id.as_ref().filter(|id| is_label(id)), refused).await;
    }

    async fn run(&mut self, wish: SocketRun, claim: MemoryClaim) -> Result<(), Failure> {
        let SocketRun { id, module: name, input, args, options: mut asked, traceparent } = wish;
        if id.as_ref().is_some_and(|id| !is_label(id)) {
            let what = format!("`id` must be a number or a string of at most {LABEL} bytes");
            return Err(Failure::new(ErrorCode::InvalidInput, what)
                .suggest("Give each run on the socket a short `id`, such as a number"));
        }
        if *self.shared.draining.borrow() {
            return Err(shutdown_failure(ErrorCode::ProviderUnavailable));
        }
        // Looking up a missing module costs as much as a run, so it counts against the rate limit.
        run::within_shared_rate(&self.shared, &self.client).await?;
        let module = self.shared.module(&name).await;
        let ChosenRun { host, module, .. } =
            self.shared.choose(&self.client, &name, module, &mut asked).await?;
        // This channel carries only streams, so a module that does not stream sends its whole answer as the last
        // chunk.
        let wanted = Some(WantedAnswer::Streaming);
        let agreed = self.shared.host.capabilities.agree(module.manifest.response.mode, wanted, "websocket");
        run::forbidden_fallback(&asked, agreed.streaming)?;
        self.runs.retain(|_, run| !run.task.is_finished());
        let permit = run::permit(&self.shared, &self.client)?;
        // No warning option is needed: the stream itself shows that the answer arrives whole.
        let mut options = run::options(&self.client, &asked)?;
        // The trace of the run, or that of the socket if the client sent one, or a new one for each run.
        let own = traceparent.as_deref().and_then(Trace::parse);
        let trace = own.as_ref().unwrap_or(&self.client.trace);
        options.trace_id = trace.brought.then(|| trace.id.clone());
        // The parent of a run must be in the same trace: the caller's span, or the socket's span, or none.
        let above = if own.is_some() { trace.caller.as_deref() } else { Some(trace.span.as_str()) };
        options.spans = self.shared.place(trace, above.filter(|_| trace.brought));
        let input = match args {
            Some(args) => RunInput::Text(args),
            None => RunInput::Json(input.unwrap_or_default()),
        };
        let request = RunRequest { module: ModuleRef::from_module(name, module), input, options };
        let reader = run::start(&self.shared, &host, &self.client, request, &asked, permit, claim);
        let session = Arc::downgrade(reader.session());
        let name = reader.session().id.as_str().to_owned();
        let task = tokio::spawn(forward(reader, id, self.out.clone(), self.shared.config.heartbeat));
        self.runs.insert(name, Forwarder { session, task });
        Ok(())
    }

    /// Sends one error chunk as a separate stream.
    async fn refuse(&self, id: Option<&Value>, failure: Failure) {
        let mut writer = ChunkWriter::new(cognitive_runtime::session_id(), 0);
        for chunk in writer.finish(failure.for_remote_caller().into_envelope()) {
            let json = serde_json::to_vec(&chunk).unwrap_or_default();
            self.send(ServerFrame::Text(with_client_id(id, &json))).await;
        }
    }

    async fn send(&self, saying: ServerFrame) {
        // An error means that the client is gone; the reading side detects that.
        let _ = self.out.send(saying).await;
    }
}

/// A parsed message, as far as it is valid.
struct SocketMessage {
    wish: Result<SocketRequest, Failure>,
    /// The id for a refusal.
    id: Option<Value>,
    /// The refusal of a run whose numbers would lose precision.
    inexact: Option<Failure>,
}

impl SocketMessage {
    fn parse(mut text: String) -> Self {
        let inexact = numbers::refusal(&text);
        let parsed = large_json::parse(&mut text).map_or_else(|| serde_json::from_str(&text), Ok);
        let mut value: Value = match parsed {
            Ok(value) => value,
            Err(error) => return Self { wish: Err(unusable(&error)), id: None, inexact },
        };
        let id = value.get("id").cloned().filter(is_label);
        let input = value.as_object_mut().and_then(|members| members.shift_remove("input"));
        let mut wish = serde_json::from_value::<SocketRequest>(value).map_err(|error| unusable(&error));
        if let Ok(SocketRequest::Run(run)) = &mut wish {
            run.input = input;
        }
        Self { wish, id, inexact }
    }
}

fn unusable(error: &serde_json::Error) -> Failure {
    Failure::new(ErrorCode::InvalidInput, format!("invalid message: {error}"))
        .suggest(r#"Send {"type": "run", "module": …, "input": …}, "cancel" or "ping""#)
}

/// Forwards the chunks of one run until the last one or until the client disconnects.
async fn forward(
    mut reader: Reader,
    id: Option<Value>,
    out: mpsc::Sender<ServerFrame>,
    heartbeat: std::time::Duration,
) {
    loop {
        let text = match tokio::time::timeout(heartbeat, reader.next()).await {
            Ok(Some((_, sent))) => with_client_id(id.as_ref(), &sent.json),
            Ok(None) => return,
            Err(_) => with_client_id(id.as_ref(), b"{}"),
        };
        if out.send(ServerFrame::Text(text)).await.is_err() {
            return;
        }
    }
}

/// Prepends the client's id to a chunk.
fn with_client_id(id: Option<&Value>, json: &[u8]) -> Vec<u8> {
    match (id, json.split_first()) {
        (Some(id), Some((b'{', rest))) => {
            let comma = if rest == b"}" { "" } else { "," };
            let label = format!("{{\"id\":{id}{comma}");
            [label.as_bytes(), rest].concat()
        }
        _ => json.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_carries_the_id_of_the_client() {
        let text =
            |id: Option<Value>, json: &[u8]| String::from_utf8(with_client_id(id.as_ref(), json)).unwrap();
        assert_eq!(text(Some("a\"b".into()), br#"{"final":true}"#), r#"{"id":"a\"b","final":true}"#);
        assert_eq!(text(Some(7.into()), b"{}"), r#"{"id":7}"#);
        assert_eq!(text(None, b"{}"), "{}");
    }
}
