//! How many rows go on at once: one more while all is well, half as many after a service said that there were too many, a
//! tenth fewer when answers take three times as long as they did. `Retry-After` is waited for. Never more than the caller
//! allows, never fewer than one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout_at;

/// How many rows begin with.
const FIRST: f64 = 8.0;
/// How much longer than at best an answer may take before that counts as too many, and how much longer in any case.
const SLOWER: f64 = 3.0;
const IN_ANY_CASE: f64 = 0.25;
/// How long is waited after a refusal that does not say how long.
const UNTOLD: Duration = Duration::from_secs(1);
/// The longest that is waited because a service says so.
const LONGEST: Duration = Duration::from_mins(10);

/// Lets rows begin.
pub(crate) struct Tempo {
    most: f64,
    state: Mutex<TempoState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct TempoState {
    limit: f64,
    in_flight: usize,
    /// Whether the limit has never been too high, so that it may double.
    is_first_climb: bool,
    /// Nothing begins before.
    paused_until: Option<Instant>,
    /// What was begun before this was judged by an older limit.
    lowered_at: Option<Instant>,
    /// Smoothed time of an answer now, and at best, in seconds.
    usual: Option<f64>,
    best: Option<f64>,
    is_closed: bool,
}

/// Leave to go on with one row.
pub(crate) struct TempoPass<'a>(&'a Tempo);

impl Drop for TempoPass<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.0.changed.notify_one();
    }
}

impl Tempo {
    /// With so many rows at most. A tempo that is steady begins with all of them.
    pub(crate) fn new(most: usize, is_steady: bool) -> Self {
        let most = f64::from(u32::try_from(most.max(1)).unwrap_or(u32::MAX));
        let limit = if is_steady { most } else { most.min(FIRST) };
        let state = TempoState { limit, is_first_climb: true, ..TempoState::default() };
        Self { most, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Waits until one more row may begin; `None` when no more rows are to begin.
    pub(crate) async fn pass(&self) -> Option<TempoPass<'_>> {
        loop {
            let changed = self.changed.notified();
            let paused = {
                let mut state = self.lock();
                if state.is_closed {
                    self.changed.notify_one();
                    return None;
                }
                let now = Instant::now();
                state.paused_until = state.paused_until.filter(|until| *until > now);
                if state.paused_until.is_none() && state.in_flight < whole(state.limit) {
                    state.in_flight += 1;
                    return Some(TempoPass(self));
                }
                state.paused_until
            };
            match paused {
                Some(until) => drop(timeout_at(until.into(), changed).await),
                None => changed.await,
            }
        }
    }

    /// Lets nothing begin any more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// A model answered after this time.
    pub(crate) fn answered(&self, took: Duration) {
        let mut state = self.lock();
        let took = took.as_secs_f64();
        let usual = state.usual.map_or(took, |usual| usual + (took - usual) / 16.0);
        // What was best is slowly forgotten: a service may become slower for reasons that are not ours.
        let best = state.best.map_or(usual, |best| (best * 1.0005).min(usual));
        (state.usual, state.best) = (Some(usual), Some(best));
        if usual > (best * SLOWER).max(best + IN_ANY_CASE) {
            Self::lower(&mut state, 0.9);
            state.usual = None;
        } else if whole(state.limit) <= state.in_flight.saturating_add(1) {
            let more = if state.is_first_climb { 1.0 } else { 1.0 / state.limit };
            state.limit = (state.limit + more).min(self.most);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// A service refused a request because there were too many.
    pub(crate) fn refused(&self, began: Instant, retry_after: Option<Duration>) {
        let mut state = self.lock();
        // A request that was under way when the limit was lowered says nothing new.
        if state.lowered_at.is_none_or(|lowered| began >= lowered) {
            Self::lower(&mut state, 0.5);
        }
        let until = Instant::now() + retry_after.unwrap_or(UNTOLD).min(LONGEST);
        state.paused_until = Some(state.paused_until.map_or(until, |paused| paused.max(until)));
    }

    /// There is room for fewer, because of what all of them may need together. Says whether others are under way besides the
    /// one that asks; there is hope as long as there are.
    pub(crate) fn crowded(&self) -> bool {
        let mut state = self.lock();
        let others = state.in_flight.saturating_sub(1);
        state.limit = state.limit.min(f64::from(u32::try_from(others.max(1)).unwrap_or(u32::MAX)));
        state.is_first_climb = false;
        others > 0
    }

    fn lower(state: &mut TempoState, share: f64) {
        state.limit = (state.limit * share).max(1.0);
        state.is_first_climb = false;
        state.lowered_at = Some(Instant::now());
    }

    /// How many go on, and how many may.
    pub(crate) fn shown(&self) -> (usize, usize) {
        let state = self.lock();
        (state.in_flight, whole(state.limit))
    }

    fn lock(&self) -> MutexGuard<'_, TempoState> {
        // Every change is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count, from 1 up")]
fn whole(limit: f64) -> usize {
    limit.max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passes(tempo: &Tempo, count: usize) -> Vec<TempoPass<'_>> {
        let mut passes = Vec::new();
        for _ in 0..count {
            passes.push(tempo.pass().await.unwrap());
        }
        passes
    }

    #[tokio::test(start_paused = true)]
    async fn it_climbs_while_all_is_well_and_halves_when_there_are_too_many() {
        let tempo = Tempo::new(64, false);
        for _ in 0..100 {
            let (_, limit) = tempo.shown();
            let passes = passes(&tempo, limit).await;
            tempo.answered(Duration::from_millis(100));
            drop(passes);
        }
        assert_eq!(tempo.shown(), (0, 64));
        let began = Instant::now();
        tempo.refused(began, Some(Duration::ZERO));
        assert_eq!(tempo.shown().1, 32);
        // The others that were under way with it change nothing.
        tempo.refused(began, Some(Duration::ZERO));
        assert_eq!(tempo.shown().1, 32);
        let all = passes(&tempo, 32).await;
        for _ in 0..33 {
            tempo.answered(Duration::from_millis(100));
        }
        drop(all);
        assert_eq!(tempo.shown().1, 33, "one more for a whole round");
    }

    #[tokio::test(start_paused = true)]
    async fn it_slows_down_when_answers_take_much_longer() {
        let tempo = Tempo::new(64, true);
        let all = passes(&tempo, 64).await;
        for _ in 0..50 {
            tempo.answered(Duration::from_millis(200));
        }
        assert_eq!(tempo.shown().1, 64);
        for _ in 0..50 {
            tempo.answered(Duration::from_secs(2));
        }
        assert!(tempo.shown().1 < 64, "{:?}", tempo.shown());
        drop(all);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_crowded_shrinks_to_one_and_then_there_is_no_hope() {
        let tempo = Tempo::new(4, true);
        let mut all = passes(&tempo, 4).await;
        assert!(tempo.crowded());
        assert_eq!(tempo.shown().1, 3);
        all.truncate(1);
        assert!(!tempo.crowded());
        tempo.close();
        assert!(tempo.pass().await.is_none());
    }
}
