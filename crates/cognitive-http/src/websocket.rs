//! `/ws`: several runs over one socket, each with the id that the client gave it (API-006, S-17).
//! A message that cannot be understood gets an error chunk, never a dead socket.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use axum::body::{Body, Bytes};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::Response;
use axum::response::IntoResponse;
use cognitive_contract::capabilities::Wanted;
use cognitive_contract::stream::ChunkWriter;
use cognitive_contract::{ErrorCode, Failure, numbers};
use cognitive_runtime::RunRequest;
use cognitive_runtime::host::RunInput;
use futures_util::stream::SplitStream;
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::app::{Shared, shutting_down};
use crate::ask::Options;
use crate::guard::Client;
use crate::routes::{body_limit, largest_body, too_large};
use crate::run;
use crate::session::{Reader, Session};
use crate::trace::Trace;

/// Chunks that wait for a slow client before its runs wait for it.
const WAITING: usize = 64;
/// Heartbeats without any sign of a client, which answers pings if it lives, before it counts as gone.
const SILENCE: u32 = 8;
/// The longest `id` of a run. It goes out with every chunk.
const LABEL: usize = 128;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Wish {
    Run(Box<RunWish>),
    Cancel { session_id: String },
    Ping,
}

#[derive(Debug, Deserialize)]
struct RunWish {
    #[serde(default)]
    id: Option<Value>,
    module: String,
    #[serde(default)]
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

/// Takes the connection over.
pub(crate) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Arc<Client>>,
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Response<Body> {
    if !shared.host.capabilities.carries("websocket") {
        return crate::answer::failure(run::no_such_transport(&shared));
    }
    let socket = match socket {
        Ok(socket) => socket,
        Err(rejection) => {
            let failure = Failure::new(ErrorCode::InvalidInput, "this address speaks WebSocket only")
                .suggest("Connect with a WebSocket client, or use `POST /api/run/{module}`");
            return crate::answer::failure_as(rejection.into_response().status(), failure);
        }
    };
    let limit = largest_body(&shared);
    // A page that shows its key as a subprotocol needs another one that it is given; the key itself is not sent back.
    let socket = socket.protocols(["cogn"]);
    socket
        .max_message_size(limit)
        .max_frame_size(limit)
        .on_upgrade(move |socket| talk(socket, shared, client))
}

/// Reads wishes until the client goes; everything that goes out passes one channel.
async fn talk(socket: WebSocket, shared: Arc<Shared>, client: Arc<Client>) {
    let (mut write, mut read) = socket.split();
    let (out, mut outgoing) = mpsc::channel::<Message>(WAITING);
    let writer = tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let closes = matches!(message, Message::Close(_));
            if write.send(message).await.is_err() {
                return;
            }
            if closes {
                break;
            }
        }
        // A goodbye is answered; without this it would wait for somebody to read once more.
        let _ = write.close().await;
    });
    let mut socket = Socket { shared, client, out, runs: HashMap::new(), silence: 0 };
    let end = AssertUnwindSafe(socket.listen(&mut read)).catch_unwind().await;
    let end = end.unwrap_or(Some((close_code::ERROR, "the server met a fault of its own")));
    // Whoever is going does not wait for the rest; those who were told to go have heard it.
    for forwarder in socket.runs.values() {
        forwarder.task.abort();
    }
    if let Some((code, reason)) = end {
        socket.send(Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }))).await;
    }
    // Dropping the last sender ends the writer; dropping the forwarders' readers ends the runs.
    drop(socket);
    let _ = writer.await;
}

/// Why the server closes a socket (S-17): too big, against the rules, or not to be understood.
fn complaint(error: &axum::Error) -> Option<Goodbye> {
    // The error below is of a crate that is known here only by what it says.
    let text = error.to_string();
    let begins = |words: &str| text.starts_with(words);
    match () {
        () if begins("Space limit exceeded") => Some((close_code::SIZE, "the message is too big")),
        () if begins("UTF-8 encoding error") => Some((close_code::INVALID, "the message is not UTF-8")),
        () if begins("WebSocket protocol error") => Some((close_code::PROTOCOL, "this is not WebSocket")),
        () => None,
    }
}

