//! A panic inside a run becomes a value, so that the caller still gets an envelope and the process lives on.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future, or the fact that it panicked. The panic's text stays in the log: it may quote data.
pub(crate) struct Caught<F>(Pin<Box<F>>);

/// Something panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Modules call modules: what stands on the heap does not stand on the stack of every level.
pub(crate) fn catch<F: Future>(future: F) -> Caught<F> {
    Caught(Box::pin(future))
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is dropped and never polled again, so nobody sees a half-changed state.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}
