//! The prefix cache. A module's instructions and examples are the same in every prompt, so they are read once. All
//! requests share them, including requests that arrive during the read. Keeps few prefixes, and none that is larger
//! than the limit for all of them together.

use std::sync::{Arc, Condvar, PoisonError};
use std::time::Duration;

use crate::model::{LanguageModel, ModelState, SharedReading};
use cognitive_contract::lock::Lock;
use cognitive_llama::FeedError;

/// The largest number of cached prefixes; the least recently used one is evicted first. Each request is compared with
/// all of them.
const MAX_KEPT: usize = 16;
/// The largest number of cached tokens in all. A token takes 25 to 57 kB.
const MAX_TOKENS: usize = 8_192;
/// The polling interval for cancellation while a request waits for another to read a prefix. A cancelled request ends
/// at most this much later.
const LOOK: Duration = Duration::from_millis(20);

/// The prefixes that have been read.
#[derive(Default)]
pub(crate) struct Beginnings {
    known: Lock<KnownBeginnings>,
    changed: Condvar,
}

#[derive(Default)]
struct KnownBeginnings {
    /// The most recently used one is last.
    read: Vec<Box<dyn SharedReading>>,
    /// The prefixes that are being read.
    being_read: Vec<Vec<u32>>,
}

impl Beginnings {
    /// Returns a text that starts with these tokens, the `fixed` part of a prompt. Nothing is read before the first
    /// request for logits, because an answer may not need the model.
    pub(crate) fn text(&self, fixed: &[u32], weights: &Arc<dyn LanguageModel>) -> PromptText<'_> {
        PromptText { beginnings: self, weights: Arc::clone(weights), fixed: fixed.to_vec(), read: None }
    }

    /// Returns a text that has read exactly these tokens.
    fn begin(
        &self,
        fixed: &[u32],
        weights: &Arc<dyn LanguageModel>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Box<dyn SharedReading>, FeedError> {
        let mut known = self.known.lock();
        loop {
            let found = known.longest(fixed);
            if let Some((at, length)) = found.filter(|(_, length)| *length == fixed.len()) {
                return Ok(known.fork(at, length));
            }
            if !known.being_read.iter().any(|other| other == fixed) {
                let text = match found {
                    Some((at, length)) => known.fork(at, length),
                    None => Arc::clone(weights).session(),
                };
                known.being_read.push(fixed.to_vec());
                drop(known);
                return self.read(text, fixed, stop);
            }
            if stop() {
                return Err(FeedError::Cancelled);
            }
            known = self.changed.wait_timeout(known, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn read(
        &self,
        mut text: Box<dyn SharedReading>,
        fixed: &[u32],
        stop: &dyn Fn() -> bool,
    ) -> Result<Box<dyn SharedReading>, FeedError> {
        let _reading = BeingRead { beginnings: self, fixed };
        let unread = fixed.get(text.tokens().len()..).unwrap_or_default();
        text.read(unread, stop)?;
        self.known.lock().keep(text.fork(fixed.len()));
        Ok(text)
    }
}

impl KnownBeginnings {
    /// Returns the text with the longest common prefix with these tokens, and the length of that prefix.
    fn longest(&self, tokens: &[u32]) -> Option<(usize, usize)> {
        let lengths = self.read.iter().map(|text| common(text.tokens(), tokens)).enumerate();
        lengths.max_by_key(|(_, length)| *length).filter(|(_, length)| *length > 0)
    }

    fn fork(&mut self, at: usize, length: usize) -> Box<dyn SharedReading> {
        let used = self.read.remove(at);
        let fork = used.fork(length);
        self.read.push(used);
        fork
    }

    fn keep(&mut self, text: Box<dyn SharedReading>) {
        if text.tokens().is_empty() || text.tokens().len() > MAX_TOKENS {
            return;
        }
        self.read.push(text);
        let tokens =
            |read: &[Box<dyn SharedReading>]| read.iter().map(|text| text.tokens().len()).sum::<usize>();
        while self.read.len() > MAX_KEPT || tokens(&self.read) > MAX_TOKENS {
            self.read.remove(0);
        }
    }
}

/// Notifies waiting requests that a read has ended, successfully or not.
struct BeingRead<'a> {
    beginnings: &'a Beginnings,
    fixed: &'a [u32],
}

impl Drop for BeingRead<'_> {
    fn drop(&mut self) {
        let mut known = self.beginnings.known.lock();
        known.being_read.retain(|other| other != self.fixed);
        drop(known);
        self.beginnings.changed.notify_all();
    }
}

/// A text that starts with the fixed part of a prompt.
pub(crate) struct PromptText<'a> {
    beginnings: &'a Beginnings,
    weights: Arc<dyn LanguageModel>,
    fixed: Vec<u32>,
    /// `None` until logits are requested.
    read: Option<Box<dyn SharedReading>>,
}

impl PromptText<'_> {
    /// Forgets all tokens after the common prefix with these tokens. The last token is always forgotten, because its
    /// logits are needed.
    pub(crate) fn rewind_to(&mut self, tokens: &[u32]) {
        let keep = common(self.tokens(), tokens).min(tokens.len().saturating_sub(1));
        self.truncate(keep);
    }

    fn start(&mut self, stop: &dyn Fn() -> bool) -> Result<&mut Box<dyn SharedReading>, FeedError> {
        let read = match self.read.take() {
            Some(read) => read,
            None => self.beginnings.begin(&self.fixed, &self.weights, stop)?,
        };
        Ok(self.read.insert(read))
    }
}

