//! Detects clients that read too slowly: nothing at all for a while, or so little over minutes that they only hold a
//! connection and memory. Counts the bytes that the operating system accepts; independent of the transport.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The time that a client may be behind, as long as it reads something.
const WINDOW: Duration = Duration::from_mins(2);
/// The average pace of a client that is behind for longer, in bytes per second. At this pace a response of 5 MB takes
/// twenty minutes. Short responses fit into the buffers of the operating system and never put a client behind.
const MIN_PACE: u64 = 4 << 10;
/// A client without a blocked write for this long has caught up.
const CAUGHT_UP: Duration = Duration::from_secs(10);

/// The pace of one client.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The time in which the client has to read something.
    patience: Duration,
    /// The time since when the client is behind, and the bytes it has read since then.
    behind: Option<(Instant, u64)>,
    /// The time of the last write that succeeded after being blocked.
    eased: Option<Instant>,
    /// Runs while a write is blocked; when it elapses the client is too slow.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// Creates the pace of a client that has to read something within `patience`.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, behind: None, eased: None, waiting: None }
    }

    /// Handles the outcome of a write: progress, pending, or a timeout error.
    pub(crate) fn record_write(
        &mut self,
        context: &mut Context<'_>,
        tried: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = tried {
            self.record_progress(outcome.as_ref().map_or(0, |count| *count as u64));
            return Poll::Ready(outcome);
        }
        if self.waiting.is_none() {
            let until = self.write_deadline(Instant::now());
            self.waiting = Some(Box::pin(tokio::time::sleep_until(until)));
        }
        match self.waiting.as_mut().map(|waiting| waiting.as_mut().poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            _ => Poll::Pending,
        }
    }

    fn record_progress(&mut self, count: u64) {
        if let Some((_, taken)) = &mut self.behind {
            *taken += count;
        }
        if self.waiting.take().is_some() {
            self.eased = Some(Instant::now());
        }
    }

    /// Returns the deadline of a write that is blocked since `now`.
    fn write_deadline(&mut self, now: Instant) -> Instant {
        if self.eased.take().is_some_and(|eased| now - eased > CAUGHT_UP) {
            self.behind = None;
        }
        let (since, taken) = *self.behind.get_or_insert((now, 0));
        let earned = Duration::from_secs(taken / MIN_PACE);
        (now + self.patience).min(since + WINDOW.max(earned)).max(now)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::connection::Wire;
    use crate::connection_limit::AddressConnections;

    /// Returns how long a client stays connected that reads `count` bytes in each period of an endless response;
    /// `None` if it is still connected after an hour.
    async fn kept(count: usize, every: Duration) -> Option<Duration> {
        let (mut client, server) = tokio::io::duplex(1 << 10);
        let places = std::sync::Arc::new(Semaphore::new(1));
        let place = places.clone().try_acquire_owned().unwrap();
        let seat = AddressConnections::new(0).admit([127, 0, 0, 1].into()).unwrap();
        let mut wire = Wire::new(server, (place, seat), Duration::from_secs(30));
        let started = Instant::now();
        let serving = async { while wire.write_all(&[b'x'; 4_000]).await.is_ok() {} };
        let reading = async {
            let mut taken = vec![0; count];
            loop {
                tokio::time::sleep(every).await;
                if count > 0 && client.read_exact(&mut taken).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let both = async {
            tokio::select! { () = serving => {} () = reading => {} }
        };
        tokio::time::timeout(Duration::from_hours(1), both).await.is_ok().then(|| started.elapsed())
    }

    // S3: reading nothing has the same effect on every transport, since all of them use this type.
    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_let_go_after_half_a_minute() {
        assert_eq!(kept(0, Duration::from_secs(1)).await, Some(Duration::from_secs(30)));
    }

    // S12: a trickle counts as almost nothing.
    #[tokio::test(start_paused = true)]
    async fn who_takes_a_trickle_is_let_go_after_two_minutes() {
        let gone = kept(12_000, Duration::from_secs(24)).await.unwrap();
        assert!((120..=150).contains(&gone.as_secs()), "{gone:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_but_honest_reader_stays() {
        assert_eq!(kept(6_000, Duration::from_secs(1)).await, None);
        assert_eq!(kept(120_000, Duration::from_secs(20)).await, None);
    }
}
