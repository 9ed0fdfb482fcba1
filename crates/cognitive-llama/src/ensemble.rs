//! Batched reading of several texts. A thread feeds each text and waits. If no step is running, a waiting thread
//! computes one step for all waiting texts. So every weight is read once for all of them. Texts join and leave between
//! steps. The logits of a text do not depend on the batch. Long texts are read in parts, so that other texts get their
//! tokens in between.
//!
//! There is no scheduler thread: a single text is computed immediately, on the calling thread and with the help of all
//! cores.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Model;
use super::batch_step::{BLOCK, ReadText, StepThreads, TextFeed};
use super::forward::WantedVectors;
use super::session::FeedError;

/// Texts with at most this many tokens left are never read in parts.
const SHORT: usize = 16;
/// The number of tokens of long texts per thread in a step that short texts share. It is half of a block, so that short
/// texts wait less.
const BESIDE_OTHERS: usize = BLOCK / 2;
/// The longest wait for texts that are about to return with their next token, as a fraction of a step.
const PATIENCE: f64 = 0.5;

/// A model that reads several texts in batches.
#[derive(Debug)]
pub struct Ensemble {
    model: Arc<Model>,
    threads: usize,
    room: Mutex<StepThreads>,
    stand: Mutex<EnsembleState>,
    changed: Condvar,
}

/// The waiting and finished texts.
#[derive(Debug, Default)]
struct EnsembleState {
    /// The texts to be read, in order of arrival.
    waiting: Vec<ReadTicket>,
    /// Finished texts that have not been fetched yet; `None` if the computation panicked.
    done: HashMap<u64, Option<ReadTicket>>,
    /// Texts to be cancelled after the current step.
    leaving: Vec<u64>,
    is_computing: bool,
    /// The number of texts that were answered in this round and have not returned yet.
    away: usize,
    /// The end of the wait for them.
    patience: Option<Instant>,
    /// Counts the waits that timed out. Texts from earlier rounds are not waited for: a text may stay in a cache and
    /// never be fed again.
    round: u64,
    next_number: u64,
}

/// A text and the tokens that it reads next.
#[derive(Debug)]
struct ReadTicket {
    number: u64,
    text: ReadText,
    tokens: Vec<u32>,
    /// The number of tokens that have been read.
    read: usize,
    wanted: WantedVectors,
    /// Likelihoods or states, see [`TextFeed`].
    found: Vec<f32>,
    /// The round in which it finished, if others wait for its return.
    away_since: Option<u64>,
}

impl ReadTicket {
    fn remaining_tokens(&self) -> usize {
        self.tokens.len() - self.read
    }

    /// Returns its part of the next step.
    fn feed(&mut self, count: usize) -> TextFeed<'_> {
        let is_end = count == self.remaining_tokens();
        let wanted = if is_end { self.wanted } else { self.wanted.for_inner_part() };
        let tokens = self.tokens.get(self.read..).unwrap_or_default();
        TextFeed { text: &mut self.text, tokens, count, wanted, found: Vec::new() }
    }
}

impl Ensemble {
    /// Creates an ensemble that computes with up to `threads` threads, regardless of the number of texts.
    #[must_use]
    pub fn new(model: Arc<Model>, threads: usize) -> Self {
        let room = StepThreads::new(threads);
        Self {
            model,
            threads: room.threads(),
            room: Mutex::new(room),
            stand: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Creates an empty text.
    #[must_use]
    pub fn session(self: &Arc<Self>) -> EnsembleSession {
        EnsembleSession { ensemble: Arc::clone(self), text: ReadText::new(&self.model), away_since: None }
    }

    /// The model of the ensemble.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    fn stand(&self) -> MutexGuard<'_, EnsembleState> {
        // The state is consistent even after a panic: nothing is computed while the lock is held.
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a text is read to its end or cancelled. Computes steps for all texts whenever no other thread does.
    fn serve(&self, number: u64, cancelled: &dyn Fn() -> bool) -> ReadTicket {
        let mut stand = self.stand();
        loop {
            match stand.done.remove(&number) {
                Some(Some(ticket)) => return ticket,
                Some(None) => {
                    drop(stand);
                    resume_unwind(Box::new("a step of several jobs failed"));
                }
                None => {}
            }
            if cancelled() {
                stand.leave(number);
                if stand.done.contains_key(&number) {
                    continue;
                }
            }
            let wait =
                if stand.is_computing { Some(None) } else { stand.patience_left(Instant::now()).map(Some) };
            stand = match wait {
                Some(None) => self.changed.wait(stand).unwrap_or_else(PoisonError::into_inner),
                Some(Some(left)) => {
                    self.changed.wait_timeout(stand, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.lead(stand, number, cancelled),
            };
        }
    }

    /// Computes one step for all waiting texts.
    fn lead<'a>(
        &'a self,
        mut stand: MutexGuard<'a, EnsembleState>,
        number: u64,
        cancelled: &dyn Fn() -> bool,
    ) -> MutexGuard<'a, EnsembleState> {
        let mut drawn = stand.draw(self.threads);
        stand.is_computing = true;
        drop(stand);
        let began = Instant::now();
        let is_alone = drawn.iter().all(|(ticket, _)| ticket.number == number);
        // A single text may be cancelled within a step. With several, the others would lose their results.
        let stop: &dyn Fn() -> bool = if is_alone { cancelled } else { &|| false };
        let read = catch_unwind(AssertUnwindSafe(|| self.compute(&mut drawn, stop)));
        let mut stand = self.stand();
        stand.is_computing = false;
        match read {
            Ok(_) => stand.put(drawn),
            Err(_) => stand.done.extend(drawn.into_iter().map(|(ticket, _)| (ticket.number, None))),
        }
        stand.patience = Instant::now().checked_add(began.elapsed().mul_f64(PATIENCE));
        self.changed.notify_all();
        stand
    }

    fn compute(&self, drawn: &mut [(ReadTicket, usize)], stop: &dyn Fn() -> bool) -> Option<()> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let mut feeds: Vec<TextFeed<'_>> =
            drawn.iter_mut().map(|(ticket, count)| ticket.feed(*count)).collect();
        room.read(&self.model, &mut feeds, stop)?;
        let found: Vec<Vec<f32>> = feeds.into_iter().map(|feed| feed.found).collect();
        for ((ticket, count), found) in drawn.iter_mut().zip(found) {
            ticket.read += *count;
            ticket.found.extend(found);
        }
        Some(())
    }
}

impl EnsembleState {
    /// Appends a text to the queue and returns its number.
    fn submit(&mut self, text: ReadText, tokens: Vec<u32>, wanted: WantedVectors) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let found = Vec::new();
        self.waiting.push(ReadTicket { number, text, tokens, read: 0, wanted, found, away_since: None });
        number
    }

