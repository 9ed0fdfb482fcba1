//! How a document ends when there is no room for more: the shortest text that makes it whole, found by search in the
//! grammar. The model is asked for labels only, and for a few words in `meta.explain`. Never writes a byte that the grammar does not allow; when it
//! finds no end within its limits, it says so.
//!
//! The search goes word by word. Inside a string or a number it is a breadth-first search over the states of the
//! lexer, so it finds the shortest end of this word if there is one. Between words the choice is small: an end wherever
//! one is allowed, then the members that the schema requires, then the shortest value. Since a lowered contract is
//! finite, this ends.

use std::collections::HashSet;

use llguidance::derivre::StateID;

use crate::grammar::{GrammarWalk, Steps};
use crate::json_cursor::{JsonCursor, Now};
use crate::shape::SchemaParts;

/// The longest end of a document. Contracts with long `minLength` come near it, others use a few hundred.
const MAX_BYTES: usize = 32_768;
/// The most states that are looked at for the end of one word.
const MAX_STATES: usize = 20_000;

/// Who chooses labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// The model, and it explains itself, too: the text stops before each.
    Model,
    /// Nobody: the shortest will do.
    Shortest,
}

/// The end of a document, or the way to the next label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClosingBytes {
    /// What to write, beginning with what the grammar had pending.
    pub bytes: Vec<u8>,
    pub end: ClosingTarget,
    /// Whether the given confidence is part of it.
    pub has_confidence: bool,
}

/// Where a plan leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosingTarget {
    /// To the end of the document.
    Whole,
    /// To something that the model is to write.
    Label,
    /// Nowhere.
    Stuck,
}

impl ClosingBytes {
    pub(crate) fn is_whole(&self) -> bool {
        self.end == ClosingTarget::Whole
    }
}

/// Plans the end of a document from where a walk is. `confidence` is what to write for `meta.confidence`.
pub(crate) fn plan(
    walk: &mut GrammarWalk,
    place: &JsonCursor,
    shape: SchemaParts<'_>,
    confidence: Option<&str>,
    labels: Labels,
) -> ClosingBytes {
    let pending = walk.pending().to_vec();
    let mut place = place.clone();
    place.advance(&pending);
    let found = walk.explore(move |steps| {
        let mut writer = ClosingWriter {
            steps,
            place,
            shape,
            confidence,
            labels,
            bytes: Vec::new(),
            has_confidence: false,
        };
        let end = writer.run();
        (writer.bytes, end, writer.has_confidence)
    });
    let (bytes, end, has_confidence) = found.unwrap_or((Vec::new(), ClosingTarget::Whole, false));
    ClosingBytes { bytes: [pending, bytes].concat(), end, has_confidence }
}

/// Whether the document stands directly before `meta.confidence`.
pub(crate) fn is_at_confidence(place: &JsonCursor) -> bool {
    place.now() == Now::Value && place.path().eq([Some(b"meta".as_slice()), Some(b"confidence".as_slice())])
}

/// Whether the document is at `meta.explain`, or in it.
pub(crate) fn is_explain(place: &JsonCursor) -> bool {
    place.in_value() && place.path().eq([Some(b"meta".as_slice()), Some(b"explain".as_slice())])
}

struct ClosingWriter<'a, 'b, 'c> {
    steps: &'a mut Steps<'b, 'c>,
    place: JsonCursor,
    shape: SchemaParts<'a>,
    confidence: Option<&'a str>,
    labels: Labels,
    bytes: Vec<u8>,
    has_confidence: bool,
}

impl ClosingWriter<'_, '_, '_> {
    fn run(&mut self) -> ClosingTarget {
        while self.place.now() != Now::Over {
            if self.labels == Labels::Model && self.place.now() == Now::Value && self.is_for_the_model() {
                return ClosingTarget::Label;
            }
            if self.bytes.len() > MAX_BYTES || !self.step() {
                return ClosingTarget::Stuck;
            }
        }
        ClosingTarget::Whole
    }

    fn step(&mut self) -> bool {
        match self.place.now() {
            Now::String | Now::Name => self.rest(Word::Text),
            Now::Scalar => self.rest(Word::Scalar) && self.one_of(b"}],"),
            Now::Value => self.given_confidence() || self.one_of(b"]") || self.value(),
            Now::Member => self.one_of(b"}") || self.member() || self.one_of(b"\""),
            Now::Colon => self.one_of(b":"),
            Now::Next => self.one_of(b"}],"),
            Now::Over => true,
        }
    }

    fn is_for_the_model(&self) -> bool {
        self.shape.is_label(&self.place) || is_explain(&self.place)
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        if !self.steps.push_all(bytes) {
            return false;
        }
        self.place.advance(bytes);
        self.bytes.extend_from_slice(bytes);
        true
    }

    fn one_of(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| self.put(&[*byte]))
    }

    fn given_confidence(&mut self) -> bool {
        let Some(text) = self.confidence.filter(|_| is_at_confidence(&self.place)) else { return false };
        self.has_confidence = fits(self.steps, text) && self.put(text.as_bytes());
        self.has_confidence
    }

    /// The next member that may not be missing.
    fn member(&mut self) -> bool {
        let required = self.shape.required(&self.place);
        required.into_iter().any(|name| self.put(format!("{}:", serde_json::Value::from(name)).as_bytes()))
    }

    /// The shortest string, number or word; a list or an object if there is none.
    fn value(&mut self) -> bool {
        let mut best: Option<Vec<u8>> = None;
        for first in *b"\"0123456789-tfn" {
            if !self.steps.push(first) {
                continue;
            }
            let word = if first == b'"' { Word::Text } else { Word::Scalar };
            let rest = search(self.steps, word, WordNode::ROOT);
            self.steps.pop(1);
            let whole = rest.map(|rest| [vec![first], rest].concat());
            if let Some(whole) = whole.filter(|new| best.as_ref().is_none_or(|old| new.len() < old.len())) {
                best = Some(whole);
            }
        }
        match best {
            Some(bytes) => self.put(&bytes),
            None => self.one_of(b"[{"),
        }
    }

    fn rest(&mut self, word: Word) -> bool {
        let (escape, tail) = self.place.unfinished();
        let found = search(self.steps, word, WordNode { escape, tail, ..WordNode::ROOT });
        found.is_some_and(|bytes| self.put(&bytes))
    }
}

