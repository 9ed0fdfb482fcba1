//! An untrained model for tests: a small vocabulary, and logits computed from the tokens it has read. Properties that
//! hold with it hold for all logits that a real model could have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::model::{LanguageModel, ModelState, SharedReading, Vocabulary};
use cognitive_llama::FeedError;

pub(crate) const START: u32 = 256;
pub(crate) const END: u32 = 257;

/// Every byte is a token, followed by the two marks and some words that cross the boundaries of JSON tokens.
pub(crate) struct Toy {
    pub words: Vec<Vec<u8>>,
    pub context: usize,
    /// The number of computed tokens.
    pub computed: AtomicUsize,
    /// Panics when it reads this byte.
    pub poison: Option<u8>,
    /// Called before each computation, with the number of earlier ones.
    pub gate: Option<Box<dyn Fn(usize) + Send + Sync>>,
    pub feeds: AtomicUsize,
    /// Additional control tokens.
    pub marks: Vec<u32>,
}

impl Default for Toy {
    fn default() -> Self {
        let mut words: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        words.extend([b"<|im_start|>".to_vec(), b"<|im_end|>".to_vec()]);
        Self {
            words,
            context: 8_192,
            computed: AtomicUsize::new(0),
            poison: None,
            gate: None,
            feeds: AtomicUsize::new(0),
            marks: Vec::new(),
        }
    }
}

impl Toy {
    /// Creates a toy with other control tokens.
    pub(crate) fn with_marks<const N: usize>(names: [&str; N]) -> Self {
        let mut toy = Self::default();
        for name in names {
            toy.marks.push(u32::try_from(toy.words.len()).unwrap());
            toy.words.push(name.as_bytes().to_vec());
        }
        toy
    }

    pub(crate) fn wordy() -> Self {
        let mut toy = Self::default();
        let words = [
            "\":",
            "\",",
            "\",\"",
            "\":\"",
            "\"}",
            "\"]",
            "},{",
            "\"},{\"",
            "}}",
            "[]",
            "[\"",
            "{\"",
            "true",
            "tru",
            "false",
            "null",
            "low",
            "lo",
            "ow",
            "none",
            "medium",
            "data",
            "meta",
            "rationale",
            "ab",
            "abc",
            "the ",
            " a",
            "你",
            "00",
            "0.",
            ".5",
            "12",
            "],",
            "]}",
            "\\n",
            "\\\"",
            "e\":",
            "ok\":",
            "a\",\"b",
        ];
        toy.words.extend(words.iter().map(|word| word.as_bytes().to_vec()));
        toy
    }
}

impl Vocabulary for Toy {
    fn len(&self) -> usize {
        self.words.len()
    }

    fn bytes(&self, token: u32) -> &[u8] {
        self.words.get(token as usize).map_or(&[], Vec::as_slice)
    }

    fn is_control(&self, token: u32) -> bool {
        token == START || token == END || self.marks.contains(&token)
    }

    fn control(&self, name: &str) -> Option<u32> {
        let mut marks = [START, END].into_iter().chain(self.marks.iter().copied());
        marks.find(|token| self.bytes(*token) == name.as_bytes())
    }

    fn end_of_turn(&self) -> u32 {
        END
    }

    fn encode(&self, mut bytes: &[u8]) -> Vec<u32> {
        let mut tokens = Vec::new();
        while let Some(byte) = bytes.first() {
            let fits = |token: &usize| {
                !self.marks.iter().any(|mark| *mark as usize == *token)
                    && bytes.starts_with(&self.words[*token])
            };
            let longest = (258..self.words.len()).filter(fits).max_by_key(|token| self.words[*token].len());
            let token = longest.unwrap_or(usize::from(*byte));
            bytes = &bytes[self.words[token].len()..];
            tokens.push(u32::try_from(token).unwrap());
        }
        tokens
    }
}

impl LanguageModel for Toy {
    fn vocabulary(&self) -> &dyn Vocabulary {
        self
    }

    fn context_length(&self) -> usize {
        self.context
    }

    fn bytes_per_token(&self) -> u64 {
        1
    }

    fn session(self: Arc<Self>) -> Box<dyn SharedReading> {
        Box::new(ToyText { toy: self, tokens: Vec::new(), logits: Vec::new() })
    }
}

struct ToyText {
    toy: Arc<Toy>,
    tokens: Vec<u32>,
    logits: Vec<f32>,
}

impl ModelState for ToyText {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
    }

    fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        let feeds = self.toy.feeds.fetch_add(1, Ordering::SeqCst);
        if let Some(gate) = &self.toy.gate {
            gate(feeds);
        }
        if self.tokens.len() + tokens.len() > self.toy.context {
            return Err(FeedError::Full);
        }
        if cancelled() {
            return Err(FeedError::Cancelled);
        }
        let is_poison = |token: &u32| self.toy.poison.is_some_and(|poison| u32::from(poison) == *token);
        assert!(!tokens.iter().any(is_poison), "the toy was told to break");
        self.toy.computed.fetch_add(tokens.len(), Ordering::Relaxed);
        self.tokens.extend_from_slice(tokens);
        let fold = |hash: u64, token: &u32| (hash ^ u64::from(*token)).wrapping_mul(0x0100_0000_01B3);
        let seed = self.tokens.iter().fold(0xCBF2_9CE4_8422_2325, fold);
        let mut dice = crate::sample::TokenRandom::new(seed);
        self.logits = (0..self.toy.words.len()).map(|_| 10.0 * dice.fraction()).collect();
        Ok(&self.logits)
    }

    /// After the first layer, the counts of read words by first letter; after the second, only ones.
    fn states(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<Vec<f32>>, FeedError> {
        self.feed(tokens, cancelled)?;
        let mut counts = vec![0.5; 26];
        for token in &self.tokens {
            let letter = self.toy.words[*token as usize].first().map(u8::to_ascii_lowercase);
            if let Some(letter @ b'a'..=b'z') = letter {
                counts[usize::from(letter - b'a')] += 1.0;
            }
        }
        Ok(vec![counts, vec![1.0; 26]])
    }
}

impl SharedReading for ToyText {
    fn read(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<(), FeedError> {
        if tokens.is_empty() { Ok(()) } else { self.feed(tokens, cancelled).map(drop) }
    }

    fn fork(&self, length: usize) -> Box<dyn SharedReading> {
        let tokens = self.tokens.iter().copied().take(length).collect();
        Box::new(Self { toy: Arc::clone(&self.toy), tokens, logits: Vec::new() })
    }
}