    /// Cancels a text: a waiting one at once, one in a running step after that step.
    fn leave(&mut self, number: u64) {
        match self.waiting.iter().position(|ticket| ticket.number == number) {
            Some(at) => {
                let ticket = self.waiting.remove(at);
                self.finish(ticket);
            }
            None if !self.leaving.contains(&number) => self.leaving.push(number),
            None => {}
        }
    }

    fn finish(&mut self, mut ticket: ReadTicket) {
        // Texts that requested no vectors have nothing to choose from, so they may not return soon.
        if ticket.wanted != WantedVectors::Nothing {
            self.away += 1;
            ticket.away_since = Some(self.round);
        }
        self.done.insert(ticket.number, Some(ticket));
    }

    /// Records that a text of this round has returned or will not return.
    fn welcome(&mut self, away_since: Option<u64>) {
        if away_since == Some(self.round) {
            self.away = self.away.saturating_sub(1);
        }
    }

    /// Returns the time left to wait for returning texts; `None` if there are none left.
    fn patience_left(&mut self, now: Instant) -> Option<Duration> {
        if self.away == 0 {
            return None;
        }
        let left = self.patience.map(|until| until.saturating_duration_since(now));
        let left = left.filter(|left| !left.is_zero());
        if left.is_none() {
            self.away = 0;
            self.round += 1;
        }
        left
    }

    /// Takes the texts of the next step, each with its number of tokens. Short texts are read completely, long texts as
    /// far as there is room.
    fn draw(&mut self, threads: usize) -> Vec<(ReadTicket, usize)> {
        let is_short = |ticket: &ReadTicket| ticket.remaining_tokens() <= SHORT;
        let per_thread = if self.waiting.iter().any(is_short) { BESIDE_OTHERS } else { BLOCK };
        let mut room = per_thread * threads;
        let mut drawn = Vec::new();
        for ticket in std::mem::take(&mut self.waiting) {
            let count = if is_short(&ticket) {
                ticket.remaining_tokens()
            } else {
                ticket.remaining_tokens().min(room)
            };
            if !is_short(&ticket) {
                room -= count;
            }
            if count > 0 {
                drawn.push((ticket, count));
            } else {
                self.waiting.push(ticket);
            }
        }
        drawn
    }

    /// Puts the texts of a step back. Finished texts are done; the others go before texts that arrived later.
    fn put(&mut self, drawn: Vec<(ReadTicket, usize)>) {
        let later = std::mem::take(&mut self.waiting);
        for (ticket, _) in drawn {
            let leaves = self.leaving.iter().position(|number| *number == ticket.number);
            if let Some(at) = leaves {
                self.leaving.swap_remove(at);
            }
            if leaves.is_some() || ticket.remaining_tokens() == 0 {
                self.finish(ticket);
            } else {
                self.waiting.push(ticket);
            }
        }
        self.waiting.extend(later);
    }
}

/// A text that is read in a batch. It is fed like a [`TokenSession`](super::TokenSession), with the same results.
#[derive(Debug)]
pub struct EnsembleSession {
    ensemble: Arc<Ensemble>,
    text: ReadText,
    /// The round since which others wait for its return.
    away_since: Option<u64>,
}

