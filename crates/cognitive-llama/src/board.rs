//! Where the threads of a prompt see how far the others are. Whoever has to wait sleeps: threads that spin take the
//! processor from the very thread that they wait for.

#![expect(clippy::indexing_slicing, reason = "a block knows its own number")]

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many layers of each block have their keys and values stored.
#[derive(Debug)]
pub(super) struct Board {
    state: Mutex<BoardState>,
    changed: Condvar,
}

#[derive(Debug)]
struct BoardState {
    /// Per block, the layers whose keys and values are there.
    stored: Vec<usize>,
    /// Blocks that are done.
    done: usize,
    stopped: bool,
}

impl Board {
    pub(super) fn new(blocks: usize) -> Self {
        let state = BoardState { stored: vec![0; blocks], done: 0, stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more layer of this block has its keys and values stored.
    pub(super) fn publish(&self, block: usize) {
        self.state().stored[block] += 1;
        self.changed.notify_all();
    }

    /// A block is done.
    pub(super) fn finish(&self) {
        self.state().done += 1;
        self.changed.notify_all();
    }

    /// Ends the waiting of all.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    /// Sleeps until these blocks have stored that many layers. Nothing if everything stops.
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

    /// Sleeps until all blocks are done. Nothing if everything stops.
    pub(super) fn wait_for_all(&self, cancelled: &dyn Fn() -> bool) -> Option<()> {
        self.wait(cancelled, |state| state.done == state.stored.len())
    }

    /// Each step of another thread wakes us, so `cancelled` is asked while we wait, too.
    fn wait(&self, cancelled: &dyn Fn() -> bool, ready: impl Fn(&BoardState) -> bool) -> Option<()> {
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

/// Stops everything if its thread dies, so that the others do not wait for it forever.
pub(super) struct StopOnPanic<'a>(pub(super) &'a Board);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Board, StopOnPanic};

    #[test]
    fn a_block_goes_on_once_all_before_it_are_as_far() {
        let board = Board::new(3);
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
        let board = Board::new(2);
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
