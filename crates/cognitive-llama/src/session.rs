//! A text that is read alone: the thread that feeds it computes, and others help. Texts that are read together are in
//! `ensemble`; the computation of both is in `together`.

use std::sync::Arc;

use super::Model;
use super::forward::WantedVectors;
use super::together::{ReadText, TextFeed, Workroom};

/// What has been read so far: the keys and values of every layer.
#[derive(Debug)]
pub struct TokenSession {
    model: Arc<Model>,
    text: ReadText,
    room: Workroom,
}

/// Why a session could not read on. It is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedError {
    /// The context is full.
    Full,
    /// Somebody asked to stop.
    Cancelled,
}

impl TokenSession {
    /// An empty session. Computes with up to `threads` threads.
    #[must_use]
    pub fn new(model: Arc<Model>, threads: usize) -> Self {
        let text = ReadText::new(&model);
        Self { model, text, room: Workroom::new(threads) }
    }

    /// What it has read.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.text.tokens
    }

    /// Forgets everything after the first `length` tokens.
    pub fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    /// Another session that has read the first `length` tokens of this one. What was computed of them is shared, not
    /// copied.
    #[must_use]
    pub fn fork(&self, length: usize) -> Self {
        let room = Workroom::new(self.room.threads());
        Self { model: Arc::clone(&self.model), text: self.text.fork(length), room }
    }

    /// Reads on and returns the logits after the last token, one per token of the vocabulary. `cancelled` is asked before
    /// each layer of each block of at most 64 tokens. A token that the vocabulary does not have reads as an empty one.
    /// Without tokens, the logits are those of the last time.
    pub fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        self.read(tokens, WantedVectors::Last, cancelled)?;
        Ok(self.text.logits(&self.model))
    }

    /// Reads on and returns how likely each token was after those before it, as a logarithm: one number less than there
    /// are tokens, because the first only stands before the others. The logits of [`feed`](Self::feed) stay those of its
    /// last time.
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
