//! Waiting in tests: one deadline for everything that must happen, far beyond what a busy machine needs.

use std::thread;
use std::time::{Duration, Instant};

/// The time limit for an awaited event in tests. It only ends a test whose event never comes: an outcome must not
/// depend on it, and it must not replace a time limit of the product.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// The pause between two looks at a state that announces no change.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until a condition holds. Only for states that send no event, such as the length of a file that another process writes;
/// prefer a line, a channel or a condition variable.
///
/// # Panics
/// If the condition does not hold within [`PATIENCE`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited for {PATIENCE:?} in vain: {what}");
        // Yielding alone would take the processor from the process that is waited for.
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_returns_as_soon_as_the_condition_holds() {
        let mut looks = 0;
        wait_until("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }
}
