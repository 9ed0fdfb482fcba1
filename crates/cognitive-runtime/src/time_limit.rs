//! Timeouts: drops a future when its time is up. Reads no clock and starts no thread; the host's timer waits. It is
//! started only for futures that are not ready at once; most tools are.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::host::Host;

/// Waits for a future, but no longer than `time`. `None` means timeout; the future is dropped.
pub(crate) async fn with_time_limit<F: Future>(host: &Host, time: Duration, future: F) -> Option<F::Output> {
    let (mut future, mut time_up) = (pin!(future), pin!(sleep(host, time)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => time_up.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Resolves when this time has passed; never for a host without a timer.
pub(crate) async fn sleep(host: &Host, time: Duration) {
    match &host.timer {
        Some(timer) => timer.sleep(time).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use cognitive_contract::ports::{ModuleSource, PortFuture, Timer};
    use cognitive_contract::{Failure, Module};

    use super::*;
    use crate::Replay;

    struct NoModules;

    impl ModuleSource for NoModules {
        fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
            Err(Failure::module_invalid(name))
        }
    }

    /// A timer that fires at the second poll.
    struct Short;

    impl Timer for Short {
        fn sleep(&self, _: Duration) -> PortFuture<'_, ()> {
            let mut looks = 0;
            Box::pin(poll_fn(move |_| {
                looks += 1;
                if looks == 2 { Poll::Ready(()) } else { Poll::Pending }
            }))
        }
    }

    /// The number of polls that a future takes, and its output.
    fn polled<T>(future: impl Future<Output = T>) -> (usize, T) {
        let mut future = pin!(future);
        let ready =
            (1..10).find_map(|polls| match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(output) => Some((polls, output)),
                Poll::Pending => None,
            });
        ready.unwrap()
    }

    #[test]
    fn what_is_ready_counts_and_what_never_is_ends() {
        let mut host = Host::new(Arc::new(NoModules), Arc::new(Replay::text("")));
        assert_eq!(polled(with_time_limit(&host, Duration::ZERO, ready(1))), (1, Some(1)));
        host.timer = Some(Arc::new(Short));
        assert_eq!(polled(with_time_limit(&host, Duration::from_millis(1), pending::<()>())), (2, None));
        // A future that becomes ready at the timeout counts.
        let mut looks = 0;
        let later = poll_fn(|_| {
            looks += 1;
            if looks == 2 { Poll::Ready(looks) } else { Poll::Pending }
        });
        assert_eq!(polled(with_time_limit(&host, Duration::from_mins(1), later)), (2, Some(2)));
    }
}
