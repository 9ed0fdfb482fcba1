//! Text to tokens and back, as the file defines it: by merging pairs of bytes, or by scores. A control token never comes
//! out of text, whatever the text looks like. Refuses vocabularies of other kinds.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::WeightsError;
use super::byte_pairs::{BytePairs, TokenNumbers, byte_of};
use super::gguf::{Gguf, List, damaged, unsupported};
use super::merger::Merger;
use super::scored_pieces::{BLANK, ScoredPieces};

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
    /// Tokens that are looked for before anything else happens to a text, the longest first. They stand for text and do
    /// not steer.
    sought: Vec<u32>,
    method: SplitMethod,
}

/// How the text between the tokens that are looked for becomes tokens.
#[derive(Debug)]
enum SplitMethod {
    Pairs(BytePairs),
    Scores(ScoredPieces),
}

/// A text on its way: what is still to be encoded, and what is a token already.
#[derive(Debug, Clone, Copy)]
enum TextPart<'a> {
    Text(&'a [u8]),
    Token(u32),
}

/// `token_type` of a token that stands for what no other token does.
const UNKNOWN: i64 = 2;
/// `token_type` of a token that steers.
const CONTROL: i64 = 3;
/// `token_type` of a token that is looked for before the text is cut.
const USER_DEFINED: i64 = 4;
/// `token_type` of a row of the matrices that stands for nothing.
const UNUSED: i64 = 5;
/// `token_type` of a token that stands for one byte, which its text names.
const BYTE: i64 = 6;

impl Tokenizer {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, WeightsError> {
        let tokens = list(gguf, "tokenizer.ggml.tokens")?;
        let kinds = list(gguf, "tokenizer.ggml.token_type")?;
        let method = match gguf.text("tokenizer.ggml.model") {
            Some("gpt2") => SplitMethod::Pairs(BytePairs::read(gguf)?),
            Some("llama") => SplitMethod::Scores(ScoredPieces::read(gguf, tokens.len())?),
            other => {
                let kind = other.unwrap_or("none");
                return Err(unsupported(&format!("the vocabulary is of kind `{kind}`")));
            }
        };
        if tokens.len() == 0 || tokens.len() != kinds.len() || u32::try_from(tokens.len()).is_err() {
            return Err(damaged("the vocabulary is incomplete"));
        }
        let mut tokenizer = Self {
            text: Vec::new(),
            ends: Vec::with_capacity(tokens.len()),
            control: Vec::with_capacity(tokens.len()),
            names: HashMap::new(),
            end_of_turn: 0,
            sought: Vec::new(),
            method,
        };
        let numbers = tokenizer.add_all(tokens, kinds)?;
        let mut sought = std::mem::take(&mut tokenizer.sought);
        sought.sort_by_key(|token| Reverse(tokenizer.bytes(*token).len()));
        tokenizer.sought = sought;
        tokenizer.end_of_turn = tokenizer.find_end_of_turn(gguf)?;
        match &mut tokenizer.method {
            SplitMethod::Pairs(pairs) => {
                let merges = list(gguf, "tokenizer.ggml.merges")?;
                let merges = merges.texts().ok_or_else(|| damaged("the merges are no list of texts"))?;
                pairs.add_merges(merges, &numbers)?;
            }
            SplitMethod::Scores(pieces) => pieces.check()?,
        }
        Ok(tokenizer)
    }

