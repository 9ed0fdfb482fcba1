//! Closes a document at the token limit with the shortest text that completes it, found by search in the grammar. The
//! model chooses only labels, and writes a few words for `meta.explain`. Never writes a byte that the grammar does not
//! allow; if it finds no end within its limits, it returns `Stuck`.
//!
//! The search works word by word. Within a string or a number it is a breadth-first search over lexer states, so it
//! finds the shortest end of this word. Between words there are few choices: an end if one is allowed, then the
//! required members, then the shortest value. A lowered contract is finite, so the search ends.

use std::collections::HashSet;

use llguidance::derivre::StateID;

use crate::grammar::{GrammarWalk, Steps};
use crate::json_cursor::{JsonCursor, NextText};
use crate::shape::SchemaParts;

/// The length limit for the end of a document. Contracts with long `minLength` come close to it, others use a few
/// hundred bytes.
const MAX_BYTES: usize = 32_768;
/// The largest number of states searched for the end of one word. Without it, the search through a large schema would
/// hold a worker.
const MAX_STATES: usize = 20_000;

/// The source of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// The model, which also writes the explanation: the plan stops before each.
    Model,
    /// The search: it takes the shortest label.
    Shortest,
}

/// The end of a document, or the text up to the next label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClosingBytes {
    /// The bytes to write, starting with the pending bytes of the grammar.
    pub bytes: Vec<u8>,
    pub end: ClosingTarget,
    /// True if the given confidence is part of it.
    pub has_confidence: bool,
}

/// The target of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosingTarget {
    /// The end of the document.
    Whole,
    /// A value that the model has to write.
    Label,
    /// None: no valid end of the document was found.
    Stuck,
}

impl ClosingBytes {
    pub(crate) fn is_whole(&self) -> bool {
        self.end == ClosingTarget::Whole
    }
}

/// Plans the end of a document from the position of a walk. `confidence` is the text for `meta.confidence`.
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

/// Returns whether the next value is `meta.confidence`.
pub(crate) fn is_at_confidence(place: &JsonCursor) -> bool {
    place.now() == NextText::Value
        && place.path().eq([Some(b"meta".as_slice()), Some(b"confidence".as_slice())])
}

/// Returns whether the document is at or in `meta.explain`.
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
        while self.place.now() != NextText::Over {
            if self.labels == Labels::Model && self.place.now() == NextText::Value && self.is_for_the_model()
            {
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
            NextText::String | NextText::Name => self.write_remainder(Word::Text),
            NextText::Scalar => self.write_remainder(Word::Scalar) && self.one_of(b"}],"),
            NextText::Value => self.given_confidence() || self.one_of(b"]") || self.value(),
            NextText::Member => self.one_of(b"}") || self.member() || self.one_of(b"\""),
            NextText::Colon => self.one_of(b":"),
            NextText::Next => self.one_of(b"}],"),
            NextText::Over => true,
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

    /// Writes the next required member.
    fn member(&mut self) -> bool {
        let required = self.shape.required_members(&self.place);
        required.into_iter().any(|name| self.put(format!("{}:", serde_json::Value::from(name)).as_bytes()))
    }

    /// Writes the shortest string, number or word; a list or an object if there is none.
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

    fn write_remainder(&mut self, word: Word) -> bool {
        let (escape, tail) = self.place.missing_bytes();
        let found = search(self.steps, word, WordNode { escape, tail, ..WordNode::ROOT });
        found.is_some_and(|bytes| self.put(&bytes))
    }
}

/// Returns whether a number fits here and can be followed by something.
pub(crate) fn fits(steps: &mut Steps<'_, '_>, number: &str) -> bool {
    if !steps.push_all(number.as_bytes()) {
        return false;
    }
    let is_whole = b",}]".iter().any(|byte| steps.allows(*byte));
    steps.pop(number.len());
    is_whole
}

/// The kind of word that is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// A string or a name, including its closing quote.
    Text,
    /// A number, or `true`, `false`, `null`.
    Scalar,
}

/// A state of a word, and the byte that led to it.
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

/// Returns the shortest end of a word from here.
fn search(steps: &mut Steps<'_, '_>, word: Word, root: WordNode) -> Option<Vec<u8>> {
    let mut nodes = vec![root];
    let mut seen: HashSet<StateID> = HashSet::from([steps.state()]);
    let mut path = Vec::new();
    let mut next = 0;
    while let Some(node) = nodes.get(next).copied() {
        find_path(&nodes, next, &mut path);
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

fn find_path(nodes: &[WordNode], index: usize, path: &mut Vec<u8>) {
    path.clear();
    let mut node = nodes.get(index);
    while let Some(here) = node.filter(|node| node.depth > 0) {
        path.push(here.byte);
        node = nodes.get(here.parent);
    }
    path.reverse();
}

/// Returns the text that ends the word here, if it can end here.
fn ending(steps: &mut Steps<'_, '_>, word: Word, node: WordNode) -> Option<&'static [u8]> {
    let is_between = node.escape == 0 && node.tail == 0;
    match word {
        Word::Text => (is_between && steps.allows(b'"')).then_some(b"\"".as_slice()),
        Word::Scalar => b",}]".iter().any(|byte| steps.allows(*byte)).then_some(b"".as_slice()),
    }
}

/// Visits the bytes that can continue a word, plain ones first, each with the bytes that are missing after it.
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
        // After a backslash, or before the last digit of `\u001f`: the grammar allows only what fits.
        (Word::Text, 1, _) => {
            b"\"\\/bfnrt0123456789acdeABCDEF".iter().for_each(|byte| visit(*byte, 0, 0));
            visit(b'u', 4, 0);
        }
        (Word::Text, escape, _) => {
            b"0123456789abcdefABCDEF".iter().for_each(|byte| visit(*byte, escape - 1, 0));
        }
    }
}
