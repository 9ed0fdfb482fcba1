//! Turns events into chunks: texts below `data` grow field by field, or the whole data is sent again if the module
//! asks for snapshots; `meta` is sent when it is complete. Announces no text within thinking, and of several objects
//! the latest: the final chunk has the actual answer.
//!
//! One delta per field and piece. If an object turns out not to be the answer, an empty snapshot takes back the
//! announced data. A duplicate member, or one whose name cannot be in a path, is only in the final chunk.

use cognitive_contract::Module;
use cognitive_contract::manifest::ChunkType;
use serde_json::{Map, Value};

use super::chunk_sender::ChunkSender;
use super::seen_names::SeenNames;
use crate::reply::{Bracket, EnvelopeCursor, EnvelopeMember, JsonEvent, JsonListener, ValueTree};

/// A snapshot is due when the data has grown by this fraction. Keeps the total cost of all snapshots linear.
const SNAPSHOT_GROWTH: usize = 8;

/// Turns the events of an answer into chunks.
pub(crate) struct FieldDeltas<'o> {
    sender: ChunkSender<'o>,
    style: DeltaStyle,
    wanted: Option<ChunkType>,
    root: EnvelopeCursor,
    /// Set if an object was announced and is not known to be thinking.
    announced: bool,
    /// The depth of the data, if the current object is announced.
    live: Option<usize>,
    /// Set if data was sent and not taken back.
    sent: bool,
    /// The dotted path of the current value.
    path: String,
    frames: Vec<DeltaFrame>,
    /// Text of the current field in the current piece.
    text: String,
    meta: Option<ValueTree>,
    /// The data, for snapshots.
    data: ValueTree,
    /// Bytes of text in the data, and those in the last snapshot.
    grown: usize,
    shown: usize,
}

/// The module's preferences.
#[derive(Debug, Clone, Copy)]
struct DeltaStyle {
    kind: ChunkType,
    /// Set if a bare payload is an answer.
    wraps: bool,
    buffer: usize,
}

#[derive(Debug)]
struct DeltaFrame {
    /// Length of the path to this object or list.
    path: usize,
    list: bool,
    index: usize,
    names: SeenNames,
    /// Set if everything below is left to the final chunk.
    muted: bool,
    /// Set if everything below the current member is.
    member_muted: bool,
}

impl<'o> FieldDeltas<'o> {
    pub(crate) fn new(sender: ChunkSender<'o>) -> Self {
        Self {
            sender,
            style: DeltaStyle { kind: ChunkType::Delta, wraps: false, buffer: 0 },
            wanted: None,
            root: EnvelopeCursor::default(),
            announced: false,
            live: None,
            sent: false,
            path: String::new(),
            frames: Vec::new(),
            text: String::new(),
            meta: None,
            data: ValueTree::default(),
            grown: 0,
            shown: 0,
        }
    }

