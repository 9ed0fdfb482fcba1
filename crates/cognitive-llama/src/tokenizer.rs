//! Text to tokens and back: byte-level pair merging, as the file defines it. A control token never comes out of text,
//! whatever the text looks like. Refuses vocabularies of other kinds, and ways of cutting text that it does not know.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::WeightsError;
use super::gguf::{Gguf, damaged, unsupported};
use super::pieces::{Cut, cut};

/// Text to tokens and back, as the file defines it.
#[derive(Debug)]
pub struct Tokenizer {
    /// The bytes of all tokens, one after the other.
    text: Vec<u8>,
    /// Where each token ends in `text`.
    ends: Vec<u32>,
    control: Vec<bool>,
    names: HashMap<Box<str>, u32>,
    end_of_turn: u32,
    cut: Cut,
    /// The token of each single byte, if the vocabulary has one.
    single: [Option<u32>; 256],
    /// Two neighbours to their rank and what they become.
    merges: HashMap<u64, (u32, u32), BuildHasherDefault<PairHasher>>,
}

/// `token_type` of a token that steers.
const CONTROL: i64 = 3;
/// `token_type` of a token that is looked for before the text is cut.
const USER_DEFINED: i64 = 4;

impl Tokenizer {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, WeightsError> {
        let cut = cut_of(gguf)?;
        let list =
            |name: &str| gguf.list(name).ok_or_else(|| damaged(&format!("the list `{name}` is missing")));
        let tokens = list("tokenizer.ggml.tokens")?;
        let kinds = list("tokenizer.ggml.token_type")?;
        if tokens.len() == 0 || tokens.len() != kinds.len() || u32::try_from(tokens.len()).is_err() {
            return Err(damaged("the vocabulary is incomplete"));
        }
        let texts = tokens.texts().ok_or_else(|| damaged("the vocabulary is no list of texts"))?;
        let kinds = kinds.whole_numbers().ok_or_else(|| damaged("the token types are no numbers"))?;
        let end_of_turn = gguf.whole("tokenizer.ggml.eos_token_id").and_then(|id| u32::try_from(id).ok());
        let mut tokenizer = Self {
            text: Vec::new(),
            ends: Vec::with_capacity(tokens.len()),
            control: Vec::with_capacity(tokens.len()),
            names: HashMap::new(),
            end_of_turn: end_of_turn.ok_or_else(|| damaged("no token ends a turn"))?,
            cut,
            single: [None; 256],
            merges: HashMap::default(),
        };
        let mut ids: HashMap<&str, u32, BuildHasherDefault<PairHasher>> = HashMap::default();
        ids.reserve(tokens.len());
        for (id, (text, kind)) in (0..).zip(texts.zip(kinds)) {
            tokenizer.add(id, text, kind)?;
            if kind != CONTROL {
                ids.insert(text, id);
            }
        }
        if tokenizer.end_of_turn as usize >= tokenizer.len() || !tokenizer.is_control(tokenizer.end_of_turn) {
            return Err(damaged("the token that ends a turn is no control token"));
        }
        let merges = list("tokenizer.ggml.merges")?;
        let merges = merges.texts().ok_or_else(|| damaged("the merges are no list of texts"))?;
        tokenizer.add_merges(merges, &ids)?;
        Ok(tokenizer)
    }

    fn add(&mut self, id: u32, text: &str, kind: i64) -> Result<(), WeightsError> {
        let start = self.text.len();
        match kind {
            CONTROL => {
                self.text.extend_from_slice(text.as_bytes());
                self.names.insert(text.into(), id);
            }
            USER_DEFINED => return Err(unsupported(&format!("token {id} is user-defined"))),
            _ => {
                for c in text.chars() {
                    let byte =
                        byte_of(c).ok_or_else(|| damaged(&format!("token {id} stands for no bytes")))?;
                    self.text.push(byte);
                }
                if let [byte] = self.text.get(start..).unwrap_or_default() {
                    self.single.get_mut(usize::from(*byte)).into_iter().for_each(|slot| *slot = Some(id));
                }
            }
        }
        self.control.push(kind == CONTROL);
        self.ends.push(u32::try_from(self.text.len()).map_err(|_| damaged("the vocabulary is too long"))?);
        Ok(())
    }

