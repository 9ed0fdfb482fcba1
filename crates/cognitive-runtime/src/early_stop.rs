//! Early stop (D-08): judges an answer while it is being written. It cancels the call at the first byte after which
//! the answer cannot become valid any more, so that the rest is not paid for.
//!
//! Deliberately conservative. It judges only `data` of a success that opens the reply, by the rules of the plan
//! alone. It accepts everything that may be repaired: the spelling of declared values, and nulls for absent members.
//! A duplicate member or a later correction could still fix a broken rule. So a verdict counts only if the model is
//! bound to one document (`stream/listeners.rs`), and only if the caller asked for it.

mod options;
pub(crate) mod record;

use std::sync::Arc;

use cognitive_contract::text::pointer;
use cognitive_contract::{ErrorCode, Module, Violation};
use cognitive_schema::prefix::{NodeId, PrefixRules, ValueRules, is_exact, kind};

use self::options::{NOT_DECLARED, Spelling, admits, number_fault};
use crate::reply::{Bracket, EnvelopeCursor, EnvelopeMember, JsonEvent, JsonListener};

/// The number of required members that are tracked per object, one bit each; the full check covers the rest.
const MAX_WATCHED: usize = 64;

/// The reason why a reply was cut, and the position.
#[derive(Debug, Clone)]
pub struct EarlyStopVerdict {
    /// The rule that cannot be kept any more.
    pub violation: Violation,
    /// The offset in the reply after which no text could help.
    pub at: usize,
}

/// Judges one reply.
#[derive(Debug)]
pub struct EarlyStop {
    module: Arc<Module>,
    /// True if a null may mean an absent member.
    null_is_absent: bool,
    /// True if a bare payload may be the answer, so that `data` may be anything.
    wraps: bool,
    root: EnvelopeCursor,
    begun: bool,
    frames: Vec<PlanFrame>,
    /// JSON pointer to the value that is being written.
    path: String,
    text: OpenTextRules,
    spelling: Spelling,
    /// The rules for the number that is being written.
    number: Option<NodeId>,
    /// The fault in `data`; it counts only if this is a success.
    found: Option<EarlyStopVerdict>,
    verdict: Option<EarlyStopVerdict>,
}

#[derive(Debug)]
struct PlanFrame {
    node: Option<NodeId>,
    bracket: Bracket,
    path: usize,
    items: u64,
    /// A bit set of the required members that were seen.
    seen: u64,
    /// The rules for the value of the current member.
    member: Option<NodeId>,
}

/// The rules for the text that is being written.
#[derive(Debug, Default)]
struct OpenTextRules {
    /// The rules with the declared values, if there are any.
    options: Option<NodeId>,
    length: u64,
    least: u64,
    most: Option<u64>,
}

impl EarlyStop {
    /// A judge for one call of a module.
    #[must_use]
    pub fn new(module: Arc<Module>, null_is_absent: bool) -> Self {
        let wraps = module.manifest.compat.wraps();
        Self {
            module,
            null_is_absent,
            wraps,
            root: EnvelopeCursor::default(),
            begun: false,
            frames: Vec::new(),
            path: String::new(),
            text: OpenTextRules::default(),
            spelling: Spelling::default(),
            number: None,
            found: None,
            verdict: None,
        }
    }

    /// The reason why the reply cannot become valid any more, if there is one. A fault in `data` counts once `ok`
    /// says that this is a success.
    #[must_use]
    pub fn verdict(&self) -> Option<&EarlyStopVerdict> {
        self.verdict.as_ref()
    }

    fn plan(&self) -> &PrefixRules {
        self.module.contract.plan()
    }

    fn node(&self, id: Option<NodeId>) -> Option<&ValueRules> {
        self.plan().node(id?)
    }

    fn refuse(&mut self, below: Option<&str>, rule: &'static str, message: impl Into<String>, at: usize) {
        let path = below.map_or_else(|| self.path.clone(), |name| pointer(&self.path, name));
        let code = match rule {
            "enum" => ErrorCode::InvalidEnum,
            "maxItems" if path == "/data/extensions/insights" => ErrorCode::OverflowLimit,
            _ if path == "/data/rationale" => ErrorCode::MissingRationale,
            _ => ErrorCode::SchemaValidationFailed,
        };
        self.found = Some(EarlyStopVerdict { violation: Violation::new(path, code, rule, message), at });
    }

    /// Returns the rules for the value that starts; in a list it is the next item.
    fn begin_value(&mut self, at: usize) -> Option<NodeId> {
        let Some(frame) = self.frames.last_mut() else { return Some(PrefixRules::ROOT) };
        if frame.bracket == Bracket::Object {
            return frame.member;
        }
        let (id, index) = (frame.node, frame.items);
        frame.items += 1;
        let length = frame.path;
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let rules =
            self.node(id).map(|node| (node.places.get(place).copied().unwrap_or(node.items), node.max_items));
        let (items, most) = rules.unwrap_or_default();
        if let Some(most) = most.filter(|most| index >= *most) {
            self.path.truncate(length);
            self.refuse(None, "maxItems", format!("expected at most {most} items"), at);
        }
        self.path.truncate(length);
        self.path.push('/');
        self.path.push_str(&index.to_string());
        items
    }

