//! A one-shot channel that reports the outcome of a write to an async waiter, without blocking a thread.

use std::task::{Poll, Waker};

use cognitive_contract::lock::Lock;

/// The outcome for one waiter.
#[derive(Debug)]
pub(crate) struct Acknowledgement<T>(Lock<(Option<T>, Option<Waker>)>);

impl<T> Default for Acknowledgement<T> {
    fn default() -> Self {
        Self(Lock::new((None, None)))
    }
}

impl<T> Acknowledgement<T> {
    /// Sets the outcome and wakes the waiter.
    pub(crate) fn give(&self, outcome: T) {
        let mut state = self.0.lock();
        state.0 = Some(outcome);
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Resolves with the outcome.
    pub(crate) async fn wait(&self) -> T {
        std::future::poll_fn(|context| {
            let mut state = self.0.lock();
            match state.0.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    state.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
