//! The interface of a model for writing: a vocabulary, a context and texts. The engine implements it and reads the
//! texts of all requests in batches; tests use a toy model. Computes nothing itself.

use std::sync::Arc;

use cognitive_llama::{Ensemble, EnsembleSession, FeedError, Tokenizer};

/// Converts text to tokens and back.
pub(crate) trait Vocabulary: Send + Sync {
    /// The number of tokens.
    fn len(&self) -> usize;
    /// The bytes of a token; the name of a control token.
    fn bytes(&self, token: u32) -> &[u8];
    /// Returns whether a token is a control token, which represents no text.
    fn is_control(&self, token: u32) -> bool;
    /// Returns the control token of this name.
    fn control(&self, name: &str) -> Option<u32>;
    /// The token that ends a turn.
    fn end_of_turn(&self) -> u32;
    /// Returns the tokens of bytes, never a control token.
    fn encode(&self, bytes: &[u8]) -> Vec<u32>;
}

/// A model that predicts the next token.
pub(crate) trait LanguageModel: Send + Sync {
    fn vocabulary(&self) -> &dyn Vocabulary;
    /// The largest number of tokens in a text.
    fn context_length(&self) -> usize;
    /// The chat template, if its file has one.
    fn chat_template(&self) -> Option<&str> {
        None
    }
    /// The hash of the file of the weights, if it is known.
    fn sha256(&self) -> Option<&str> {
        None
    }
    /// The approximate number of parameters; 0 if it is unknown.
    fn parameters(&self) -> u64 {
        0
    }
    /// The memory per token of a text, in bytes.
    fn bytes_per_token(&self) -> u64;
    /// Creates an empty text.
    fn session(self: Arc<Self>) -> Box<dyn SharedReading>;
}

/// The text that a model has read so far.
pub(crate) trait ModelState: Send {
    fn tokens(&self) -> &[u32];
    /// Forgets everything after the first `length` tokens.
    fn truncate(&mut self, length: usize);
    /// Reads the tokens and returns the logits after the last one.
    fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError>;
    /// Reads the tokens and returns the log-likelihood of each but the first, given those before it.
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
    /// Reads the tokens and returns the state of the last one after each layer; empty if the model does not expose
    /// states.
    fn states(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<Vec<f32>>, FeedError> {
        self.feed(tokens, cancelled).map(|_| Vec::new())
    }
    /// Like [`Self::likelihoods`], for each of these texts as a separate continuation; this text does not change.
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

/// A text that can share its start with others.
pub(crate) trait SharedReading: ModelState {
    /// Reads the tokens without computing logits.
    fn read(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<(), FeedError>;
    /// Creates another text that starts with the first `length` tokens of this one. Their computation is shared.
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
