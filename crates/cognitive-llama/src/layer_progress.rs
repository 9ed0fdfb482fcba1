//! The progress board of the threads that compute a prompt. Waiting threads sleep; spinning would take the processor
//! from the very thread that they wait for.

#![expect(clippy::indexing_slicing, reason = "a block knows its own number")]

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The number of layers of each block whose keys and values are stored.
#[derive(Debug)]
pub(super) struct LayerProgress {
    state: Mutex<LayerProgressState>,
    changed: Condvar,
}

#[derive(Debug)]
struct LayerProgressState {
    /// Per block, the number of layers whose keys and values are stored.
    stored: Vec<usize>,
    /// The number of finished blocks.
    done: usize,
    stopped: bool,
}

impl LayerProgress {
    pub(super) fn new(blocks: usize) -> Self {
        let state = LayerProgressState { stored: vec![0; blocks], done: 0, stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, LayerProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that one more layer of this block has stored its keys and values.
    pub(super) fn publish(&self, block: usize) {
        self.state().stored[block] += 1;
        self.changed.notify_all();
    }

    /// Records that a block is finished.
    pub(super) fn finish(&self) {
        self.state().done += 1;
        self.changed.notify_all();
    }

    /// Wakes all waiting threads and makes them stop.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    /// Sleeps until these blocks have stored that many layers. Returns `None` if the computation stops.
    pub(super) fn wait_for(
        &self,
        blocks: Range<usize>,
        layers: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<()> {
        if blocks.is_empty() {
            return Some(());
        }
        self.wait(cancelled, |state| state.stored[blocks.clone()].iter().all(|stored| *stored >= layers))
    }

    /// Sleeps until all blocks are finished. Returns `None` if the computation stops.
    pub(super) fn wait_for_all(&self, cancelled: &dyn Fn() -> bool) -> Option<()> {
        self.wait(cancelled, |state| state.done == state.stored.len())
    }

    /// Waits until `ready`. Each step of another thread wakes this one, so `cancelled` is checked during the wait as
    /// well.
    fn wait(&self, cancelled: &dyn Fn() -> bool, ready: impl Fn(&LayerProgressState) -> bool) -> Option<()> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            if ready(&state) {
                return Some(());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            if cancelled() {
                return None;
            }
        }
    }
}

/// Stops the computation if its thread panics, so that the others do not wait for it forever.
pub(super) struct StopOnPanic<'a>(pub(super) &'a LayerProgress);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LayerProgress, StopOnPanic};

    #[test]
    fn a_block_goes_on_once_all_before_it_are_as_far() {
        let board = LayerProgress::new(3);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| board.wait_for(0..2, 1, &|| false));
            board.publish(1);
            board.publish(0);
            assert_eq!(waiting.join().unwrap(), Some(()));
        });
        assert_eq!(board.wait_for(0..0, 9, &|| true), Some(()), "nobody is before the first");
    }

    #[test]
    fn a_thread_that_dies_wakes_those_that_wait_for_it() {
        let board = LayerProgress::new(2);
        std::thread::scope(|scope| {
            let dead = scope.spawn(|| {
                let _guard = StopOnPanic(&board);
                panic!("on purpose");
            });
            assert_eq!(board.wait_for(0..1, 1, &|| false), None);
            assert!(dead.join().is_err());
        });
    }
}
