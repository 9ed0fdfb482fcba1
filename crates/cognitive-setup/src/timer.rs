//! The timer of every surface: the tokio runtime that polls a run. Starts no thread. On another executor there is no
//! timer, and only providers time out their calls.

use std::future::pending;
use std::time::Duration;

use cognitive_contract::ports::{PortFuture, Timer};
use tokio::runtime::Handle;

/// Sleeps on tokio.
pub(crate) struct TokioTimer;

impl Timer for TokioTimer {
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()> {
        match Handle::try_current() {
            Ok(_) => Box::pin(tokio::time::sleep(time)),
            Err(_) => Box::pin(pending()),
        }
    }
}
