//! Tokenizes text by merging pairs, starting with single bytes, in the order of the merges in the file. Refuses unknown
//! rules for cutting text, and merges of tokens that do not exist.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::WeightsError;
use super::gguf::{Gguf, damaged_error, unsupported_error};
use super::merger::{Merger, PairHasher, pair};
use super::pieces::{SplitRule, cut};

/// The texts of the tokens in the file, and their numbers.
pub(super) type TokenNumbers<'a> = HashMap<&'a str, u32, BuildHasherDefault<PairHasher>>;

/// A vocabulary of byte-level pairs.
#[derive(Debug)]
pub(super) struct BytePairs {
    cut: SplitRule,
    /// Pieces that are tokens themselves and skip the merges; only for vocabularies that work this way.
    whole: HashMap<Box<[u8]>, u32>,
    /// The token of each single byte, if the vocabulary has one.
    single: [Option<u32>; 256],
    /// Two neighbours, mapped to the rank of their merge and the resulting token.
    merges: HashMap<u64, (u32, u32), BuildHasherDefault<PairHasher>>,
}

impl BytePairs {
    /// Creates an empty vocabulary that cuts text by the rule of the file.
    pub(super) fn read(gguf: &Gguf) -> Result<Self, WeightsError> {
        let cut = match gguf.text("tokenizer.ggml.pre") {
            Some("smollm") => SplitRule::DigitsApart,
            Some("gpt-2") => SplitRule::Gpt2,
            Some("qwen2") => SplitRule::Qwen2,
            Some("llama-bpe") => SplitRule::Llama3,
            other => {
                let rule = other.unwrap_or("none");
                return Err(unsupported_error(&format!(
                    "unsupported tokenizer rule of the vocabulary: `{rule}`"
                )));
            }
        };
        Ok(Self { cut, whole: HashMap::new(), single: [None; 256], merges: HashMap::default() })
    }

    /// Adds the bytes of a token.
    pub(super) fn add(&mut self, token: u32, bytes: &[u8]) {
        if self.cut.takes_whole_tokens() {
            self.whole.insert(bytes.into(), token);
        }
        if let [byte] = bytes {
            self.single.get_mut(usize::from(*byte)).into_iter().for_each(|slot| *slot = Some(token));
        }
    }

    /// Adds the merges, the highest priority first.
    pub(super) fn add_merges<'a>(
        &mut self,
        merges: impl Iterator<Item = &'a str>,
        numbers: &TokenNumbers,
    ) -> Result<(), WeightsError> {
        let mut whole = String::new();
        for (rank, merge) in (0..).zip(merges) {
            let (left, right) =
                merge.split_once(' ').ok_or_else(|| damaged_error("a merge does not have two parts"))?;
            whole.clear();
            whole.push_str(left);
            whole.push_str(right);
            let (Some(&one), Some(&other), Some(&both)) =
                (numbers.get(left), numbers.get(right), numbers.get(whole.as_str()))
            else {
                return Err(damaged_error(&format!("a merge names an unknown token: {merge}")));
            };
            self.merges.entry(pair(one, other)).or_insert((rank, both));
        }
        Ok(())
    }

    /// Appends the tokens of bytes. A byte that has no token is left out.
    pub(super) fn encode(&self, bytes: &[u8], merger: &mut Merger, tokens: &mut Vec<u32>) {
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
}

/// The byte that a character represents: printable Latin-1 is itself, the other 68 bytes follow from U+0100 on.
pub(super) fn byte_of(c: char) -> Option<u8> {
    let point = u32::from(c);
    match point {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(point).ok(),
        0x100..=0x120 => u8::try_from(point - 0x100).ok(),
        0x121..=0x142 => u8::try_from(point - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}
