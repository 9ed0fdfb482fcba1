//! `/ws`: several runs over one socket, each with the id that the client gave it (API-006, S-17).
//! A message that cannot be understood gets an error chunk, never a dead socket.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::Response;
use axum::response::IntoResponse;
use cognitive_contract::capabilities::Wanted;
use cognitive_contract::stream::{ChunkWriter, SessionId};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{RunOptions, RunRequest};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::app::Shared;
use crate::ask::Options;
use crate::guard::Client;
use crate::run;
use crate::session::{Reader, Session};

/// Chunks that wait for a slow client before its runs wait for it.
const WAITING: usize = 64;

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
}

/// Takes the connection over.
pub(crate) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Response<Body> {
    let socket = match socket {
        Ok(socket) => socket,
        Err(rejection) => {
            let failure = Failure::new(ErrorCode::InvalidInput, "this address speaks WebSocket only")
                .suggest("Connect with a WebSocket client, or use `POST /api/run/{module}`");
            return crate::answer::failure_as(rejection.into_response().status(), failure);
        }
    };
    let limit = shared.config.body_limit;
    socket
        .max_message_size(limit)
        .max_frame_size(limit)
        .on_upgrade(move |socket| talk(socket, shared, client))
}

/// Reads wishes until the client goes; everything that goes out passes one channel.
async fn talk(socket: WebSocket, shared: Arc<Shared>, client: Client) {
    let (mut write, mut read) = socket.split();
    let (out, mut outgoing) = mpsc::channel::<Message>(WAITING);
    let writer = tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let closes = matches!(message, Message::Close(_));
            if write.send(message).await.is_err() || closes {
                break;
            }
        }
    });
    let mut socket = Socket { shared, client, out, runs: HashMap::new() };
    let mut draining = socket.shared.draining.subscribe();
    loop {
        let message = tokio::select! {
            message = read.next() => message,
            () = drained(&mut draining, &mut socket.runs) => {
                socket.close(close_code::AWAY, "the server is shutting down").await;
                break;
            }
        };
        match message {
            Some(Ok(Message::Text(text))) => socket.wish(&text).await,
            Some(Ok(Message::Binary(_))) => {
                socket.refuse(None, Failure::new(ErrorCode::InvalidInput, "messages have to be text")).await;
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Err(_)) => {
                socket.close(close_code::SIZE, "the message cannot be read or is too big").await;
                break;
            }
            Some(Ok(Message::Close(_))) | None => break,
        }
    }
    // Dropping the last sender ends the writer; dropping the forwarders' readers ends the runs.
    let Socket { runs, out, .. } = socket;
    for forwarder in runs.into_values() {
        forwarder.task.abort();
    }
    drop(out);
    let _ = writer.await;
}

/// Waits until the server stops and the last run of this socket has said its last word.
async fn drained(draining: &mut watch::Receiver<bool>, runs: &mut HashMap<String, Forwarder>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        return std::future::pending().await;
    }
    for forwarder in runs.values_mut() {
        let _ = (&mut forwarder.task).await;
    }
}

struct Forwarder {
    session: Arc<Session>,
    task: tokio::task::JoinHandle<()>,
}

struct Socket {
    shared: Arc<Shared>,
    client: Client,
    out: mpsc::Sender<Message>,
    runs: HashMap<String, Forwarder>,
}

impl Socket {
    async fn wish(&mut self, text: &str) {
        match serde_json::from_str::<Wish>(text) {
            Ok(Wish::Ping) => self.send(Message::text(r#"{"type":"pong"}"#)).await,
            Ok(Wish::Cancel { session_id }) => match self.runs.get(&session_id) {
                Some(run) => {
                    let reason =
                        Failure::new(ErrorCode::StreamInterrupted, "the run was cancelled by the client");
                    run.session.cancel(reason.suggest("Run it again"));
                }
                None => {
                    let failure = Failure::new(ErrorCode::SessionExpired, "this socket has no such run");
                    self.refuse(None, failure).await;
                }
            },
            Ok(Wish::Run(wish)) => {
                let id = wish.id.clone();
                if let Err(failure) = self.run(*wish) {
                    self.refuse(id.as_ref(), failure).await;
                }
            }
            Err(error) => {
                let id = serde_json::from_str::<Value>(text).ok().and_then(|value| value.get("id").cloned());
                let failure =
                    Failure::new(ErrorCode::InvalidInput, format!("the message cannot be used: {error}"))
                        .suggest(r#"Send {"type": "run", "module": …, "input": …}, "cancel" or "ping""#);
                self.refuse(id.as_ref(), failure).await;
            }
        }
    }

    fn run(&mut self, wish: RunWish) -> Result<(), Failure> {
        let RunWish { id, module: name, input, args, options: asked } = wish;
        let module = self.shared.module(&name)?;
        run::within_rate(&self.shared, &self.client)?;
        self.runs.retain(|_, run| !run.task.is_finished());
        let permit = run::permit(&self.shared, &self.client)?;
        let mut options = RunOptions::default();
        options.timeout = self.shared.config.call_timeout;
        options.receipt = asked.receipt;
        options.seed = asked.seed;
        options.max_output_tokens = asked.max_output_tokens;
        // This channel carries only streams, so a module that does not stream sends its whole answer as the last chunk.
        options.warnings.extend(
            self.shared
                .host
                .capabilities
                .agree(module.manifest.response.mode, Some(Wanted::Streaming))
                .warning,
        );
        let input = match args {
            Some(args) => RunInput::Text(args),
            None => RunInput::Json(input.unwrap_or_default()),
        };
        let request = RunRequest { module: name, input, options };
        let reader = run::start(&self.shared, &self.client, request, asked.chunk_type, permit);
        let session = Arc::clone(reader.session());
        let task = tokio::spawn(forward(reader, id, self.out.clone(), self.shared.config.heartbeat));
        self.runs.insert(session.id.as_str().to_owned(), Forwarder { session, task });
        Ok(())
    }

    /// One error chunk, as a stream of its own.
    async fn refuse(&self, id: Option<&Value>, failure: Failure) {
        let mut writer = ChunkWriter::new(SessionId::from_random(run::random_bits()), 0);
        for chunk in writer.finish(failure.into_envelope()) {
            let json = serde_json::to_vec(&chunk).unwrap_or_default();
            self.send(labelled(id, &json)).await;
        }
    }

    async fn close(&self, code: u16, reason: &'static str) {
        self.send(Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }))).await;
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