/// Whether a number fits here and can be followed by something.
pub(crate) fn fits(steps: &mut Steps<'_, '_>, number: &str) -> bool {
    if !steps.push_all(number.as_bytes()) {
        return false;
    }
    let is_whole = b",}]".iter().any(|byte| steps.allows(*byte));
    steps.pop(number.len());
    is_whole
}

/// What is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// A string or a name, up to and with its quote.
    Text,
    /// A number, or `true`, `false`, `null`.
    Scalar,
}

/// A state of a word and how it was reached.
#[derive(Debug, Clone, Copy)]
struct WordNode {
    parent: usize,
    byte: u8,
    depth: usize,
    /// Bytes missing from an escape sequence.
    escape: u8,
    /// Bytes missing from a character.
    tail: u8,
}

impl WordNode {
    const ROOT: Self = Self { parent: usize::MAX, byte: 0, depth: 0, escape: 0, tail: 0 };
}

/// The shortest end of a word from here.
fn search(steps: &mut Steps<'_, '_>, word: Word, root: WordNode) -> Option<Vec<u8>> {
    let mut nodes = vec![root];
    let mut seen: HashSet<StateID> = HashSet::from([steps.state()]);
    let mut path = Vec::new();
    let mut next = 0;
    while let Some(node) = nodes.get(next).copied() {
        way_to(&nodes, next, &mut path);
        if !steps.push_all(&path) {
            return None;
        }
        let end = ending(steps, word, node);
        if end.is_none() && nodes.len() < MAX_STATES {
            let parent = next;
            each_follower(word, node, |byte, escape, tail| {
                if steps.push(byte) {
                    if seen.insert(steps.state()) {
                        nodes.push(WordNode { parent, byte, depth: node.depth + 1, escape, tail });
                    }
                    steps.pop(1);
                }
            });
        }
        steps.pop(path.len());
        if let Some(end) = end {
            path.extend_from_slice(end);
            return Some(path);
        }
        next += 1;
    }
    None
}

fn way_to(nodes: &[WordNode], index: usize, path: &mut Vec<u8>) {
    path.clear();
    let mut node = nodes.get(index);
    while let Some(here) = node.filter(|node| node.depth > 0) {
        path.push(here.byte);
        node = nodes.get(here.parent);
    }
    path.reverse();
}

/// What ends the word here, if anything does.
fn ending(steps: &mut Steps<'_, '_>, word: Word, node: WordNode) -> Option<&'static [u8]> {
    let is_between = node.escape == 0 && node.tail == 0;
    match word {
        Word::Text => (is_between && steps.allows(b'"')).then_some(b"\"".as_slice()),
        Word::Scalar => b",}]".iter().any(|byte| steps.allows(*byte)).then_some(b"".as_slice()),
    }
}

/// The bytes that can go on with a word, plain ones first; with what each leaves open.
fn each_follower(word: Word, node: WordNode, mut visit: impl FnMut(u8, u8, u8)) {
    match (word, node.escape, node.tail) {
        (Word::Scalar, _, _) => {
            b"0123456789.-+eEtrufalsn".iter().for_each(|byte| visit(*byte, 0, 0));
        }
        (Word::Text, 0, 0) => {
            let plain = (b'a'..=b'z').chain(b'0'..=b'9').chain(b'A'..=b'Z').chain(b' '..=b'/');
            let signs = (b':'..=b'@').chain(b'['..=b'`').chain(b'{'..=b'~');
            plain.chain(signs).filter(|byte| !b"\"\\".contains(byte)).for_each(|byte| visit(byte, 0, 0));
            visit(b'\\', 1, 0);
            (0xC2..=0xDF).for_each(|byte| visit(byte, 0, 1));
            (0xE0..=0xEF).for_each(|byte| visit(byte, 0, 2));
            (0xF0..=0xF4).for_each(|byte| visit(byte, 0, 3));
        }
        (Word::Text, 0, tail) => {
            (0x80..=0xBF).for_each(|byte| visit(byte, 0, tail - 1));
        }
        (Word::Text, 1, _) => {
            b"\"\\/bfnrt".iter().for_each(|byte| visit(*byte, 0, 0));
            visit(b'u', 4, 0);
        }
        (Word::Text, escape, _) => {
            b"0123456789abcdefABCDEF".iter().for_each(|byte| visit(*byte, escape - 1, 0));
        }
    }
}
