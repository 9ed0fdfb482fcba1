//! A bounded thought before the answer: free text, bound by no grammar and never returned. It ends when the model ends
//! it, or at its limit. Then the closing mark is added to the context, and the contract binds the text after it. Turn
//! marks end a thought and never become part of it.

use crate::generate::Halt;
use crate::model::{ModelState, Vocabulary};
use crate::sample::Sampler;
use cognitive_llama::FeedError;
use toktrie::SimpleVob;

/// The markup that starts and ends thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThoughtForm {
    /// The start of the turn.
    pub opening: &'static str,
    /// The texts that end the thought. They are not part of it.
    pub ends: &'static [&'static str],
    /// The text between the thought and the answer.
    pub closing: &'static str,
}

/// Models that learned to think between marks.
pub(crate) const MARKED: ThoughtForm =
    ThoughtForm { opening: "<think>\n", ends: &["</think>"], closing: "\n</think>\n\n" };

/// Models that never learned it. They reason in prose if their turn starts like this. After that they start to write
/// the answer, and the contract applies from there.
pub(crate) const PROSE: ThoughtForm = ThoughtForm {
    opening: "Before I answer, I think about it step by step:\n",
    ends: &["```", "\n{", "{\"", "</think>"],
    closing: "\n\nThe answer as JSON:\n",
};

/// The room for opening and closing, in tokens; a token has at least one byte.
pub(crate) const MAX_MARKS: usize = 96;

/// The input of a thought.
pub(crate) struct ThoughtRequest<'a> {
    pub vocabulary: &'a dyn Vocabulary,
    /// The whole prompt with the opening; tokens that the session has already read are not read again.
    pub prompt: &'a [u32],
    pub form: ThoughtForm,
    /// The token limit.
    pub limit: usize,
    pub temperature: f64,
    pub seed: u64,
}

/// A finished thought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thought {
    /// The thought and its closing, to be read before the answer.
    pub tokens: Vec<u32>,
    /// The number of tokens that the model wrote.
    pub written: usize,
    /// True if the limit ended it.
    pub closed: bool,
}

/// Lets the model think. `stop` is checked once per token.
pub(crate) fn think(
    reading: &mut dyn ModelState,
    request: &ThoughtRequest<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Thought, Halt> {
    let vocabulary = request.vocabulary;
    let known = reading.tokens().len();
    let mut unread = request.prompt.get(known..).unwrap_or_default().to_vec();
    let mut sampler = Sampler::new(vocabulary.len(), request.temperature, request.seed);
    let mut text = ThoughtText::default();
    let mut written = 0;
    let closed = loop {
        if written >= request.limit {
            break true;
        }
        if stop() {
            return Err(Halt::Stopped);
        }
        let logits = match reading.feed(&unread, stop) {
            Ok(logits) => logits,
            Err(FeedError::Cancelled) => return Err(Halt::Stopped),
            Err(FeedError::Full) => break true,
        };
        // All tokens are allowed; there is no choice only if all logits are NaN.
        let chosen = sampler.choose_freely(logits, |_| true, || Err::<SimpleVob, _>(()));
        let Ok(Some(chosen)) = chosen else { break true };
        written += 1;
        if vocabulary.is_control(chosen.token) {
            break false;
        }
        let bytes = vocabulary.bytes(chosen.token);
        text.push(chosen.token, bytes);
        if text.end_at(request.form.ends) {
            break false;
        }
        sampler.remember(chosen.token, bytes);
        unread = vec![chosen.token];
    };
    Ok(Thought { tokens: text.finish(vocabulary, request.form.closing), written, closed })
}

/// The text of a thought, with the token of each part.
#[derive(Debug, Default)]
struct ThoughtText {
    tokens: Vec<u32>,
    /// The end of each token in the text.
    until: Vec<usize>,
    bytes: Vec<u8>,
}

impl ThoughtText {
    fn push(&mut self, token: u32, bytes: &[u8]) {
        self.tokens.push(token);
        self.bytes.extend_from_slice(bytes);
        self.until.push(self.bytes.len());
    }

    /// Returns whether the last token has completed one of these texts; if so, removes the text from there on.
    fn end_at(&mut self, ends: &[&str]) -> bool {
        let before = self.until.iter().rev().nth(1).copied().unwrap_or_default();
        let found = ends.iter().filter_map(|end| {
            // The match can start in an earlier token, but it ends in this one.
            let from = before.saturating_sub(end.len().saturating_sub(1));
            let tail = self.bytes.get(from..).unwrap_or_default();
            tail.windows(end.len()).position(|window| window == end.as_bytes()).map(|at| from + at)
        });
        let Some(first) = found.min() else { return false };
        self.bytes.truncate(first);
        true
    }

    /// Returns the tokens of whole characters, without trailing blanks, and of the closing. Complete tokens are kept,
    /// so that they are not read again.
    fn finish(mut self, vocabulary: &dyn Vocabulary, closing: &str) -> Vec<u32> {
        let whole = match std::str::from_utf8(&self.bytes) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.bytes.len(),
        };
        self.bytes.truncate(whole);
        let blanks = self.bytes.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.bytes.truncate(self.bytes.len() - blanks);
        let kept = self.until.iter().take_while(|until| **until <= self.bytes.len()).count();
        let read = kept.checked_sub(1).and_then(|last| self.until.get(last)).copied().unwrap_or_default();
        let mut rest = self.bytes.split_off(read);
        rest.extend_from_slice(closing.as_bytes());
        self.tokens.truncate(kept);
        self.tokens.extend(vocabulary.encode(&rest));
        self.tokens
    }
}

#[cfg(test)]
mod tests;
