//! A panic inside a run becomes a value, so that the caller still gets an envelope and the process lives on.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// Something panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

/// What a future gives, or the fact that it panicked. The panic's text stays in the log: it may quote data.
pub(crate) async fn catch<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    poll_fn(|context| {
        // After a panic the future is never polled again, so nobody sees a half-changed state.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
