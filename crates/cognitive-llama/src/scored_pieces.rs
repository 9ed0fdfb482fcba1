//! Tokenizes text by scores, like `SentencePiece`: starting with single characters, it merges the neighbours whose
//! token has the highest score. A character without a token becomes the tokens of its bytes. Refuses vocabularies
//! without tokens for bytes, and those that put a blank before every text, because decoding would not return the same
//! text.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;

use super::WeightsError;
use super::gguf::{Gguf, Value, damaged_error, unsupported_error};
use super::merger::PairHasher;

/// Represents a blank in the texts of tokens. In an input text it is an ordinary character and becomes bytes.
/// `SentencePiece` treats it as a blank, but then it would be decoded as one.
pub(super) const BLANK: &str = "\u{2581}";

/// A vocabulary whose tokens have scores.
#[derive(Debug)]
pub(super) struct ScoredPieces {
    /// The tokens that text can become, by their bytes.
    numbers: HashMap<Box<[u8]>, u32, BuildHasherDefault<PairHasher>>,
    /// Per token; the highest rank is merged first.
    ranks: Vec<i32>,
    /// The tokens of the bytes.
    single: [Option<u32>; 256],
    longest: usize,
}

impl ScoredPieces {
    /// Creates an empty vocabulary with the scores of the file.
    pub(super) fn read(gguf: &Gguf, tokens: usize) -> Result<Self, WeightsError> {
        // The blank is the default, so a file without the setting has it.
        if gguf.value("tokenizer.ggml.add_space_prefix") != Some(Value::Bool(false)) {
            return Err(unsupported_error("unsupported vocabulary: it puts a blank before every text"));
        }
        let scores = gguf.list("tokenizer.ggml.scores").filter(|scores| scores.len() == tokens);
        let scores = scores.and_then(|scores| scores.numbers());
        let scores = scores.ok_or_else(|| damaged_error("the scores of the vocabulary are missing"))?;
        let ranks: Vec<i32> = scores.filter(|score| !score.is_nan()).map(rank).collect();
        if ranks.len() != tokens {
            return Err(damaged_error("a score of the vocabulary is not a number"));
        }
        Ok(Self { numbers: HashMap::default(), ranks, single: [None; 256], longest: 0 })
    }

    /// Adds the bytes of a token.
    pub(super) fn add(&mut self, token: u32, bytes: &[u8]) {
        self.longest = self.longest.max(bytes.len());
        self.numbers.entry(bytes.into()).or_insert(token);
    }

    /// Adds the token of a byte and returns the byte. Returns `None` if the text names none.
    pub(super) fn add_byte(&mut self, token: u32, text: &str) -> Option<u8> {
        let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
        // A sign would be parsed as part of the number.
        if digits.len() != 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let byte = u8::from_str_radix(digits, 16).ok()?;
        *self.single.get_mut(usize::from(byte))? = Some(token);
        Some(byte)
    }

    /// Refuses a vocabulary that cannot encode every text.
    pub(super) fn check(&self) -> Result<(), WeightsError> {
        match self.single.iter().position(Option::is_none) {
            None => Ok(()),
            Some(byte) => Err(unsupported_error(&format!("the vocabulary has no token for the byte {byte}"))),
        }
    }

    /// Appends the tokens of bytes.
    pub(super) fn encode(&self, bytes: &[u8], tokens: &mut Vec<u32>) {
        let mut pieces =
            LinkedPieces { vocabulary: self, bytes, parts: Vec::new(), queue: BinaryHeap::new() };
        pieces.split();
        pieces.merge();
        for part in pieces.parts.iter().filter(|part| part.length > 0) {
            let bytes = part.bytes(bytes);
            match self.numbers.get(bytes) {
                Some(token) => tokens.push(*token),
                None => tokens.extend(
                    bytes.iter().filter_map(|byte| self.single.get(usize::from(*byte)).copied().flatten()),
                ),
            }
        }
    }
}

/// Returns a number that rises with the score. Both zeros have the same rank.
fn rank(score: f32) -> i32 {
    let bits = (score + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i32::MAX } else { bits }
}

/// The pieces of a text during tokenization.
struct LinkedPieces<'a> {
    vocabulary: &'a ScoredPieces,
    bytes: &'a [u8],
    parts: Vec<LinkedPiece>,
    /// The rank of the merge of two neighbours, the position of the left one, and the length of both.
    queue: BinaryHeap<(i32, Reverse<usize>, usize)>,
}

/// A piece in a linked list of pieces.
#[derive(Debug, Clone, Copy)]
struct LinkedPiece {
    start: usize,
    /// Zero once it is part of its left neighbour.
    length: usize,
    before: usize,
    after: usize,
}

impl LinkedPiece {
    fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start..self.start + self.length).unwrap_or_default()
    }
}

impl LinkedPieces<'_> {
    /// Splits the text into characters, and into single bytes where it is not UTF-8.
    fn split(&mut self) {
        let mut start = 0;
        let mut push = |length: usize| {
            let at = self.parts.len();
            self.parts.push(LinkedPiece { start, length, before: at.wrapping_sub(1), after: at + 1 });
            start += length;
        };
        for chunk in self.bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| push(c.len_utf8()));
            chunk.invalid().iter().for_each(|_| push(1));
        }
    }

    fn merge(&mut self) {
        for at in 0..self.parts.len() {
            self.consider(at);
        }
        while let Some((_, Reverse(at), length)) = self.queue.pop() {
            self.join(at, length);
        }
    }

    /// Queues the merge of a piece with the next one, if both together are a token.
    fn consider(&mut self, at: usize) {
        let Some(part) = self.parts.get(at) else { return };
        let Some(next) = self.parts.get(part.after) else { return };
        let length = part.length + next.length;
        if length > self.vocabulary.longest {
            return;
        }
        let both = LinkedPiece { length, ..*part };
        let Some(token) = self.vocabulary.numbers.get(both.bytes(self.bytes)) else { return };
        if let Some(rank) = self.vocabulary.ranks.get(*token as usize) {
            self.queue.push((*rank, Reverse(at), length));
        }
    }

    /// Merges a piece with the next one, unless one of them has changed since the merge was queued.
    fn join(&mut self, at: usize, length: usize) {
        let Some(&part) = self.parts.get(at) else { return };
        let Some(next) = self.parts.get_mut(part.after) else { return };
        if part.length == 0 || part.length + next.length != length {
            return;
        }
        next.length = 0;
        let after = next.after;
        if let Some(next) = self.parts.get_mut(after) {
            next.before = at;
        }
        if let Some(part) = self.parts.get_mut(at) {
            (part.length, part.after) = (length, after);
        }
        self.consider(part.before);
        self.consider(at);
    }
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn ranks_rise_with_scores() {
        let scores = [f32::NEG_INFINITY, -255_504.0, -1_000.0, -1.5, -1.0, 0.0, 1e-9, 2.0, f32::INFINITY];
        assert!(scores.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
        assert_eq!(rank(-0.0), rank(0.0));
    }
}