    /// Refuses a value whose kind is not allowed here.
    fn admit(&mut self, id: Option<NodeId>, kinds: u8, at: usize) {
        let Some(node) = self.node(id) else { return };
        let expected = node.kinds;
        let wrong_kind = expected != 0 && expected & kinds == 0;
        let in_list = node.options.as_ref().is_none_or(|options| admits(options, kinds));
        if wrong_kind {
            self.refuse(None, "type", format!("expected {}", words(expected)), at);
        } else if !in_list {
            self.refuse(None, "enum", NOT_DECLARED, at);
        }
    }

    fn open(&mut self, bracket: Bracket, at: usize) {
        let node = self.begin_value(at);
        let kinds = if bracket == Bracket::Object { kind::OBJECT } else { kind::ARRAY };
        self.admit(node, kinds, at);
        let path = self.path.len();
        self.frames.push(PlanFrame { node, bracket, path, items: 0, seen: 0, member: None });
    }

    fn name(&mut self, name: &str, at: usize) {
        let Some(frame) = self.frames.last() else { return };
        let (length, id) = (frame.path, frame.node);
        self.path.truncate(length);
        if name.contains(['~', '/']) {
            self.path = pointer(&self.path, name);
        } else {
            self.path.push('/');
            self.path.push_str(name);
        }
        let Some(node) = self.node(id) else { return self.remember(None, None) };
        let declared = node.members.get(name).copied();
        let required = node.required.iter().take(MAX_WATCHED).position(|each| **each == *name);
        let (closed, others) = (node.closed, node.others);
        if closed && declared.is_none() {
            self.refuse(None, "additionalProperties", "no such member is expected here", at);
        }
        self.remember(declared.unwrap_or(others), required);
    }

    fn remember(&mut self, member: Option<NodeId>, required: Option<usize>) {
        if let Some(frame) = self.frames.last_mut() {
            frame.member = member;
            frame.seen |= required.map_or(0, |index| 1 << index);
        }
    }

    fn close(&mut self, at: usize) {
        let Some(frame) = self.frames.pop() else { return };
        self.path.truncate(frame.path);
        let Some(node) = self.node(frame.node) else { return };
        match frame.bracket {
            Bracket::List if frame.items < node.min_items => {
                let message = format!("expected at least {} items", node.min_items);
                self.refuse(None, "minItems", message, at);
            }
            Bracket::Object => {
                let mut required = node.required.iter().take(MAX_WATCHED).enumerate();
                let missing = required.find(|(index, _)| frame.seen & (1 << index) == 0);
                if let Some(name) = missing.map(|(_, name)| name.clone()) {
                    let message = format!("required member `{}` is missing", name_text(&name));
                    self.refuse(Some(&name), "required", message, at);
                }
            }
            Bracket::List => {}
        }
    }

    fn text_start(&mut self, at: usize) {
        let id = self.begin_value(at);
        self.admit(id, kind::STRING, at);
        self.text = OpenTextRules::default();
        let Some(node) = self.node(id) else { return };
        self.text = match &node.options {
            // Repair may match a declared value, whatever its length as written.
            Some(_) => OpenTextRules { options: id, ..OpenTextRules::default() },
            None => {
                OpenTextRules { least: node.min_length, most: node.max_length, ..OpenTextRules::default() }
            }
        };
        self.spelling.start();
    }

    fn text(&mut self, piece: &str, at: usize) {
        if self.text.options.is_some() {
            let mut spelling = std::mem::take(&mut self.spelling);
            let declared = self.node(self.text.options).map_or(&[][..], |node| &node.spellings);
            let outcome = spelling.push(piece, declared);
            self.spelling = spelling;
            if let Err(left) = outcome {
                self.refuse(None, "enum", NOT_DECLARED, at - left);
            }
            return;
        }
        if self.text.most.is_none() && self.text.least == 0 {
            return;
        }
        let count = piece.chars().count() as u64;
        let most = self.text.most.filter(|most| self.text.length + count > *most);
        if let Some(most) = most {
            let room = usize::try_from(most - self.text.length).unwrap_or(usize::MAX);
            let behind =
                piece.char_indices().nth(room).map_or(0, |(index, letter)| index + letter.len_utf8());
            // An escape is longer than its character, but it is one character, so nothing is left after it.
            let left = piece.len().saturating_sub(behind);
            self.refuse(None, "maxLength", format!("expected at most {most} characters"), at - left);
        }
        self.text.length += count;
    }

