//! Turns a panic inside a run into a value, so that the caller still gets an envelope and the process survives.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// The error of a future that panicked.
#[derive(Debug)]
pub(crate) struct PanicError;

/// Returns the output of a future, or an error if it panicked. The panic's text goes only to the log: it may quote
/// data.
pub(crate) async fn catch<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, PanicError> {
    poll_fn(|context| {
        // After a panic the future is never polled again, so no code sees a half-changed state.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(PanicError)),
        }
    })
    .await
}
