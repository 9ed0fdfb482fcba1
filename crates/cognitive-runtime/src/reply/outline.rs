//! Collects the findings of the grammar in a reply: the objects that could be the answer, broken values, and skipped
//! text. Parses their values on the way, and stores the value of an object only while it is the only one.

use cognitive_contract::numbers::{MAX_COUNT, RoundedNumber};
use cognitive_contract::text;
use serde_json::{Map, Value};

use super::event::{Bracket, BreakCause, BrokenValue, JsonEvent, JsonListener, Lead, ReplyFinding};
use super::grammar::ReplyGrammar;
use super::json::{JsonReader, ReadProgress, ReplyInput};
use super::liberty::{Liberty, LibertyRule, TakenLiberties};
use super::strict;
use super::tree::ValueTree;

/// The number of characters of a name in a message. The model decides the length of the name.
const MAX_QUOTED_NAME: usize = 40;

/// A parsed object.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ReadValue {
    pub(super) object: Map<String, Value>,
    /// The offset after it.
    pub(super) end: usize,
    /// The liberties, in the order of the text.
    pub(super) liberties: Vec<Liberty>,
    /// The numbers that do not keep their value (D-10). One that no type can hold is stored as a text in the value.
    pub(super) rounded: Vec<RoundedNumber>,
}

/// Builds an object from its events, with the liberties that were taken.
#[derive(Debug, Default)]
struct ValueBuilder {
    tree: ValueTree,
    forgiven: TakenLiberties,
    rounded: Vec<RoundedNumber>,
}

impl ValueBuilder {
    /// Returns the object that ends at an offset. An object without members caused no event.
    fn take(&mut self, end: usize) -> ReadValue {
        let Self { mut tree, forgiven, rounded } = std::mem::take(self);
        let object = match tree.take_whole() {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        ReadValue { object, end, liberties: forgiven.list(), rounded }
    }

    /// Stores as many numbers as are shown, and always the first one that no type can hold, since it decides.
    fn note_rounded(&mut self, written: &str) {
        let Some(mut number) = RoundedNumber::detect("", written) else { return };
        let decides = number.overflows && !self.rounded.iter().any(|known| known.overflows);
        if self.rounded.len() < MAX_COUNT || decides {
            number.path = self.tree.pointer();
            self.rounded.push(number);
        }
    }
}

impl JsonListener for ValueBuilder {
    fn event(&mut self, event: JsonEvent<'_>, _: usize) {
        if let JsonEvent::Number(written) = event {
            self.note_rounded(written);
        }
        if let Some(repeated) = self.tree.event(event) {
            self.forgiven.take(repeated.at, LibertyRule::RepeatedName, || {
                let name = text::cut(&repeated.name, MAX_QUOTED_NAME);
                format!("the name `{name}` occurs twice and the last value counts")
            });
        }
    }

    fn liberty(&mut self, rule: LibertyRule, at: usize, what: &'static str) {
        self.forgiven.take(at, rule, || what.to_owned());
    }
}

/// Reads the object that opens at an offset, if the text has one there.
pub(super) fn read_object(text: &str, open: usize) -> Option<ReadValue> {
    text.as_bytes().get(open).filter(|byte| **byte == b'{')?;
    let (mut reader, mut builder) = (JsonReader::default(), ValueBuilder::default());
    reader.start(open, Bracket::Object, false, Lead::default());
    let input = ReplyInput { text, solid: text.len(), ended: true };
    let progress = reader.read(input, &mut builder);
    (progress == ReadProgress::Done).then(|| builder.take(reader.at))
}

/// The outline of a reply.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ReplyOutline {
    /// The objects, in the order of the text.
    pub(super) found: Vec<ReplyCandidate>,
    /// The value of the object, if the reply has exactly one.
    pub(super) only: Option<ReadValue>,
    /// The last broken object; one that looks like an envelope takes precedence.
    pub(super) broken: Option<BrokenValue>,
    /// Set if the reply has JSON that is not an object, in a fence or with objects in it.
    pub(super) other: bool,
    /// The offset of skipped thinking.
    pub(super) thinking: Option<usize>,
    /// Set if the text ends within thinking.
    pub(super) still_thinking: bool,
    /// The offset of the first other text.
    pub(super) prose: Option<usize>,
}