impl ModelState for PromptText<'_> {
    fn tokens(&self) -> &[u32] {
        self.read.as_ref().map_or(&self.fixed, |read| read.tokens())
    }

    fn truncate(&mut self, length: usize) {
        match &mut self.read {
            Some(read) => read.truncate(length),
            None => self.fixed.truncate(length),
        }
    }

    fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        self.start(cancelled)?.feed(tokens, cancelled)
    }

    fn likelihoods(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<f32>, FeedError> {
        self.start(cancelled)?.likelihoods(tokens, cancelled)
    }

    fn likelihoods_of_each(
        &mut self,
        texts: &[Vec<u32>],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, FeedError> {
        self.start(cancelled)?.likelihoods_of_each(texts, cancelled)
    }

    fn states(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<Vec<Vec<f32>>, FeedError> {
        self.start(cancelled)?.states(tokens, cancelled)
    }
}

/// Returns the length of the common prefix of two texts.
fn common(read: &[u32], prompt: &[u32]) -> usize {
    read.iter().zip(prompt).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::toy::Toy;

    fn tokens(text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    fn weights(toy: &Arc<Toy>) -> Arc<dyn LanguageModel> {
        Arc::<Toy>::clone(toy)
    }

    /// The number of tokens computed to start a text.
    fn cost(beginnings: &Beginnings, toy: &Arc<Toy>, fixed: &str) -> usize {
        let before = toy.computed.load(Ordering::SeqCst);
        let mut text = beginnings.text(&tokens(fixed), &weights(toy));
        assert_eq!((text.tokens(), toy.computed.load(Ordering::SeqCst)), (&*tokens(fixed), before));
        let end = [tokens(fixed), tokens("!")].concat();
        assert_eq!(text.feed(&tokens("!"), &|| false).unwrap().len(), toy.words.len());
        assert_eq!(text.tokens(), end);
        toy.computed.load(Ordering::SeqCst) - before - 1
    }

    #[test]
    fn the_fixed_part_is_read_once_and_modules_do_not_disturb_each_other() {
        let (toy, beginnings) = (Arc::new(Toy::default()), Beginnings::default());
        assert_eq!(cost(&beginnings, &toy, "module one: "), 12);
        assert_eq!(cost(&beginnings, &toy, "another module: "), 16);
        assert_eq!(cost(&beginnings, &toy, "module one: "), 0);
        assert_eq!(cost(&beginnings, &toy, "another module: "), 0);
        assert_eq!(cost(&beginnings, &toy, "module two: "), 5, "what is common is shared");
        assert_eq!(cost(&beginnings, &toy, ""), 0);
    }

    #[test]
    fn who_comes_while_a_beginning_is_read_waits_for_it_instead_of_reading_it_again() {
        let (reached, opened) = (mpsc::channel(), mpsc::channel::<()>());
        let (tell, wait) = (Lock::new(reached.0), Lock::new(opened.1));
        let gate = move |_| {
            tell.lock().send(()).unwrap();
            let _ = wait.lock().recv();
        };
        let toy = Arc::new(Toy { gate: Some(Box::new(gate)), ..Toy::default() });
        let beginnings = Beginnings::default();
        thread::scope(|scope| {
            let (toy, beginnings) = (&toy, &beginnings);
            let begin = move |stop: bool| {
                beginnings.begin(&tokens("module one: "), &weights(toy), &|| stop).map(drop)
            };
            let first = scope.spawn(move || begin(false));
            reached.1.recv().unwrap();
            let others: Vec<_> = (0..4).map(|_| scope.spawn(move || begin(false))).collect();
            assert_eq!(begin(true), Err(FeedError::Cancelled), "who waits may go");
            drop(opened.0);
            assert!(others.into_iter().chain([first]).all(|thread| thread.join().unwrap().is_ok()));
        });
        assert_eq!(toy.computed.load(Ordering::SeqCst), 12);
    }

    #[test]
    fn a_beginning_that_was_given_up_is_read_by_the_next() {
        let (toy, beginnings) = (Arc::new(Toy::default()), Beginnings::default());
        let stopped = beginnings.text(&tokens("module one: "), &weights(&toy)).feed(&[1], &|| true).map(drop);
        assert_eq!(stopped, Err(FeedError::Cancelled));
        assert_eq!(cost(&beginnings, &toy, "module one: "), 12);
    }

    #[test]
    fn few_beginnings_are_kept_and_none_that_is_too_large() {
        let (toy, beginnings) = (Arc::new(Toy { context: 100_000, ..Toy::default() }), Beginnings::default());
        for module in 0..MAX_KEPT + 4 {
            let name = u8::try_from(module).unwrap() + b'a';
            cost(&beginnings, &toy, &char::from(name).to_string().repeat(20));
            assert!(beginnings.known.lock().read.len() <= MAX_KEPT);
        }
        assert_eq!(cost(&beginnings, &toy, &"a".repeat(20)), 20, "the oldest is gone");
        let long = "long ".repeat(MAX_TOKENS / 5);
        cost(&beginnings, &toy, &long);
        assert!(beginnings.known.lock().read.len() < 3, "it takes nearly all the room");
        cost(&beginnings, &toy, &format!("{long}!!!"));
        assert_eq!(cost(&beginnings, &toy, &long), 0, "what is too large takes nobody's place");
    }

    #[test]
    fn what_is_not_common_is_read_again_and_always_the_last_token() {
        let (toy, beginnings) = (Arc::new(Toy::default()), Beginnings::default());
        let mut text = beginnings.text(&tokens("module: "), &weights(&toy));
        text.feed(&tokens("one and more"), &|| false).unwrap();
        text.rewind_to(&tokens("module: one and else"));
        assert_eq!(text.tokens(), tokens("module: one and "));
        text.rewind_to(&tokens("module: one"));
        assert_eq!(text.tokens(), tokens("module: on"));
    }
}
