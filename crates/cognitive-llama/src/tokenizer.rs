//! Text to tokens and back: byte-level pair merging, as the file defines it. A control token never comes out of text,
//! whatever the text looks like. Refuses vocabularies of other kinds, and ways of cutting text that it does not know.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::WeightsError;
use super::gguf::{Gguf, damaged, unsupported};
use super::merger::{Merger, PairHasher, pair};
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
    /// The pieces that are tokens as they are, whatever the merges would make of them; only for vocabularies that want
    /// it so.
    whole: HashMap<Box<[u8]>, u32>,
    /// Tokens that are looked for before the text is cut, the longest first. They stand for text and do not steer.
    sought: Vec<u32>,
    /// The token of each single byte, if the vocabulary has one.
    single: [Option<u32>; 256],
    /// Two neighbours to their rank and what they become.
    merges: HashMap<u64, (u32, u32), BuildHasherDefault<PairHasher>>,
}

/// `token_type` of a token that steers.
const CONTROL: i64 = 3;
/// `token_type` of a token that is looked for before the text is cut.
const USER_DEFINED: i64 = 4;
/// `token_type` of a row of the matrices that stands for nothing.
const UNUSED: i64 = 5;

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
            whole: HashMap::new(),
            sought: Vec::new(),
            single: [None; 256],
            merges: HashMap::default(),
        };
        let mut ids: HashMap<&str, u32, BuildHasherDefault<PairHasher>> = HashMap::default();
        ids.reserve(tokens.len());
        for (id, (text, kind)) in (0..).zip(texts.zip(kinds)) {
            tokenizer.add(id, text, kind)?;
            if ![CONTROL, USER_DEFINED, UNUSED].contains(&kind) {
                ids.insert(text, id);
            }
        }
        let mut sought = std::mem::take(&mut tokenizer.sought);
        sought.sort_by_key(|token| Reverse(tokenizer.bytes(*token).len()));
        tokenizer.sought = sought;
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
            USER_DEFINED => {
                if text.is_empty() {
                    return Err(damaged(&format!("token {id} stands for no bytes")));
                }
                self.text.extend_from_slice(text.as_bytes());
                self.sought.push(id);
            }
            // Neither text nor a name that anybody asks for.
            UNUSED => self.text.extend_from_slice(text.as_bytes()),
            _ => {
                for c in text.chars() {
                    let byte =
                        byte_of(c).ok_or_else(|| damaged(&format!("token {id} stands for no bytes")))?;
                    self.text.push(byte);
                }
                if self.cut.takes_whole_tokens() {
                    self.whole.insert(self.text.get(start..).unwrap_or_default().into(), id);
                }
                if let [byte] = self.text.get(start..).unwrap_or_default() {
                    self.single.get_mut(usize::from(*byte)).into_iter().for_each(|slot| *slot = Some(id));
                }
            }
        }
        self.control.push(kind == CONTROL || kind == UNUSED);
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
        self.seek(bytes, &self.sought, &mut Merger::default(), &mut tokens);
        tokens
    }

    /// Cuts at the first of the sought tokens, and what is between at the others.
    fn seek(&self, bytes: &[u8], sought: &[u32], merger: &mut Merger, tokens: &mut Vec<u32>) {
        let Some((token, others)) = sought.split_first() else {
            self.encode_text(bytes, merger, tokens);
            return;
        };
        let mut rest = bytes;
        while let Some((before, after)) = split_once(rest, self.bytes(*token)) {
            self.seek(before, others, merger, tokens);
            tokens.push(*token);
            rest = after;
        }
        self.seek(rest, others, merger, tokens);
    }

    fn encode_text(&self, bytes: &[u8], merger: &mut Merger, tokens: &mut Vec<u32>) {
        cut(bytes, self.cut, |piece| {
            if let Some(token) = self.whole.get(piece) {
                tokens.push(*token);
                return;
            }
            let singles =
                piece.iter().filter_map(|byte| self.single.get(usize::from(*byte)).copied().flatten());
            merger.merge(singles, |one, other| self.merges.get(&pair(one, other)).copied(), tokens);
        });
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
        Some("qwen2") => Ok(Cut::Qwen2),
        Some("llama-bpe") => Ok(Cut::Llama3),
        other => {
            Err(unsupported(&format!("the vocabulary cuts text by the rule `{}`", other.unwrap_or("none"))))
        }
    }
}

/// What is before and after the first occurrence.
fn split_once<'a>(bytes: &'a [u8], part: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(part.len().max(1)).position(|window| window == part)?;
    Some((bytes.get(..at)?, bytes.get(at + part.len()..)?))
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
