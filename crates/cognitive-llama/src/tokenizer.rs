//! Converts text to tokens and back, as the file defines it: by merging pairs of bytes, or by scores. Text never
//! becomes a control token, regardless of its contents. Refuses vocabularies of other kinds.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::WeightsError;
use super::byte_pairs::{BytePairs, TokenNumbers, byte_of};
use super::gguf::{Gguf, List, damaged_error, unsupported_error};
use super::merger::Merger;
use super::scored_pieces::{BLANK, ScoredPieces};

/// Converts text to tokens and back, as the file defines it.
#[derive(Debug)]
pub struct Tokenizer {
    /// The bytes of all tokens, one after the other.
    text: Vec<u8>,
    /// The end of each token in `text`.
    ends: Vec<u32>,
    control: Vec<bool>,
    names: HashMap<Box<str>, u32>,
    end_of_turn: u32,
    /// Text tokens that are matched before the text is cut, the longest first. They are not control tokens.
    sought: Vec<u32>,
    method: SplitMethod,
}

/// The method for the text between these tokens.
#[derive(Debug)]
enum SplitMethod {
    Pairs(BytePairs),
    Scores(ScoredPieces),
}

/// A part of a text during tokenization: text to be encoded, or a token.
#[derive(Debug, Clone, Copy)]
enum TextPart<'a> {
    Text(&'a [u8]),
    Token(u32),
}

/// `token_type` of the token for unknown text.
const UNKNOWN: i64 = 2;
/// `token_type` of a control token.
const CONTROL: i64 = 3;
/// `token_type` of a token that is matched before the text is cut.
const USER_DEFINED: i64 = 4;
/// `token_type` of an unused row of the matrices.
const UNUSED: i64 = 5;
/// `token_type` of a token for one byte, named by its text.
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
                return Err(unsupported_error(&format!("unsupported kind of vocabulary: `{kind}`")));
            }
        };
        if tokens.len() == 0 || tokens.len() != kinds.len() || u32::try_from(tokens.len()).is_err() {
            return Err(damaged_error("the vocabulary is incomplete"));
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
                let merges =
                    merges.texts().ok_or_else(|| damaged_error("the merges are not a list of texts"))?;
                pairs.add_merges(merges, &numbers)?;
            }
            SplitMethod::Scores(pieces) => pieces.check()?,
        }
        Ok(tokenizer)
    }

    /// Adds all tokens; returns the numbers of those that text can become.
    fn add_all<'a>(&mut self, tokens: List<'a>, kinds: List) -> Result<TokenNumbers<'a>, WeightsError> {
        let texts = tokens.texts().ok_or_else(|| damaged_error("the vocabulary is not a list of texts"))?;
        let kinds = kinds.whole_numbers().ok_or_else(|| damaged_error("the token types are not numbers"))?;
        let mut numbers = TokenNumbers::default();
        for (id, (text, kind)) in (0..).zip(texts.zip(kinds)) {
            self.add(id, text, kind).ok_or_else(|| damaged_error(&format!("token {id} has no bytes")))?;
            self.control.push(self.is_control_type(kind));
            let end =
                u32::try_from(self.text.len()).map_err(|_| damaged_error("the vocabulary is too long"))?;
            self.ends.push(end);
            let plain = ![CONTROL, USER_DEFINED, UNUSED].contains(&kind);
            if plain && matches!(self.method, SplitMethod::Pairs(_)) {
                numbers.insert(text, id);
            }
        }
        Ok(numbers)
    }

    /// Returns whether tokens of this type never come from text.
    fn is_control_type(&self, kind: i64) -> bool {
        let unknown = kind == UNKNOWN && matches!(self.method, SplitMethod::Scores(_));
        kind == CONTROL || kind == UNUSED || unknown
    }

    /// Adds the bytes of a token; returns `None` if they cannot be determined.
    fn add(&mut self, id: u32, text: &str, kind: i64) -> Option<()> {
        let start = self.text.len();
        if kind == CONTROL {
            self.names.insert(text.into(), id);
        }
        if self.is_control_type(kind) {
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

    /// Returns the token that ends a turn: the one that the file declares, or the one that ends a text. Files of Gemma
    /// declare only the second, which does not end its turns, so `<end_of_turn>` is looked up by name before it.
    fn find_end_of_turn(&self, gguf: &Gguf) -> Result<u32, WeightsError> {
        let number = |name: &str| gguf.whole_number(name).and_then(|id| u32::try_from(id).ok());
        let scored = matches!(self.method, SplitMethod::Scores(_));
        let token = number("tokenizer.ggml.eot_token_id")
            .or_else(|| self.control("<end_of_turn>").filter(|_| scored))
            .or_else(|| number("tokenizer.ggml.eos_token_id"))
            .ok_or_else(|| damaged_error("no token ends a turn"))?;
        if !self.is_control(token) {
            return Err(damaged_error("the token that ends a turn is not a control token"));
        }
        Ok(token)
    }

    /// Returns the tokens of a text. Never a control token, regardless of the text.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_bytes(text.as_bytes())
    }

    /// Returns the tokens of bytes that need not be UTF-8. A byte without a token in the vocabulary is left out.
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

    /// Cuts the bytes at the `sought` tokens: first everywhere at the longest, then the remaining text at the others.
    fn seek<'a>(&self, bytes: &'a [u8]) -> Vec<TextPart<'a>> {
        let mut parts = vec![TextPart::Text(bytes)];
        for token in &self.sought {
            let sought = self.bytes(*token);
            // Most of these tokens do not occur in a text.
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

    /// Returns the bytes of a token; the name of a control token. Returns nothing for a token that does not exist.
    #[must_use]
    pub fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        let start =
            token.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.ends.get(token).and_then(|end| self.text.get(start..*end as usize)).unwrap_or_default()
    }

    /// Returns whether a token is a control token, which represents no text.
    #[must_use]
    pub fn is_control(&self, token: u32) -> bool {
        self.control.get(token as usize).copied().unwrap_or_default()
    }

    /// Returns the control token of this name.
    #[must_use]
    pub fn control(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The token that ends a turn.
    #[must_use]
    pub fn end_of_turn(&self) -> u32 {
        self.end_of_turn
    }

    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the vocabulary is empty, which no model allows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn list<'a>(gguf: &Gguf<'a>, name: &str) -> Result<List<'a>, WeightsError> {
    gguf.list(name).ok_or_else(|| damaged_error(&format!("the list `{name}` is missing")))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    split_once(bytes, part).is_some()
}

/// Returns the bytes before and after the first occurrence.
fn split_once<'a>(bytes: &'a [u8], part: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(part.len().max(1)).position(|window| window == part)?;
    Some((bytes.get(..at)?, bytes.get(at + part.len()..)?))
}
