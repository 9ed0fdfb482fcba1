//! An end to waiting, for a crate without timers: a thread that sleeps until it is told not to, or rings.
//! There is none for what is ready at once, as most tools are.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

/// Waits for a future, but no longer than this. `None` drops it.
pub(crate) async fn within<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut alarm: Option<Alarm> = None;
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        match &alarm {
            Some(alarm) if alarm.has_rung(context.waker()) => Poll::Ready(None),
            Some(_) => Poll::Pending,
            // Without a thread nobody would end it, so it ends now.
            None => match Alarm::set(time, context.waker().clone()) {
                Some(set) => {
                    alarm = Some(set);
                    Poll::Pending
                }
                None => Poll::Ready(None),
            },
        }
    })
    .await
}

/// Rings once, unless it is dropped before.
struct Alarm(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    over: Condvar,
}

struct State {
    rung: bool,
    dropped: bool,
    waker: Waker,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alarm {
    fn set(time: Duration, waker: Waker) -> Option<Self> {
        let state = Mutex::new(State { rung: false, dropped: false, waker });
        let shared = Arc::new(Shared { state, over: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let ring = move || {
            let waits = theirs.over.wait_timeout_while(theirs.lock(), time, |state| !state.dropped);
            let (mut state, _) = waits.unwrap_or_else(PoisonError::into_inner);
            if !state.dropped {
                state.rung = true;
                let waker = state.waker.clone();
                drop(state);
                waker.wake();
            }
        };
        thread::Builder::new().name("cogn-alarm".to_owned()).spawn(ring).ok()?;
        Some(Self(shared))
    }

    /// Whether it is over; if not, who is to be woken.
    fn has_rung(&self, waker: &Waker) -> bool {
        let mut state = self.0.lock();
        state.waker.clone_from(waker);
        state.rung
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.lock().dropped = true;
        self.0.over.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Wake};

    use super::*;

    /// Parks until woken.
    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }

    #[test]
    fn what_is_ready_counts_and_what_never_is_ends() {
        assert_eq!(block_on(within(Duration::ZERO, ready(1))), Some(1));
        assert_eq!(block_on(within(Duration::from_millis(1), pending::<()>())), None);
    }

    #[test]
    fn what_becomes_ready_later_counts() {
        let mut polls = 0;
        let later = poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 3 { Poll::Ready(polls) } else { Poll::Pending }
        });
        assert_eq!(block_on(within(Duration::from_mins(1), later)), Some(3));
    }
}
