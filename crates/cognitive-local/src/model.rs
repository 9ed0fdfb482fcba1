//! What writing needs of a model: a vocabulary, a context and texts that are read. The engine has all of it, and reads the
//! texts of all requests together; tests bring a toy. Computes nothing itself.

use std::sync::Arc;

use cognitive_llama::{Ensemble, EnsembleSession, FeedError, Tokenizer};

/// Text to tokens and back.
pub(crate) trait Vocabulary: Send + Sync {
    /// How many tokens there are.
    fn len(&self) -> usize;
    /// The bytes of a token; the name of a control token.
    fn bytes(&self, token: u32) -> &[u8];
    /// Whether a token steers instead of standing for text.
    fn is_control(&self, token: u32) -> bool;
    /// The control token of this name.
    fn control(&self, name: &str) -> Option<u32>;
    /// The token that ends a turn.
    fn end_of_turn(&self) -> u32;
    /// The tokens of bytes, never a control token.
    fn encode(&self, bytes: &[u8]) -> Vec<u32>;
}

/// Something that can be asked for the next token.
pub(crate) trait LanguageModel: Send + Sync {
    fn vocabulary(&self) -> &dyn Vocabulary;
    /// How many tokens fit.
    fn context_length(&self) -> usize;
    /// The template of its conversations, if its file has one.
    fn chat_template(&self) -> Option<&str> {
        None
    }
    /// The hash of the file that they came from, if somebody has made it.
    fn sha256(&self) -> Option<&str> {
        None
    }
    /// How many numbers it has learned, or near to it; nothing is known of a model that does not say.
    fn parameters(&self) -> u64 {
        0
    }
    /// The memory that each token of a text takes, in bytes.
    fn bytes_per_token(&self) -> u64;
    /// An empty text.
    fn session(self: Arc<Self>) -> Box<dyn SharedReading>;
}

/// What has been read so far.
pub(crate) trait ModelState: Send {
    fn tokens(&self) -> &[u32];
    /// Forgets everything after the first `length` tokens.
    fn truncate(&mut self, length: usize);
    /// Reads on and returns the logits after the last token.
    fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError>;
    /// Reads on and returns how likely each token but the first was after those before it, as a logarithm.
    fn likelihoods(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<f32>, FeedError> {
        let mut found = Vec::new();
        for (index, token) in tokens.iter().enumerate() {
            let logits = self.feed(&[*token], cancelled)?;
            if let Some(next) = tokens.get(index + 1) {
                let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f32 = logits.iter().map(|logit| (logit - highest).exp()).sum();
                let chosen = logits.get(*next as usize).copied().unwrap_or(f32::NEG_INFINITY);
                found.push(chosen - highest - sum.ln());
            }
        }
        Ok(found)
    }
    /// Reads on and returns the vector of the last token after each layer; none if the model keeps them to itself.
    fn states(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<Vec<f32>>, FeedError> {
        self.feed(tokens, cancelled).map(|_| Vec::new())
    }
    /// The same as [`Self::likelihoods`] for each of these texts by itself; what was read stays as it is.
    fn likelihoods_of_each(
        &mut self,
        texts: &[Vec<u32>],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, FeedError> {
        let length = self.tokens().len();
        let weigh = |tokens: &Vec<u32>| {
            let found = self.likelihoods(tokens, cancelled);
            self.truncate(length);
            found
        };
        texts.iter().map(weigh).collect()
    }
}

/// A text whose beginning others may share.
pub(crate) trait SharedReading: ModelState {
    /// Reads on, for somebody who does not want to know what may follow.
    fn read(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<(), FeedError>;
    /// Another text that begins with the first `length` tokens of this one. What was computed of them is shared.
    fn fork(&self, length: usize) -> Box<dyn SharedReading>;
}

impl Vocabulary for Tokenizer {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn bytes(&self, token: u32) -> &[u8] {
        Self::bytes(self, token)
    }

    fn is_control(&self, token: u32) -> bool {
        Self::is_control(self, token)
    }

    fn control(&self, name: &str) -> Option<u32> {
        Self::control(self, name)
    }

    fn end_of_turn(&self) -> u32 {
        Self::end_of_turn(self)
    }

    fn encode(&self, bytes: &[u8]) -> Vec<u32> {
        self.encode_bytes(bytes)
    }
}

impl LanguageModel for Ensemble {
    fn vocabulary(&self) -> &dyn Vocabulary {
        self.model().tokenizer()
    }

    fn context_length(&self) -> usize {
        self.model().context_length()
    }

    fn chat_template(&self) -> Option<&str> {
        self.model().chat_template()
    }

    fn sha256(&self) -> Option<&str> {
        self.model().sha256()
    }

    fn parameters(&self) -> u64 {
        self.model().parameters()
    }

    fn bytes_per_token(&self) -> u64 {
        self.model().bytes_per_token()
    }

    fn session(self: Arc<Self>) -> Box<dyn SharedReading> {
        Box::new(Ensemble::session(&self))
    }
}

impl ModelState for EnsembleSession {
    fn tokens(&self) -> &[u32] {
        Self::tokens(self)
    }

    fn truncate(&mut self, length: usize) {
        Self::truncate(self, length);
    }

    fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        Self::feed(self, tokens, cancelled)
    }

    fn likelihoods(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<f32>, FeedError> {
        Self::likelihoods(self, tokens, cancelled)
    }

    fn likelihoods_of_each(
        &mut self,
        texts: &[Vec<u32>],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, FeedError> {
        Self::likelihoods_of_each(self, texts, cancelled)
    }

    fn states(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<Vec<f32>>, FeedError> {
        Self::states(self, tokens, cancelled)
    }
}

impl SharedReading for EnsembleSession {
    fn read(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<(), FeedError> {
        Self::read(self, tokens, cancelled)
    }

    fn fork(&self, length: usize) -> Box<dyn SharedReading> {
        Box::new(Self::fork(self, length))
    }
}
