//! One at a time, and nobody waits for ever: a lock with a time limit, which the standard library does not have.
//! Guards no data of its own, and promises no order among those who wait.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The door before the connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionGate {
    taken: Mutex<bool>,
    free: Condvar,
}

/// The right to go through, until it is dropped.
#[derive(Debug)]
pub(crate) struct GatePass<'a>(&'a ConnectionGate);

impl ConnectionGate {
    /// Waits for a turn, but not longer than `patience`.
    pub(crate) fn enter(&self, patience: Duration) -> Option<GatePass<'_>> {
        // A panic elsewhere cannot leave a `bool` half written, so poison means nothing here.
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, _) = self
            .free
            .wait_timeout_while(taken, patience, |taken| *taken)
            .unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return None;
        }
        *taken = true;
        Some(GatePass(self))
    }
}

impl Drop for GatePass<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
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
