//! Streams across several servers. Each server publishes its streams to the shared state, so a client that lost its
//! server can resume at any other. Finished streams are replayed; streams that still run elsewhere are followed. A
//! stream whose server died ends with E2010 and the data so far. Never calls a model.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use bytes::BytesMut;
use cognitive_contract::code::Blame;
use cognitive_contract::stream::{ChunkWriter, SessionId, assemble};
use cognitive_contract::{Envelope, Module};
use serde_json::Value;

use crate::app::AppState;
use crate::session::{Session, SilentReader};
use crate::shared_state::{SharedPart, SharedState, SharedStream};
use crate::stream_log::{MAX_SIZE, SentChunk};

/// The number of chunks published at once. One round trip for each chunk would make Redis the bottleneck.
const BATCH: usize = 64;
/// The polling interval for a stream of another server. Shorter intervals would load Redis with polls; a reader sees
/// text at most this much later.
const PULSE: Duration = Duration::from_millis(100);
/// The number of failed polls in a row after which a followed stream counts as lost. Without it, a reader would wait
/// forever for a server that is gone.
const PATIENCE: usize = 50;

/// Publishes all chunks of a stream to the shared state, until its end.
pub(crate) fn publish(shared: &Arc<AppState>, session: &Arc<Session>) {
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
    // Longer than the longest stream, so that no part of it expires while it runs.
    let keep = keep.max(shared.config.stream_limit + keep);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let sent = hand_over(state.as_ref(), &stream, &mut reader, keep).await;
        if let Err(reason) = sent {
            // An incomplete stream cannot be resumed.
            let _ = state.forget_stream(&stream.id).await;
            shared.config.complain(&format!("cannot resume a stream of another server: {reason}"));
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
        let batch = reader.next_chunks(BATCH).await;
        if batch.is_empty() {
            return Err("a part of it was discarded".to_owned());
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

/// Finds a stream in the shared state; `None` if it is unknown or has another owner or module.
pub(crate) async fn find(
    shared: &Arc<AppState>,
    id: &str,
    owner: &str,
    module: &str,
) -> Option<Arc<Session>> {
    let state = shared.config.shared.clone()?;
    match look(shared, &state, id, owner, module).await {
        Ok(found) => found,
        Err(reason) => {
            shared.config.complain(&format!("cannot look up a stream of another server: {reason}"));
            None
        }
    }
}

async fn look(
    shared: &Arc<AppState>,
    state: &Arc<dyn SharedState>,
    id: &str,
    owner: &str,
    module: &str,
) -> Result<Option<Arc<Session>>, String> {
    let known = state.stream(id).await?.filter(|stream| stream.owner == owner && stream.module == module);
    let Some((stream, id)) = known.zip(SessionId::new(id)) else { return Ok(None) };
    let session = Session::new(id, &stream.owner, &stream.module, true, &shared.sessions.burden);
    session.set_followed();
    let module = shared.module(module).await.ok();
    let mut mirror = Mirror { session: Arc::clone(&session), module, length: 0, parts: Vec::new() };
    let part = state.read(&stream.id, 0).await?;
    let is_served = part.is_served;
    mirror.add(part);
    if is_served && !session.has_ended() {
        let (shared, state) = (Arc::clone(shared), Arc::clone(state));
        shared.sessions.insert(&session);
        tokio::spawn(async move {
            mirror.follow(state.as_ref()).await;
            shared.sessions.record_end(&mirror.session, shared.config.replay);
        });
        return Ok(Some(session));
    }
    if !session.has_ended() {
        mirror.close(state.as_ref()).await?;
    }
    shared.sessions.insert(&session);
    shared.sessions.record_end(&session, shared.config.replay);
    Ok(Some(session))
}

/// The local copy of a stream that another server runs.
struct Mirror {
    session: Arc<Session>,
    /// The module of the stream, if this server has it.
    module: Option<Arc<Module>>,
    /// The number of chunks at the last poll.
    length: usize,
    /// These chunks as values, for the closing envelope if the server of the stream dies.
    parts: Vec<Value>,
}

impl Mirror {
    fn add(&mut self, part: SharedPart) {
        if part.was_cut_off {
            self.session.set_cut_off();
        }
        for json in part.chunks {
            self.length += 1;
            if let Some((sent, value)) = SentChunk::read(json) {
                self.parts.push(value);
                self.session.adopt(sent);
            }
        }
    }

    /// Follows a stream until it ends, or until its server dies.
    async fn follow(&mut self, state: &dyn SharedState) {
        let id = self.session.id.as_str().to_owned();
        let mut silence = 0;
        while !self.session.has_ended() {
            tokio::select! {
                () = tokio::time::sleep(PULSE) => {}
                // This server stops; the stream continues elsewhere.
                _ = self.session.wait_for_cancellation() => silence = PATIENCE,
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

    /// Closes a stream whose server is gone, for all later readers.
    async fn close(&mut self, state: &dyn SharedState) -> Result<(), String> {
        let (json, last) = self.last_word().ok_or("the stream has no end")?;
        let id = self.session.id.as_str().to_owned();
        if state.close_orphan(&id, self.length, json).await? {
            self.session.set_cut_off();
            self.session.adopt(last);
            return Ok(());
        }
        // Another server closed it first.
        let part = state.read(&id, self.length).await?;
        self.add(part);
        if self.session.has_ended() { Ok(()) } else { Err("the stream has no end".to_owned()) }
    }

    /// Returns the last chunk: E2010 with the data so far.
    fn last_word(&self) -> Option<(Bytes, SentChunk)> {
        let mut envelope = serde_json::to_value(assemble(self.parts.iter().cloned())).ok()?;
        if let (Some(module), Some(data)) = (&self.module, envelope.get_mut("partial_data")) {
            with_lists(data, module.contract.data().schema());
        }
        for (place, text) in [("/error/message", STOPPED.to_owned()), ("/meta/explain", stopped_message())] {
            if let Some(told) = envelope.pointer_mut(place) {
                *told = text.into();
            }
        }
        let envelope = Envelope::from_value(envelope).ok()?;
        let chunks = ChunkWriter::new(self.session.id.clone(), 0).finish(envelope);
        let sent = SentChunk::new(chunks.last()?, &mut BytesMut::new())?;
        Some((sent.json.clone(), sent))
    }
}

/// The message of a stream whose server is gone.
const STOPPED: &str = "the server that ran this stream has stopped";

fn stopped_message() -> String {
    format!("{}: {STOPPED}", Blame::Runtime.opening())
}

/// Turns members that are numbered like items into a list, where the schema has one. Deltas name items by number, and
/// a list without a snapshot looks like an object.
fn with_lists(value: &mut Value, schema: &Value) {
    if let Some(items) = schema.get("items") {
        if let Value::Object(members) = value
            && members.keys().enumerate().all(|(number, name)| *name == number.to_string())
        {
            *value = std::mem::take(members).into_iter().map(|(_, item)| item).collect();
        }
        if let Value::Array(list) = value {
            for item in list {
                with_lists(item, items);
            }
        }
    }
    if let (Value::Object(members), Some(properties)) = (value, schema.get("properties")) {
        for (name, member) in members {
            if let Some(schema) = properties.get(name) {
                with_lists(member, schema);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbered_members_are_a_list_only_where_the_schema_has_one() {
        let items = json!({ "properties": { "text": {}, "tags": { "items": {} } } });
        let schema = json!({ "properties": { "list": { "items": items }, "map": { "type": "object" } } });
        let mut data = json!({
            "list": { "0": { "text": "a", "tags": { "0": "x", "1": "y" } }, "1": { "text": "b" } },
            "map": { "0": "a" }, "other": { "0": "a" },
        });
        with_lists(&mut data, &schema);
        assert_eq!(data["list"], json!([{ "text": "a", "tags": ["x", "y"] }, { "text": "b" }]));
        assert_eq!((&data["map"], &data["other"]), (&json!({ "0": "a" }), &json!({ "0": "a" })));
        let mut odd = json!({ "list": { "1": "b" } });
        with_lists(&mut odd, &schema);
        assert_eq!(odd, json!({ "list": { "1": "b" } }), "an item is missing");
    }
}