impl EnsembleSession {
    /// The tokens that it has read.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.text.tokens
    }

    /// Forgets everything after the first `length` tokens.
    pub fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    /// Creates another text that starts with the first `length` tokens of this one. Their keys and values are shared,
    /// not copied.
    #[must_use]
    pub fn fork(&self, length: usize) -> Self {
        Self { ensemble: Arc::clone(&self.ensemble), text: self.text.fork(length), away_since: None }
    }

    /// Announces that this text will not be fed for a while, so that no step waits for it.
    pub fn pause(&mut self) {
        if let Some(since) = self.away_since.take() {
            self.ensemble.stand().welcome(Some(since));
            self.ensemble.changed.notify_all();
        }
    }

    /// Reads the tokens and returns the logits after the last one. `cancelled` is checked between steps, and before
    /// each layer if this is the only text.
    pub fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        self.advance(tokens, WantedVectors::Last, cancelled)?;
        Ok(self.text.logits(&self.ensemble.model))
    }

    /// Reads the tokens and returns the log-likelihood of each token but the first, given those before it.
    pub fn likelihoods(
        &mut self,
        tokens: &[u32],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, FeedError> {
        self.advance(tokens, WantedVectors::All, cancelled)
    }

    /// Returns the log-likelihood of each token but the first of each of these texts, as separate continuations of this
    /// one. All are read in one batch, so that the weights are read once. This text does not change.
    pub fn likelihoods_of_each(
        &mut self,
        texts: &[Vec<u32>],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, FeedError> {
        let longest = texts.iter().map(Vec::len).max().unwrap_or_default();
        self.text.check_room(&self.ensemble.model, longest)?;
        let length = self.text.tokens.len();
        let mut stand = self.ensemble.stand();
        stand.welcome(self.away_since.take());
        let mut submit = |tokens: &Vec<u32>| {
            let wanted = WantedVectors::All;
            (!tokens.is_empty()).then(|| stand.submit(self.text.fork(length), tokens.clone(), wanted))
        };
        let numbers: Vec<Option<u64>> = texts.iter().map(&mut submit).collect();
        drop(stand);
        let mut found = Vec::with_capacity(texts.len());
        let mut is_whole = true;
        for number in numbers {
            let Some(number) = number else {
                found.push(Vec::new());
                continue;
            };
            let ticket = self.ensemble.serve(number, cancelled);
            is_whole &= ticket.remaining_tokens() == 0;
            // One of them represents all that were read: only this session will return.
            let before = std::mem::replace(&mut self.away_since, ticket.away_since);
            self.ensemble.stand().welcome(before);
            found.push(ticket.found);
        }
        if is_whole { Ok(found) } else { Err(FeedError::Cancelled) }
    }

    /// Reads the tokens and returns the hidden state of the last one after each layer. It represents the text before
    /// any next token is predicted. Returns nothing if there are no tokens.
    pub fn states(
        &mut self,
        tokens: &[u32],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, FeedError> {
        let found = self.advance(tokens, WantedVectors::States, cancelled)?;
        Ok(found.chunks_exact(self.ensemble.model.shape.width).map(<[f32]>::to_vec).collect())
    }

    /// Reads the tokens without computing logits. [`feed`](Self::feed) without tokens still returns the logits of the
    /// last call.
    pub fn read(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<(), FeedError> {
        self.advance(tokens, WantedVectors::Nothing, cancelled).map(drop)
    }

    fn advance(
        &mut self,
        tokens: &[u32],
        wanted: WantedVectors,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, FeedError> {
        self.text.check_room(&self.ensemble.model, tokens.len())?;
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.text.tokens.len();
        let text = std::mem::replace(&mut self.text, ReadText::new(&self.ensemble.model));
        let mut stand = self.ensemble.stand();
        let number = stand.submit(text, tokens.to_vec(), wanted);
        stand.welcome(self.away_since.take());
        drop(stand);
        let ticket = self.ensemble.serve(number, cancelled);
        self.away_since = ticket.away_since;
        let left = ticket.remaining_tokens();
        self.text = ticket.text;
        if left > 0 {
            self.text.truncate(before);
            return Err(FeedError::Cancelled);
        }
        Ok(ticket.found)
    }
}

impl Drop for EnsembleSession {
    fn drop(&mut self) {
        self.pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Otherwise a text that stays in a cache after it was read would cost all others half a step, each time.
    #[test]
    fn nobody_waits_twice_for_a_text_that_does_not_come_back() {
        let now = Instant::now();
        let soon = now.checked_add(Duration::from_secs(1));
        let mut stand = EnsembleState { away: 2, patience: soon, ..EnsembleState::default() };
        assert!(stand.patience_left(now).is_some());
        stand.welcome(Some(0));
        assert_eq!(stand.away, 1);
        stand.patience = Some(now);
        assert_eq!(stand.patience_left(now), None, "it was waited for in vain");
        stand.patience = soon;
        assert_eq!(stand.patience_left(now), None, "and not again");
        stand.away = 1;
        stand.welcome(Some(0));
        assert_eq!(stand.away, 1, "who comes late is nobody that this round waits for");
    }
}
