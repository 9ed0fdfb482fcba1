//! A counting semaphore with a timeout, which the standard library does not have. Usually admits one thread at a
//! time. Guards no data and is not fair.

use std::sync::{Condvar, PoisonError};
use std::time::Duration;

use cognitive_contract::lock::Lock;

/// The semaphore in front of the connections.
#[derive(Debug)]
pub(crate) struct ConnectionGate {
    /// The number of free places.
    places: Lock<usize>,
    free: Condvar,
}

impl Default for ConnectionGate {
    fn default() -> Self {
        Self::new(1)
    }
}

/// A place that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct GatePass<'a>(&'a ConnectionGate);

impl ConnectionGate {
    /// Creates a semaphore with this many places.
    pub(crate) fn new(places: usize) -> Self {
        Self { places: Lock::new(places), free: Condvar::new() }
    }

    /// Waits for a place, at most for `patience`.
    pub(crate) fn enter(&self, patience: Duration) -> Option<GatePass<'_>> {
        let places = self.places.lock();
        let (mut places, _) = self
            .free
            .wait_timeout_while(places, patience, |places| *places == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *places = places.checked_sub(1)?;
        Some(GatePass(self))
    }
}

impl Drop for GatePass<'_> {
    fn drop(&mut self) {
        *self.0.places.lock() += 1;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    #[test]
    fn one_at_a_time_and_no_endless_wait() {
        let gate = ConnectionGate::default();
        let first = gate.enter(Duration::ZERO).unwrap();
        assert!(gate.enter(Duration::from_millis(20)).is_none());
        drop(first);
        assert!(gate.enter(Duration::ZERO).is_some());
    }

    #[test]
    fn so_many_at_a_time() {
        let gate = ConnectionGate::new(2);
        let first = gate.enter(Duration::ZERO);
        let _second = gate.enter(Duration::ZERO).unwrap();
        assert!(first.is_some() && gate.enter(Duration::ZERO).is_none());
        drop(first);
        assert!(gate.enter(Duration::ZERO).is_some());
    }

    #[test]
    fn who_waits_is_woken() {
        let gate = ConnectionGate::default();
        let first = gate.enter(Duration::ZERO).unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| gate.enter(Duration::from_mins(1)).is_some());
            drop(first);
            assert!(second.join().unwrap());
        });
    }

    #[test]
    fn a_panic_gives_the_turn_back() {
        let gate = ConnectionGate::default();
        let fall = catch_unwind(AssertUnwindSafe(|| {
            let _turn = gate.enter(Duration::ZERO);
            panic!("on purpose");
        }));
        assert!(fall.is_err());
        assert!(gate.enter(Duration::ZERO).is_some());
    }
}
