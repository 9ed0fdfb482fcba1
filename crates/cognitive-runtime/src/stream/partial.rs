//! The partial data of an unfinished answer: the data as a stream would have shown it, even if there was none (D-12).
//! Reads the text by the rules of a stream, with one that sends nothing.

use cognitive_contract::Module;
use cognitive_contract::manifest::ChunkType;
use cognitive_contract::stream::SessionId;
use serde_json::{Map, Value};

use super::chunk_sender::ChunkSender;
use super::field_deltas::FieldDeltas;
use crate::reply::{JsonEvent, JsonListener, ValueTree, scan_text};

/// The members of the data so far, with the received part of an open text. Empty if the answer had started and its
/// data had not; `None` if no object had started.
pub(crate) fn so_far(module: &Module, text: &str, strict: bool) -> Option<Map<String, Value>> {
    read(module, text, strict, ValueTree::so_far)
}

/// The complete members of the data so far.
pub(crate) fn complete(module: &Module, text: &str, strict: bool) -> Option<Map<String, Value>> {
    read(module, text, strict, ValueTree::complete)
}

fn read(
    module: &Module,
    text: &str,
    strict: bool,
    show: impl FnOnce(&ValueTree) -> Option<Value>,
) -> Option<Map<String, Value>> {
    let mut sender = ChunkSender::new(SessionId::from_random(0), Box::new(drop));
    sender.silence();
    let mut deltas = FieldDeltas::new(sender);
    deltas.want(ChunkType::Snapshot);
    deltas.configure(module);
    let mut silent = SilentStream { deltas, begun: false };
    scan_text(text, strict, &mut silent);
    let data = match silent.deltas.data().and_then(show) {
        Some(Value::Object(data)) => data,
        _ => Map::new(),
    };
    silent.begun.then_some(data)
}

/// A stream that sends nothing. `begun` is set if an object started.
struct SilentStream {
    deltas: FieldDeltas<'static>,
    begun: bool,
}

impl JsonListener for SilentStream {
    fn event(&mut self, event: JsonEvent<'_>, at: usize) {
        match event {
            JsonEvent::Begin(_) => self.begun = true,
            JsonEvent::Void => self.begun = false,
            _ => {}
        }
        self.deltas.event(event, at);
    }
}
