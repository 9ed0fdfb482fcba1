//! Adapts the number of rows in flight to the service: one more while all is well, half as many after a rate
//! limit error. It drops by a tenth when answers take three times as long as at best. Waits for
//! `Retry-After`. The number stays between one and the caller's maximum.

use std::time::{Duration, Instant};

use cognitive_contract::lock::Lock;
use tokio::sync::Notify;
use tokio::time::timeout_at;

/// The initial number of rows in flight. Few enough for a service with a low rate limit; the number grows while
/// answers are fast.
const FIRST: f64 = 8.0;
/// An answer counts as slow if it takes longer than the best time by this factor, and also by this many
/// seconds.
const SLOWER: f64 = 3.0;
const IN_ANY_CASE: f64 = 0.25;
/// The pause after a rate limit error without `Retry-After`.
const UNTOLD: Duration = Duration::from_secs(1);
/// The longest pause that a service can request. Without it, a wrong header could stop the batch for days.
const LONGEST: Duration = Duration::from_mins(10);

/// Limits the number of rows in flight.
pub(crate) struct Tempo {
    most: f64,
    state: Lock<TempoState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct TempoState {
    limit: f64,
    in_flight: usize,
    /// True while the limit has never been too high, so that it may grow exponentially.
    is_first_climb: bool,
    /// No row starts before this time.
    paused_until: Option<Instant>,
    /// Requests that started before this time were sent under an older limit.
    lowered_at: Option<Instant>,
    /// The smoothed and the best response time, in seconds.
    usual: Option<f64>,
    best: Option<f64>,
    is_closed: bool,
}

/// The permission for one row in flight; dropping it frees the place.
pub(crate) struct TempoPass<'a>(&'a Tempo);

impl Drop for TempoPass<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.0.changed.notify_one();
    }
}

impl Tempo {
    /// Creates a limiter with this maximum. A steady one starts at the maximum.
    pub(crate) fn new(most: usize, is_steady: bool) -> Self {
        let most = f64::from(u32::try_from(most.max(1)).unwrap_or(u32::MAX));
        let limit = if is_steady { most } else { most.min(FIRST) };
        let state = TempoState { limit, is_first_climb: true, ..TempoState::default() };
        Self { most, state: Lock::new(state), changed: Notify::new() }
    }

    /// Waits until one more row may start; `None` after [`Tempo::close`].
    pub(crate) async fn pass(&self) -> Option<TempoPass<'_>> {
        loop {
            let changed = self.changed.notified();
            let paused = {
                let mut state = self.state.lock();
                if state.is_closed {
                    self.changed.notify_one();
                    return None;
                }
                let now = Instant::now();
                state.paused_until = state.paused_until.filter(|until| *until > now);
                if state.paused_until.is_none() && state.in_flight < whole_limit(state.limit) {
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

    /// Prevents further rows from starting.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Records the response time of a successful call, and adapts the limit.
    pub(crate) fn record_answer(&self, took: Duration) {
        let mut state = self.state.lock();
        let took = took.as_secs_f64();
        let usual = state.usual.map_or(took, |usual| usual + (took - usual) / 16.0);
        // The best time slowly increases: a service may become slower for reasons unrelated to our load.
        let best = state.best.map_or(usual, |best| (best * 1.0005).min(usual));
        (state.usual, state.best) = (Some(usual), Some(best));
        if usual > (best * SLOWER).max(best + IN_ANY_CASE) {
            Self::lower(&mut state, 0.9);
            state.usual = None;
        } else if whole_limit(state.limit) <= state.in_flight.saturating_add(1) {
            let more = if state.is_first_climb { 1.0 } else { 1.0 / state.limit };
            state.limit = (state.limit + more).min(self.most);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Records a rate limit error: lowers the limit and pauses.
    pub(crate) fn record_rate_limit(&self, began: Instant, retry_after: Option<Duration>) {
        let mut state = self.state.lock();
        // A request that started before the limit was lowered carries no new information.
        if state.lowered_at.is_none_or(|lowered| began >= lowered) {
            Self::lower(&mut state, 0.5);
        }
        let until = Instant::now() + retry_after.unwrap_or(UNTOLD).min(LONGEST);
        state.paused_until = Some(state.paused_until.map_or(until, |paused| paused.max(until)));
    }

    /// Lowers the limit because the reservations of all rows together do not fit. Returns whether other rows
    /// are in flight: only then can the row fit later.
    pub(crate) fn shrink_if_crowded(&self) -> bool {
        let mut state = self.state.lock();
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

    /// Returns the most rows that may ever be in flight.
    pub(crate) fn places(&self) -> usize {
        whole_limit(self.most)
    }

    /// Returns the rows in flight and the current limit.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.in_flight, whole_limit(state.limit))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count, from 1 up")]
fn whole_limit(limit: f64) -> usize {
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
            let (_, limit) = tempo.load();
            let passes = passes(&tempo, limit).await;
            tempo.record_answer(Duration::from_millis(100));
            drop(passes);
        }
        assert_eq!(tempo.load(), (0, 64));
        let began = Instant::now();
        tempo.record_rate_limit(began, Some(Duration::ZERO));
        assert_eq!(tempo.load().1, 32);
        // Other errors from the same time do not lower the limit again.
        tempo.record_rate_limit(began, Some(Duration::ZERO));
        assert_eq!(tempo.load().1, 32);
        let all = passes(&tempo, 32).await;
        for _ in 0..33 {
            tempo.record_answer(Duration::from_millis(100));
        }
        drop(all);
        assert_eq!(tempo.load().1, 33, "one more for a whole round");
    }

    #[tokio::test(start_paused = true)]
    async fn it_slows_down_when_answers_take_much_longer() {
        let tempo = Tempo::new(64, true);
        let all = passes(&tempo, 64).await;
        for _ in 0..50 {
            tempo.record_answer(Duration::from_millis(200));
        }
        assert_eq!(tempo.load().1, 64);
        for _ in 0..50 {
            tempo.record_answer(Duration::from_secs(2));
        }
        assert!(tempo.load().1 < 64, "{:?}", tempo.load());
        drop(all);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_crowded_shrinks_to_one_and_then_there_is_no_hope() {
        let tempo = Tempo::new(4, true);
        let mut all = passes(&tempo, 4).await;
        assert!(tempo.shrink_if_crowded());
        assert_eq!(tempo.load().1, 3);
        all.truncate(1);
        assert!(!tempo.shrink_if_crowded());
        tempo.close();
        assert!(tempo.pass().await.is_none());
    }
}