    fn add_merges<'a>(
        &mut self,
        merges: impl Iterator<Item = &'a str>,
        ids: &HashMap<&str, u32, BuildHasherDefault<PairHasher>>,
    ) -> Result<(), WeightsError> {
        let mut whole = String::new();
        for (rank, merge) in (0..).zip(merges) {
            let (left, right) = merge.split_once(' ').ok_or_else(|| damaged("a merge has no two parts"))?;
            whole.clear();
            whole.push_str(left);
            whole.push_str(right);
            let (Some(&one), Some(&other), Some(&both)) =
                (ids.get(left), ids.get(right), ids.get(whole.as_str()))
            else {
                return Err(damaged(&format!("a merge names a token that is not there: {merge}")));
            };
            self.merges.entry(pair(one, other)).or_insert((rank, both));
        }
        Ok(())
    }

    /// The tokens of a text. Never a control token, whatever the text looks like.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_bytes(text.as_bytes())
    }

    /// The tokens of bytes that need not be UTF-8. A byte that the vocabulary has no token for is left out.
    #[must_use]
    pub fn encode_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        let mut tokens = Vec::with_capacity(bytes.len() / 3);
        let mut merger = Merger::default();
        cut(bytes, self.cut, |piece| {
            let singles =
                piece.iter().filter_map(|byte| self.single.get(usize::from(*byte)).copied().flatten());
            merger.merge(singles, |one, other| self.merges.get(&pair(one, other)).copied(), &mut tokens);
        });
        tokens
    }

    /// The bytes of a token; the name of a control token. Nothing for a token that does not exist.
    #[must_use]
    pub fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        let start =
            token.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.ends.get(token).and_then(|end| self.text.get(start..*end as usize)).unwrap_or_default()
    }

    /// Whether a token steers instead of standing for text.
    #[must_use]
    pub fn is_control(&self, token: u32) -> bool {
        self.control.get(token as usize).copied().unwrap_or_default()
    }

    /// The control token of this name.
    #[must_use]
    pub fn control(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The token that ends a turn.
    #[must_use]
    pub fn end_of_turn(&self) -> u32 {
        self.end_of_turn
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none, which no model has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn cut_of(gguf: &Gguf) -> Result<Cut, WeightsError> {
    match gguf.text("tokenizer.ggml.model") {
        Some("gpt2") => {}
        other => {
            return Err(unsupported(&format!("the vocabulary is of kind `{}`", other.unwrap_or("none"))));
        }
    }
    match gguf.text("tokenizer.ggml.pre") {
        Some("smollm") => Ok(Cut::DigitsApart),
        Some("gpt-2") => Ok(Cut::Gpt2),
        other => {
            Err(unsupported(&format!("the vocabulary cuts text by the rule `{}`", other.unwrap_or("none"))))
        }
    }
}

/// The byte that a character stands for: printable Latin-1 is itself, the other 68 bytes follow from U+0100 on.
fn byte_of(c: char) -> Option<u8> {
    let point = u32::from(c);
    match point {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(point).ok(),
        0x100..=0x120 => u8::try_from(point - 0x100).ok(),
        0x121..=0x142 => u8::try_from(point - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

fn pair(one: u32, other: u32) -> u64 {
    (u64::from(one) << 32) | u64::from(other)
}

/// Merges the tokens of a piece, the lowest rank first and the leftmost of equals. Kept between pieces for its memory.
#[derive(Debug, Default)]
struct Merger {
    parts: Vec<LinkedToken>,
    queue: BinaryHeap<Reverse<(u32, usize, u32, u32)>>,
}

/// A token in a linked list of tokens.
#[derive(Debug, Clone, Copy)]
struct LinkedToken {
    /// Nothing once it is part of its left neighbour.
    token: Option<u32>,
    before: usize,
    after: usize,
}

impl Merger {
    fn merge(
        &mut self,
        tokens: impl Iterator<Item = u32>,
        look_up: impl Fn(u32, u32) -> Option<(u32, u32)>,
        out: &mut Vec<u32>,
    ) {
        self.parts.clear();
        self.parts.extend((0_usize..).zip(tokens).map(|(at, token)| LinkedToken {
            token: Some(token),
            before: at.wrapping_sub(1),
            after: at + 1,
        }));
        for at in 0..self.parts.len() {
            self.consider(at, &look_up);
        }
        while let Some(Reverse((_, at, one, other))) = self.queue.pop() {
            self.join(at, one, other, &look_up);
        }
        out.extend(self.parts.iter().filter_map(|part| part.token));
    }

    fn token(&self, at: usize) -> Option<u32> {
        self.parts.get(at).and_then(|part| part.token)
    }

    /// Queues the merge of a part with the one after it, if there is one.
    fn consider(&mut self, at: usize, look_up: &impl Fn(u32, u32) -> Option<(u32, u32)>) {
        let Some(part) = self.parts.get(at) else { return };
        let (Some(one), Some(other)) = (part.token, self.token(part.after)) else { return };
        if let Some((rank, _)) = look_up(one, other) {
            self.queue.push(Reverse((rank, at, one, other)));
        }
    }

    /// Merges a part with the one after it, unless one of them has changed since the merge was queued.
    fn join(&mut self, at: usize, one: u32, other: u32, look_up: &impl Fn(u32, u32) -> Option<(u32, u32)>) {
        let Some(&part) = self.parts.get(at) else { return };
        if part.token != Some(one) || self.token(part.after) != Some(other) {
            return;
        }
        let Some((_, both)) = look_up(one, other) else { return };
        let Some(gone) = self.parts.get_mut(part.after) else { return };
        gone.token = None;
        let after = gone.after;
        if let Some(next) = self.parts.get_mut(after) {
            next.before = at;
        }
        if let Some(part) = self.parts.get_mut(at) {
            (part.token, part.after) = (Some(both), after);
        }
        self.consider(at, look_up);
        self.consider(part.before, look_up);
    }
}

/// A multiplication per word. The keys come from the vocabulary and not from a caller, so nobody can choose collisions
/// that were not in the file already.
#[derive(Debug, Default)]
pub(super) struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }
}
