//! The timer of tests, and the runtime that drives it.

use std::time::Duration;

use cognitive_contract::ports::{PortFuture, Timer};

/// Sleeps with tokio.
pub struct TokioTimer;

impl Timer for TokioTimer {
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Runs a future to the end without a time limit.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}
