//! The timer of every surface: that of the tokio runtime which polls a run. Starts no thread. On another executor there is
//! none, and only providers end their own calls.

use std::future::pending;
use std::time::Duration;

use cognitive_contract::ports::{PortFuture, Timer};
use tokio::runtime::Handle;

/// Waits with tokio.
pub(crate) struct TokioTimer;

impl Timer for TokioTimer {
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()> {
        match Handle::try_current() {
            Ok(_) => Box::pin(tokio::time::sleep(time)),
            Err(_) => Box::pin(pending()),
        }
    }
}