/// An object that could be the answer: its position, and the facts needed to choose.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplyCandidate {
    pub(super) at: usize,
    pub(super) end: usize,
    /// The offset at which the fence around it opens.
    pub(super) fence: Option<usize>,
    /// True if it looks like an envelope: `ok` is true or false, and it has `data`, `error` or `meta`.
    pub(super) is_envelope: bool,
    /// True if every number in it fits a number type.
    pub(super) is_readable: bool,
}

impl ReplyCandidate {
    /// Returns whether JSON continues directly after it, so that a bracket closed it too early: only JSON has these
    /// characters after a value.
    pub(super) fn is_closed_early(&self, text: &str) -> bool {
        let rest = text.as_bytes().get(self.end..).unwrap_or_default();
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        next.is_some_and(|byte| matches!(byte, b',' | b':' | b'}' | b']' | b'"'))
    }
}

fn is_envelope(object: &Map<String, Value>) -> bool {
    let has = |name: &str| object.contains_key(name);
    object.get("ok").is_some_and(Value::is_boolean) && (has("data") || has("error") || has("meta"))
}

/// Builds the outline of a reply that comes in pieces or at once.
#[derive(Debug)]
pub(super) struct OutlineReader {
    grammar: ReplyGrammar,
    collector: OutlineCollector,
}

impl OutlineReader {
    pub(super) fn new() -> Self {
        Self { grammar: ReplyGrammar::new(false), collector: OutlineCollector::default() }
    }

    /// Continues to read a text that may grow; `solid` is its end without trailing blanks.
    #[cfg(test)]
    pub(super) fn read(&mut self, text: &str, solid: usize) {
        self.grammar.read(ReplyInput { text, solid, ended: false }, &mut self.collector);
    }

    /// Returns the outline of the whole text, which has no trailing blanks.
    pub(super) fn finish(mut self, text: &str) -> ReplyOutline {
        self.grammar.finish(text, &mut self.collector);
        self.collector.outline
    }
}

#[derive(Debug, Default)]
struct OutlineCollector {
    outline: ReplyOutline,
    builder: ValueBuilder,
}

impl OutlineCollector {
    fn object(&mut self, at: usize, end: usize, fence: Option<usize>, follows_name: bool) {
        let read = self.builder.take(end);
        let is_envelope = is_envelope(&read.object);
        if follows_name && !is_envelope {
            // `"data": {…}` without its opening brace: the rest of a broken value.
            let cause = BreakCause::Syntax;
            let broken =
                BrokenValue { open: at, at, cause, begun: true, enveloped: false, is_thought: false };
            self.note_broken(broken);
            self.outline.prose.get_or_insert(at);
            return;
        }
        let is_readable = !read.rounded.iter().any(|number| number.overflows);
        self.outline.only = self.outline.found.is_empty().then_some(read);
        self.outline.found.push(ReplyCandidate { at, end, fence, is_envelope, is_readable });
    }

    fn note_broken(&mut self, broken: BrokenValue) {
        let weighs = broken.enveloped || (broken.begun && broken.cause == BreakCause::End);
        if weighs || !self.outline.broken.is_some_and(|known| known.enveloped) {
            self.outline.broken = Some(broken);
        }
    }
}

impl JsonListener for OutlineCollector {
    fn event(&mut self, event: JsonEvent<'_>, at: usize) {
        self.builder.event(event, at);
    }

    fn liberty(&mut self, rule: LibertyRule, at: usize, what: &'static str) {
        self.builder.liberty(rule, at, what);
    }

    fn finding(&mut self, finding: ReplyFinding<'_>) {
        match finding {
            ReplyFinding::Start => self.builder = ValueBuilder::default(),
            ReplyFinding::Object { open, end, fence, follows_name } => {
                self.object(open, end, fence, follows_name);
            }
            // `[1]` in prose is a footnote; with objects in it, it is an answer of the wrong type.
            ReplyFinding::List { open, begun } => {
                self.outline.other |= begun;
                self.outline.prose.get_or_insert(open);
            }
            ReplyFinding::Broken(broken) => self.note_broken(broken),
            ReplyFinding::Prose(at) => {
                self.outline.prose.get_or_insert(at);
            }
            ReplyFinding::Thinking(at) => {
                self.outline.thinking.get_or_insert(at);
            }
            ReplyFinding::StillThinking => self.outline.still_thinking = true,
            ReplyFinding::UnusedFence(body) => self.outline.other |= strict::parse(body).is_ok(),
            ReplyFinding::Void(start) => {
                self.outline = ReplyOutline { thinking: Some(start), ..ReplyOutline::default() };
            }
        }
    }
}