/// Waits until the server stops and the last run of this socket has said its last word. Safe to drop and call again.
async fn drained(draining: &mut watch::Receiver<bool>, runs: &mut HashMap<String, Forwarder>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        return std::future::pending().await;
    }
    loop {
        runs.retain(|_, run| !run.task.is_finished());
        let Some(run) = runs.values_mut().next() else { return };
        let _ = (&mut run.task).await;
    }
}

type Goodbye = (u16, &'static str);

struct Forwarder {
    /// Not the log itself: a run that ended must not be kept by a socket that sleeps.
    session: Weak<Session>,
    task: tokio::task::JoinHandle<()>,
}

struct Socket {
    shared: Arc<Shared>,
    client: Arc<Client>,
    out: mpsc::Sender<Message>,
    runs: HashMap<String, Forwarder>,
    /// How often nothing came when something should have.
    silence: u32,
}

impl Socket {
    /// Does what the client asks for until one side has enough. Gives what is left to say.
    async fn listen(&mut self, read: &mut SplitStream<WebSocket>) -> Option<Goodbye> {
        let mut draining = self.shared.draining.subscribe();
        let heartbeat = self.shared.config.heartbeat;
        loop {
            let message = tokio::select! {
                message = tokio::time::timeout(heartbeat, read.next()) => message,
                () = drained(&mut draining, &mut self.runs) => {
                    return Some((close_code::AWAY, "the server is shutting down"));
                }
            };
            let Ok(message) = message else {
                self.silence += 1;
                if self.silence > SILENCE {
                    return Some((close_code::POLICY, "no sign of life"));
                }
                // A queue that is full has enough to say already.
                let _ = self.out.try_send(Message::Ping(Bytes::new()));
                continue;
            };
            self.silence = 0;
            match message? {
                Ok(Message::Text(text)) => self.wish(&text).await,
                Ok(Message::Binary(_)) => {
                    self.refuse(None, Failure::new(ErrorCode::InvalidInput, "messages have to be text"))
                        .await;
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Close(_)) => return None,
                Err(error) => return complaint(&error),
            }
        }
    }

    async fn wish(&mut self, text: &str) {
        match serde_json::from_str::<Wish>(text) {
            Ok(Wish::Ping) => self.send(Message::text(r#"{"type":"pong"}"#)).await,
            Ok(Wish::Cancel { session_id }) => {
                match self.runs.get(&session_id).and_then(|run| run.session.upgrade()) {
                    Some(session) => {
                        let reason = Failure::cancelled("the run was cancelled by the client");
                        session.cancel(reason.suggest("Run it again"));
                    }
                    None => {
                        let failure = Failure::new(ErrorCode::SessionExpired, "this socket has no such run");
                        self.refuse(None, failure).await;
                    }
                }
            }
            Ok(Wish::Run(wish)) => {
                let id = wish.id.clone();
                let ran = match numbers::refusal(text) {
                    Some(failure) => Err(failure),
                    None => self.run(*wish, text.len()).await,
                };
                if let Err(failure) = ran {
                    self.refuse(id.as_ref().filter(|id| is_label(id)), failure).await;
                }
            }
            Err(error) => {
                let id = serde_json::from_str::<Value>(text).ok().and_then(|value| value.get("id").cloned());
                let failure =
                    Failure::new(ErrorCode::InvalidInput, format!("the message cannot be used: {error}"))
                        .suggest(r#"Send {"type": "run", "module": …, "input": …}, "cancel" or "ping""#);
                self.refuse(id.as_ref().filter(|id| is_label(id)), failure).await;
            }
        }
    }

    async fn run(&mut self, wish: RunWish, length: usize) -> Result<(), Failure> {
        let RunWish { id, module: name, input, args, options: asked, traceparent } = wish;
        if id.as_ref().is_some_and(|id| !is_label(id)) {
            let what = format!("`id` has to be a number or a string of at most {LABEL} bytes");
            return Err(Failure::new(ErrorCode::InvalidInput, what).suggest("Number the runs of a socket"));
        }
        if *self.shared.draining.borrow() {
            return Err(shutting_down(ErrorCode::ProviderUnavailable));
        }
        let module = run::found(&self.shared, &self.client, self.shared.module(&name).await)?;
        let limit = body_limit(&self.shared, &module);
        if length > limit {
            return Err(too_large("message", limit));
        }
        run::within_rate(&self.shared, &self.client)?;
        // This channel carries only streams, so a module that does not stream sends its whole answer as the last chunk.
        let wanted = Some(Wanted::Streaming);
        let agreed = self.shared.host.capabilities.agree(module.manifest.response.mode, wanted, "websocket");
        run::forbidden_fallback(&asked, agreed.streaming)?;
        self.runs.retain(|_, run| !run.task.is_finished());
        let permit = run::permit(&self.shared, &self.client)?;
        // That the answer comes whole is said by the stream itself.
        let mut options = run::options(&self.shared, &self.client, &asked)?;
        // The trace of the run, else that of the socket if the client brought one, else a new one for each run.
        let own = traceparent.as_deref().and_then(Trace::brought);
        let trace = own.as_ref().unwrap_or(&self.client.trace);
        options.trace_id = trace.brought.then(|| trace.id.clone());
        // What is above a run is of the same trace: the work of its caller, else the socket, else nothing.
        let above = if own.is_some() { trace.caller.as_deref() } else { Some(trace.span.as_str()) };
        options.spans = self.shared.place(trace, above.filter(|_| trace.brought));
        let input = match args {
            Some(args) => RunInput::Text(args),
            None => RunInput::Json(input.unwrap_or_default()),
        };
        let request = RunRequest { module: name, input, options };
        let reader = run::start(&self.shared, &self.client, request, &asked, permit);
        let session = Arc::downgrade(reader.session());
        let name = reader.session().id.as_str().to_owned();
        let task = tokio::spawn(forward(reader, id, self.out.clone(), self.shared.config.heartbeat));
        self.runs.insert(name, Forwarder { session, task });
        Ok(())
    }

    /// One error chunk, as a stream of its own.
    async fn refuse(&self, id: Option<&Value>, failure: Failure) {
        let mut writer = ChunkWriter::new(cognitive_runtime::session_id(), 0);
        for chunk in writer.finish(failure.into_envelope()) {
            let json = serde_json::to_vec(&chunk).unwrap_or_default();
            self.send(labelled(id, &json)).await;
        }
    }

    async fn send(&self, message: Message) {
        // The client went away; the reading side notices.
        let _ = self.out.send(message).await;
    }
}

/// Passes the chunks of one run on, until its last or until the client goes.
async fn forward(
    mut reader: Reader,
    id: Option<Value>,
    out: mpsc::Sender<Message>,
    heartbeat: std::time::Duration,
) {
    loop {
        let message = match tokio::time::timeout(heartbeat, reader.next()).await {
            Ok(Some((_, sent))) => labelled(id.as_ref(), &sent.json),
            Ok(None) => return,
            Err(_) => labelled(id.as_ref(), b"{}"),
        };
        if out.send(message).await.is_err() {
            return;
        }
    }
}

/// A chunk with the client's id in front.
fn labelled(id: Option<&Value>, json: &[u8]) -> Message {
    let text = match (id, json.split_first()) {
        (Some(id), Some((b'{', rest))) => {
            let comma = if rest == b"}" { "" } else { "," };
            let mut text = format!("{{\"id\":{id}{comma}").into_bytes();
            text.extend_from_slice(rest);
            Bytes::from(text)
        }
        _ => Bytes::copy_from_slice(json),
    };
    // Chunks are JSON of our own making, so this is UTF-8.
    Message::Text(Utf8Bytes::try_from(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_17_a_chunk_carries_the_id_of_the_client() {
        let text =
            |id: Option<Value>, json: &[u8]| labelled(id.as_ref(), json).into_text().unwrap().to_string();
        assert_eq!(text(Some("a\"b".into()), br#"{"final":true}"#), r#"{"id":"a\"b","final":true}"#);
        assert_eq!(text(Some(7.into()), b"{}"), r#"{"id":7}"#);
        assert_eq!(text(None, b"{}"), "{}");
    }
}
