//! Runs a future that never waits. Saved replies and scripted models answer at once, so one poll is a whole run.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Returns the output of a future that is ready at the first poll.
///
/// # Panics
/// If the future waits.
#[expect(clippy::panic, reason = "in a test, a panic is the report")]
pub fn poll_now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future waits for something"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_is_returned() {
        assert_eq!(poll_now(async { 42 }), 42);
    }

    #[test]
    fn what_waits_is_a_panic() {
        assert!(std::panic::catch_unwind(|| poll_now(std::future::pending::<()>())).is_err());
    }
}