    /// Adds all tokens; returns the numbers of those that text may become.
    fn add_all<'a>(&mut self, tokens: List<'a>, kinds: List) -> Result<TokenNumbers<'a>, WeightsError> {
        let texts = tokens.texts().ok_or_else(|| damaged("the vocabulary is no list of texts"))?;
        let kinds = kinds.whole_numbers().ok_or_else(|| damaged("the token types are no numbers"))?;
        let mut numbers = TokenNumbers::default();
        for (id, (text, kind)) in (0..).zip(texts.zip(kinds)) {
            self.add(id, text, kind).ok_or_else(|| damaged(&format!("token {id} stands for no bytes")))?;
            self.control.push(self.steers(kind));
            let end = u32::try_from(self.text.len()).map_err(|_| damaged("the vocabulary is too long"))?;
            self.ends.push(end);
            let plain = ![CONTROL, USER_DEFINED, UNUSED].contains(&kind);
            if plain && matches!(self.method, SplitMethod::Pairs(_)) {
                numbers.insert(text, id);
            }
        }
        Ok(numbers)
    }

    /// Whether tokens of this type never come out of text.
    fn steers(&self, kind: i64) -> bool {
        let unknown = kind == UNKNOWN && matches!(self.method, SplitMethod::Scores(_));
        kind == CONTROL || kind == UNUSED || unknown
    }

    /// Learns what a token stands for; nothing if that cannot be said.
    fn add(&mut self, id: u32, text: &str, kind: i64) -> Option<()> {
        let start = self.text.len();
        if kind == CONTROL {
            self.names.insert(text.into(), id);
        }
        if self.steers(kind) {
            self.text.extend_from_slice(text.as_bytes());
            return Some(());
        }
        match &mut self.method {
            SplitMethod::Pairs(_) if kind == USER_DEFINED => self.text.extend_from_slice(text.as_bytes()),
            SplitMethod::Pairs(pairs) => {
                for c in text.chars() {
                    self.text.push(byte_of(c)?);
                }
                pairs.add(id, self.text.get(start..)?);
            }
            SplitMethod::Scores(pieces) if kind == BYTE => self.text.push(pieces.add_byte(id, text)?),
            SplitMethod::Scores(pieces) => {
                self.text.extend_from_slice(text.replace(BLANK, " ").as_bytes());
                if kind != USER_DEFINED {
                    pieces.add(id, self.text.get(start..)?);
                }
            }
        }
        if kind == USER_DEFINED {
            self.sought.push(id);
            return (!text.is_empty()).then_some(());
        }
        Some(())
    }

    /// The token that ends a turn: the one that the file calls so, or the one that ends a text. Files of Gemma name only
    /// the second, which no turn of it ends with.
    fn find_end_of_turn(&self, gguf: &Gguf) -> Result<u32, WeightsError> {
        let number = |name: &str| gguf.whole(name).and_then(|id| u32::try_from(id).ok());
        let scored = matches!(self.method, SplitMethod::Scores(_));
        let token = number("tokenizer.ggml.eot_token_id")
            .or_else(|| self.control("<end_of_turn>").filter(|_| scored))
            .or_else(|| number("tokenizer.ggml.eos_token_id"))
            .ok_or_else(|| damaged("no token ends a turn"))?;
        if !self.is_control(token) {
            return Err(damaged("the token that ends a turn is no control token"));
        }
        Ok(token)
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
        for part in self.seek(bytes) {
            match (part, &self.method) {
                (TextPart::Token(token), _) => tokens.push(token),
                (TextPart::Text(text), SplitMethod::Pairs(pairs)) => {
                    pairs.encode(text, &mut merger, &mut tokens);
                }
                (TextPart::Text(text), SplitMethod::Scores(pieces)) => pieces.encode(text, &mut tokens),
            }
        }
        tokens
    }

    /// Cuts at the tokens that are looked for: everywhere at the longest first, and what is between at the others.
    fn seek<'a>(&self, bytes: &'a [u8]) -> Vec<TextPart<'a>> {
        let mut parts = vec![TextPart::Text(bytes)];
        for token in &self.sought {
            let sought = self.bytes(*token);
            // Most of them are in no text at all.
            if !contains(bytes, sought) {
                continue;
            }
            let mut cut = Vec::new();
            for part in parts {
                let TextPart::Text(mut rest) = part else {
                    cut.push(part);
                    continue;
                };
                while let Some((before, after)) = split_once(rest, sought) {
                    cut.extend([TextPart::Text(before), TextPart::Token(*token)]);
                    rest = after;
                }
                cut.push(TextPart::Text(rest));
            }
            parts = cut;
        }
        parts
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

fn list<'a>(gguf: &Gguf<'a>, name: &str) -> Result<List<'a>, WeightsError> {
    gguf.list(name).ok_or_else(|| damaged(&format!("the list `{name}` is missing")))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    split_once(bytes, part).is_some()
}

/// What is before and after the first occurrence.
fn split_once<'a>(bytes: &'a [u8], part: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(part.len().max(1)).position(|window| window == part)?;
    Some((bytes.get(..at)?, bytes.get(at + part.len()..)?))
}
