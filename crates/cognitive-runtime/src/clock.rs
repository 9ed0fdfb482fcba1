//! The current time, for everything that expires. It advances evenly within a process, even if the system
//! clock is changed, and can be replaced in tests. (S-44)

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// A clock. Safe to share.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Reads the system time once, and advances it by a monotonic clock from then on.
    #[must_use]
    pub fn new() -> Self {
        let (wall, started) = (SystemTime::now(), Instant::now());
        Self::from_fn(move || wall.checked_add(started.elapsed()).unwrap_or(wall))
    }

    /// A clock that calls the given function.
    #[must_use]
    pub fn from_fn(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_never_runs_backwards_and_can_be_replaced() {
        let clock = Clock::new();
        let before = clock.now();
        assert!(clock.now() >= before);
        assert_eq!(Clock::from_fn(|| SystemTime::UNIX_EPOCH).now(), SystemTime::UNIX_EPOCH);
    }
}
