//! Streams beyond one server: what goes out here is handed to the others, and a client that lost its server finds its stream at
//! any of them. What was finished is replayed; what still goes on elsewhere is followed; what was cut off by the death of its server
//! ends with E2010 and the parts that were kept. No model is asked here.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use bytes::BytesMut;
use cognitive_contract::stream::{ChunkWriter, SessionId, assemble};
use serde_json::Value;

use crate::app::Shared;
use crate::session::{Session, SilentReader};
use crate::shared_state::{SharedPart, SharedState, SharedStream};
use crate::stream_log::{MAX_SIZE, Sent};

/// How many chunks are handed over at once.
const BATCH: usize = 64;
/// How often a stream of another server is looked at.
const PULSE: Duration = Duration::from_millis(100);
/// How often nobody has to answer before a stream that is followed counts as lost.
const PATIENCE: usize = 50;

/// Hands all that a stream sends to the others, from now on until its end.
pub(crate) fn publish(shared: &Arc<Shared>, session: &Arc<Session>) {
    let Some(state) = shared.config.shared.clone() else { return };
    let keep = shared.config.replay;
    if keep.is_zero() {
        return;
    }
    let mut reader = SilentReader::new(session);
    let stream = SharedStream {
        id: session.id.as_str().to_owned(),
        owner: session.owner.clone(),
        module: session.module.clone(),
    };
    // Longer than the stream itself may take, so that nothing of it goes while it goes on.
    let keep = keep.max(shared.config.stream_limit + keep);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let sent = hand_over(state.as_ref(), &stream, &mut reader, keep).await;
        if let Err(reason) = sent {
            // Half of a stream is of no use to anybody.
            let _ = state.forget_stream(&stream.id).await;
            shared.config.complain(&format!("a stream cannot be taken up at another server: {reason}"));
        }
    });
}

async fn hand_over(
    state: &dyn SharedState,
    stream: &SharedStream,
    reader: &mut SilentReader,
    keep: Duration,
) -> Result<(), String> {
    state.open_stream(stream, keep).await?;
    let mut bytes = 0;
    loop {
        let batch = reader.some(BATCH).await;
        if batch.is_empty() {
            return Err("a part of it was forgotten".to_owned());
        }
        bytes += batch.iter().map(|sent| sent.json.len()).sum::<usize>();
        if bytes > MAX_SIZE {
            return Err("it is too long".to_owned());
        }
        let has_ended = batch.last().is_some_and(|sent| sent.kind.is_terminal());
        state.append(&stream.id, batch.into_iter().map(|sent| sent.json).collect(), keep).await?;
        if has_ended {
            return Ok(());
        }
    }
}

/// Looks for a stream at the others; `None` if nobody knows it, or it is somebody else's.
pub(crate) async fn find(shared: &Arc<Shared>, id: &str, owner: &str, module: &str) -> Option<Arc<Session>> {
    let state = shared.config.shared.clone()?;
    match look(shared, &state, id, owner, module).await {
        Ok(found) => found,
        Err(reason) => {
            shared.config.complain(&format!("a stream of another server cannot be looked for: {reason}"));
            None
        }
    }
}

async fn look(
    shared: &Arc<Shared>,
    state: &Arc<dyn SharedState>,
    id: &str,
    owner: &str,
    module: &str,
) -> Result<Option<Arc<Session>>, String> {
    let known = state.stream(id).await?.filter(|stream| stream.owner == owner && stream.module == module);
    let Some((stream, id)) = known.zip(SessionId::new(id)) else { return Ok(None) };
    let session = Session::new(id, &stream.owner, &stream.module, true, &shared.sessions.burden);
    session.set_followed();
    let mut mirror = Mirror { session: Arc::clone(&session), length: 0, parts: Vec::new() };
    let part = state.read(&stream.id, 0).await?;
    let is_served = part.is_served;
    mirror.add(part);
    if is_served && !session.has_ended() {
        let (shared, state) = (Arc::clone(shared), Arc::clone(state));
        shared.sessions.insert(&session);
        tokio::spawn(async move {
            mirror.follow(state.as_ref()).await;
            shared.sessions.ended(&mirror.session, shared.config.replay);
        });
        return Ok(Some(session));
    }
    if !session.has_ended() {
        mirror.close(state.as_ref()).await?;
    }
    shared.sessions.insert(&session);
    shared.sessions.ended(&session, shared.config.replay);
    Ok(Some(session))
}

/// A stream of another server, as far as it is known here.
struct Mirror {
    session: Arc<Session>,
    /// How many chunks there were when it was last looked at.
    length: usize,
    /// They as values: what its last word is made of if its server dies.
    parts: Vec<Value>,
}

impl Mirror {
    fn add(&mut self, part: SharedPart) {
        if part.was_cut_off {
            self.session.set_cut_off();
        }
        for json in part.chunks {
            self.length += 1;
            if let Some((sent, value)) = Sent::read(json) {
                self.parts.push(value);
                self.session.adopt(sent);
            }
        }
    }

    /// Goes along with a stream until it ends, by itself or by the death of its server.
    async fn follow(&mut self, state: &dyn SharedState) {
        let id = self.session.id.as_str().to_owned();
        let mut silence = 0;
        while !self.session.has_ended() {
            tokio::select! {
                () = tokio::time::sleep(PULSE) => {}
                // This server stops; the stream itself goes on elsewhere.
                _ = self.session.cancelled() => silence = PATIENCE,
            }
            match state.read(&id, self.length).await {
                Ok(part) if silence < PATIENCE => {
                    let is_served = part.is_served;
                    self.add(part);
                    silence = if is_served { 0 } else { silence + 1 };
                    if !is_served && !self.session.has_ended() && self.close(state).await.is_ok() {
                        return;
                    }
                }
                _ => silence += 1,
            }
            if silence >= PATIENCE && !self.session.has_ended() {
                let Some((_, last)) = self.last_word() else { return };
                self.session.adopt(last);
            }
        }
    }

    /// Ends a stream that nobody sends any more, for all who come after.
    async fn close(&mut self, state: &dyn SharedState) -> Result<(), String> {
        let (json, last) = self.last_word().ok_or("the stream has no end")?;
        let id = self.session.id.as_str().to_owned();
        if state.close_orphan(&id, self.length, json).await? {
            self.session.set_cut_off();
            self.session.adopt(last);
            return Ok(());
        }
        // Somebody else was faster.
        let part = state.read(&id, self.length).await?;
        self.add(part);
        if self.session.has_ended() { Ok(()) } else { Err("the stream has no end".to_owned()) }
    }

    /// E2010 with what there is of the answer.
    fn last_word(&self) -> Option<(Bytes, Sent)> {
        let envelope = assemble(self.parts.iter().cloned());
        let chunks = ChunkWriter::new(self.session.id.clone(), 0).finish(envelope);
        let sent = Sent::new(chunks.last()?, &mut BytesMut::new())?;
        Some((sent.json.clone(), sent))
    }
}