    pub(crate) fn sender(&mut self) -> &mut ChunkSender<'o> {
        &mut self.sender
    }

    /// Returns whether chunks are sent at all.
    pub(crate) fn streams(&self) -> bool {
        !self.sender.is_silent()
    }

    /// The data that was announced last, if any.
    pub(super) fn data(&self) -> Option<&ValueTree> {
        self.announced.then_some(&self.data)
    }

    /// Sets the client's choice, which overrides the module's.
    pub(crate) fn want(&mut self, kind: ChunkType) {
        self.wanted = Some(kind);
    }

    /// Applies the module's preferences.
    pub(crate) fn configure(&mut self, module: &Module) {
        let response = &module.manifest.response;
        self.style = DeltaStyle {
            kind: self.wanted.unwrap_or(response.chunk_type),
            wraps: module.manifest.compat.wraps(),
            buffer: usize::try_from(response.buffer_size).unwrap_or(usize::MAX),
        };
    }

    /// Starts a call. The data of an earlier call is taken back when this one announces something.
    pub(crate) fn begin_call(&mut self) {
        self.announced = false;
        self.live = None;
        self.meta = None;
    }

    /// Sends the changes of a piece.
    pub(crate) fn end_piece(&mut self) {
        self.flush();
        let due = self.grown - self.shown;
        if self.style.kind == ChunkType::Snapshot
            && self.live.is_some()
            && due > 0
            && due >= self.style.buffer
            && due >= self.grown / SNAPSHOT_GROWTH
        {
            self.shown = self.grown;
            if let Some(Value::Object(data)) = self.data.so_far() {
                self.sent = true;
                self.sender.snapshot(data);
            }
        }
    }

    /// Takes back the announced data.
    pub(crate) fn retract(&mut self) {
        self.text.clear();
        if std::mem::take(&mut self.sent) {
            self.sender.snapshot(Map::new());
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.sent = true;
            self.sender.text(&self.path, &self.text);
            self.text.clear();
        }
    }

    /// Returns whether the current object may be the answer.
    fn may_announce(&self) -> bool {
        self.root.ok == Some(true) || (self.root.lead.clean && self.root.ok.is_none())
    }

    fn announce(&mut self, depth: usize) {
        self.retract();
        self.announced = true;
        self.live = Some(depth);
        self.path.clear();
        self.path.push_str("data");
        self.frames.clear();
        self.data = ValueTree::default();
        (self.grown, self.shown) = (0, 0);
    }

    fn at_root(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Begin(_) => {
                self.live = None;
                self.meta = None;
            }
            JsonEvent::Void => {
                self.live = None;
                self.announced = false;
                self.retract();
            }
            JsonEvent::Name { .. } if self.root.depth == 1 => self.at_member(),
            JsonEvent::Open(_) if self.root.opens(EnvelopeMember::Data, event) => {
                self.live = None;
                if self.may_announce() {
                    self.announce(2);
                }
            }
            JsonEvent::Open(_) if self.root.opens(EnvelopeMember::Meta, event) => {
                self.meta = self.may_announce().then(ValueTree::default);
            }
            _ => {}
        }
    }

    /// Handles a member of the outermost object. If the module accepts bare payloads, an object that does not start
    /// like an envelope is one.
    fn at_member(&mut self) {
        let bare = self.root.member == EnvelopeMember::Other;
        let first = self.root.members == 1;
        match self.live {
            None if first && bare && self.style.wraps && self.root.lead.clean && self.may_announce() => {
                self.announce(1);
                self.enter(Bracket::Object);
                self.data.event(JsonEvent::Open(Bracket::Object));
            }
            Some(1) if !bare => {
                self.live = None;
                self.retract();
            }
            _ => {}
        }
    }

    fn enter(&mut self, bracket: Bracket) {
        let muted = self.frames.last().is_some_and(|frame| frame.muted || frame.member_muted);
        self.frames.push(DeltaFrame {
            path: self.path.len(),
            list: bracket == Bracket::List,
            index: 0,
            names: SeenNames::default(),
            muted,
            member_muted: false,
        });
    }

    /// Starts a value: in a list, it is the next item.
    fn begin_value(&mut self) {
        use std::fmt::Write as _;
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.list) else { return };
        self.path.truncate(frame.path);
        let _a_string_takes_everything = write!(self.path, ".{}", frame.index);
        frame.index += 1;
    }

    fn name(&mut self, name: &str) {
        let Some(frame) = self.frames.last_mut() else { return };
        let is_new = frame.names.insert(name);
        frame.member_muted = !is_new || name.is_empty() || name.contains('.');
        self.path.truncate(frame.path);
        self.path.push('.');
        self.path.push_str(name);
    }

    fn in_data(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Name { name, .. } => self.name(name),
            JsonEvent::Open(bracket) => {
                self.begin_value();
                self.enter(bracket);
            }
            JsonEvent::Close => {
                self.frames.pop();
            }
            JsonEvent::TextStart | JsonEvent::NumberStart | JsonEvent::Bool(_) | JsonEvent::Null => {
                self.begin_value();
            }
            JsonEvent::Text(piece) => {
                self.grown += piece.len();
                let open = self.frames.last().is_some_and(|frame| !frame.muted && !frame.member_muted);
                if open && self.style.kind == ChunkType::Delta {
                    self.text.push_str(piece);
                }
            }
            JsonEvent::TextEnd => self.flush(),
            JsonEvent::Number(_) | JsonEvent::Begin(_) | JsonEvent::Void => {}
        }
        if self.style.kind == ChunkType::Snapshot {
            self.grown += usize::from(!matches!(event, JsonEvent::Text(_)));
            self.data.event(event);
        }
    }

    fn in_meta(&mut self, event: JsonEvent<'_>) {
        let Some(meta) = &mut self.meta else { return };
        meta.event(event);
        if let Some(Value::Object(members)) = meta.take_whole() {
            self.meta = None;
            self.sender.meta(&members);
        }
    }

    /// Returns whether the current position is within the announced data.
    fn is_within_data(&self) -> bool {
        match self.live {
            Some(1) => self.root.depth >= 1,
            Some(depth) => self.root.depth >= depth && self.root.member == EnvelopeMember::Data,
            None => false,
        }
    }
}

impl JsonListener for FieldDeltas<'_> {
    fn event(&mut self, event: JsonEvent<'_>, _: usize) {
        self.root.event(event);
        self.at_root(event);
        if self.is_within_data() {
            self.in_data(event);
        } else if self.root.depth >= 2 && self.root.member == EnvelopeMember::Meta {
            self.in_meta(event);
        }
        if event == JsonEvent::Close {
            self.root.handle_close();
        }
    }
}