    fn text_end(&mut self, at: usize) {
        let options = self.node(self.text.options);
        if options.is_some_and(|node| !self.spelling.may_end(&node.spellings)) {
            self.refuse(None, "enum", NOT_DECLARED, at);
        } else if self.text.length < self.text.least {
            let message = format!("expected at least {} characters", self.text.least);
            self.refuse(None, "minLength", message, at);
        }
    }

    fn number_start(&mut self, at: usize) {
        let id = self.begin_value(at);
        self.admit(id, kind::NUMBER | kind::INTEGER, at);
        self.number = id;
    }

    fn number(&mut self, written: &str, at: usize) {
        // Parsed like in the full check, so that both round alike.
        let parsed = written.parse::<serde_json::Number>().ok();
        let Some(value) = parsed.and_then(|number| number.as_f64()) else { return };
        if is_exact(value) && value.fract() != 0.0 {
            self.admit(self.number, kind::NUMBER, at);
        }
        let fault = self.node(self.number).and_then(|node| number_fault(node, value));
        if let Some((rule, message)) = fault.filter(|_| self.found.is_none()) {
            self.refuse(None, rule, message, at);
        }
    }

    fn in_data(&mut self, event: JsonEvent<'_>, at: usize) {
        if self.frames.is_empty() && event != JsonEvent::Open(Bracket::Object) {
            return self.refuse(None, "type", "expected an object", at);
        }
        match event {
            JsonEvent::Open(bracket) => self.open(bracket, at),
            JsonEvent::Name { name, .. } => self.name(name, at),
            JsonEvent::Close => self.close(at),
            JsonEvent::TextStart => self.text_start(at),
            JsonEvent::Text(piece) => self.text(piece, at),
            JsonEvent::TextEnd => self.text_end(at),
            JsonEvent::NumberStart => self.number_start(at),
            JsonEvent::Number(written) => self.number(written, at),
            JsonEvent::Bool(flag) => {
                let id = self.begin_value(at);
                self.admit(id, kind::BOOLEAN, at);
                let options = self.node(id).and_then(|node| node.options.as_ref());
                if self.found.is_none() && options.is_some_and(|options| !options.contains(&flag.into())) {
                    self.refuse(None, "enum", NOT_DECLARED, at);
                }
            }
            JsonEvent::Null => {
                let id = self.begin_value(at);
                if !self.null_is_absent {
                    self.admit(id, kind::NULL, at);
                }
            }
            JsonEvent::Begin(_) | JsonEvent::Void => {}
        }
    }

    /// Returns whether the current event belongs to data that is judged. If a bare payload may be the answer, `data`
    /// that is not an object counts as a member of the payload.
    fn judges(&self, event: JsonEvent<'_>) -> bool {
        self.begun
            && self.found.is_none()
            && self.verdict.is_none()
            && self.root.member == EnvelopeMember::Data
            && match self.root.depth {
                0 => false,
                1 => {
                    !self.wraps
                        && !matches!(event, JsonEvent::Name { .. } | JsonEvent::Close | JsonEvent::Null)
                }
                _ => !self.frames.is_empty() || self.root.opens(EnvelopeMember::Data, event) || !self.wraps,
            }
    }
}

impl JsonListener for EarlyStop {
    fn event(&mut self, event: JsonEvent<'_>, at: usize) {
        match event {
            // Only the first object, and only if nothing precedes it: anything else may be an example.
            JsonEvent::Begin(lead) => {
                self.begun = lead.clean && self.root.members == 0;
                self.found = None;
            }
            JsonEvent::Void => {
                let verdict = self.verdict.take();
                *self = Self { verdict, ..Self::new(Arc::clone(&self.module), self.null_is_absent) };
                return;
            }
            _ => {}
        }
        self.root.event(event);
        if matches!(event, JsonEvent::Name { .. }) && self.root.depth == 1 {
            "/data".clone_into(&mut self.path);
            self.frames.clear();
        }
        if self.judges(event) {
            self.in_data(event, at);
        }
        if self.root.ok == Some(true) && self.verdict.is_none() {
            self.verdict = self.found.take();
        }
        if event == JsonEvent::Close {
            self.root.handle_close();
        }
    }
}

fn name_text(name: &str) -> &str {
    cognitive_contract::text::cut(name, 80)
}

fn words(kinds: u8) -> String {
    let all = [
        (kind::OBJECT, "object"),
        (kind::ARRAY, "array"),
        (kind::STRING, "string"),
        (kind::NUMBER, "number"),
        (kind::BOOLEAN, "boolean"),
    ];
    let mut words: Vec<&str> =
        all.iter().filter(|(bit, _)| kinds & bit != 0).map(|(_, word)| *word).collect();
    if kinds & kind::INTEGER != 0 && kinds & kind::NUMBER == 0 {
        words.push("integer");
    }
    if words.is_empty() { "null".to_owned() } else { words.join(" or ") }
}
