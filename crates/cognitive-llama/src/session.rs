//! A text that is read alone: the calling thread computes, and helper threads take part. Batches of texts are in
//! `ensemble`; the computation of both is in `batch_step`.

use std::sync::Arc;

use super::Model;
use super::batch_step::{ReadText, StepThreads, TextFeed};
use super::forward::WantedVectors;

/// A text that was read, with the keys and values of every layer.
#[derive(Debug)]
pub struct TokenSession {
    model: Arc<Model>,
    text: ReadText,
    room: StepThreads,
}

/// The reason why a session could not read on. The session is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedError {
    /// The context is full.
    Full,
    /// The caller cancelled the call.
    Cancelled,
}

impl TokenSession {
    /// Creates an empty session that computes with up to `threads` threads.
    #[must_use]
    pub fn new(model: Arc<Model>, threads: usize) -> Self {
        let text = ReadText::new(&model);
        Self { model, text, room: StepThreads::new(threads) }
    }

    /// The tokens that it has read.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.text.tokens
    }

    /// Forgets everything after the first `length` tokens.
    pub fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    /// Creates another session that has read the first `length` tokens of this one. Their keys and values are shared,
    /// not copied.
    #[must_use]
    pub fn fork(&self, length: usize) -> Self {
        let room = StepThreads::new(self.room.threads());
        Self { model: Arc::clone(&self.model), text: self.text.fork(length), room }
    }

    /// Reads the tokens and returns the logits after the last one, one per token of the vocabulary. `cancelled` is
    /// checked before each layer of each block of at most 64 tokens. An unknown token is read as an empty one. Without
    /// tokens, it returns the logits of the last call.
    pub fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        self.read(tokens, WantedVectors::Last, cancelled)?;
        Ok(self.text.logits(&self.model))
    }

    /// Reads the tokens and returns the log-likelihood of each but the first, given those before it. The first one has
    /// no prediction in this call. [`feed`](Self::feed) without tokens still returns the logits of its last call.
    pub fn likelihoods(
        &mut self,
        tokens: &[u32],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, FeedError> {
        self.read(tokens, WantedVectors::All, cancelled)
    }

    fn read(
        &mut self,
        tokens: &[u32],
        wanted: WantedVectors,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, FeedError> {
        self.text.check_room(&self.model, tokens.len())?;
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let mut feeds = [TextFeed::new(&mut self.text, tokens, wanted)];
        self.room.read(&self.model, &mut feeds, cancelled).ok_or(FeedError::Cancelled)?;
        let [feed] = feeds;
        Ok(feed.found)
    }
}
