//! How fast a client takes what it is sent, and when that is too slow: nothing at all for a while, or so little over minutes
//! that it only keeps its place and its memory. Counts what the system takes for it; knows no transport.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// How long a client may be behind whatever it takes, as long as it takes something.
const WINDOW: Duration = Duration::from_mins(2);
/// What a client that is behind for longer has to take on average, in bytes per second. An answer of 5 MB then takes
/// twenty minutes; short ones fit into the buffers of the system, and nobody is ever behind with them.
const MIN_PACE: u64 = 4 << 10;
/// A client that was not waited for in so long has caught up.
const CAUGHT_UP: Duration = Duration::from_secs(10);

/// The pace of one client.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The time in which it has to take at least something.
    patience: Duration,
    /// Since when it is behind, and what it has taken since then.
    behind: Option<(Instant, u64)>,
    /// When it last took something after having been waited for.
    eased: Option<Instant>,
    /// Runs while it is waited for; at its end the client is too slow.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// The pace of a client that has to take something within so long.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, behind: None, eased: None, waiting: None }
    }

    /// A write that was tried: progress, one more moment of patience, or the end of it.
    pub(crate) fn tried(
        &mut self,
        context: &mut Context<'_>,
        tried: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = tried {
            self.took(outcome.as_ref().map_or(0, |count| *count as u64));
            return Poll::Ready(outcome);
        }
        if self.waiting.is_none() {
            let until = self.until(Instant::now());
            self.waiting = Some(Box::pin(tokio::time::sleep_until(until)));
        }
        match self.waiting.as_mut().map(|waiting| waiting.as_mut().poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            _ => Poll::Pending,
        }
    }

    fn took(&mut self, count: u64) {
        if let Some((_, taken)) = &mut self.behind {
            *taken += count;
        }
        if self.waiting.take().is_some() {
            self.eased = Some(Instant::now());
        }
    }

    /// How long the client is waited for that takes nothing from `now` on.
    fn until(&mut self, now: Instant) -> Instant {
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
    use crate::connection_limit::Crowd;

    /// How long a client keeps its connection that takes so many bytes every so often of an answer without end; `None` if
    /// it still has it after an hour.
    async fn kept(count: usize, every: Duration) -> Option<Duration> {
        let (mut client, server) = tokio::io::duplex(1 << 10);
        let places = std::sync::Arc::new(Semaphore::new(1));
        let place = places.clone().try_acquire_owned().unwrap();
        let seat = Crowd::new(0).admit([127, 0, 0, 1].into()).unwrap();
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

    // S3: nothing taken is the same on every transport, since all of them end here.
    #[tokio::test(start_paused = true)]
    async fn s03_who_takes_nothing_is_let_go_after_half_a_minute() {
        assert_eq!(kept(0, Duration::from_secs(1)).await, Some(Duration::from_secs(30)));
    }

    // S12: a trickle is next to nothing.
    #[tokio::test(start_paused = true)]
    async fn s12_who_takes_a_trickle_is_let_go_after_two_minutes() {
        let gone = kept(12_000, Duration::from_secs(24)).await.unwrap();
        assert!((120..=150).contains(&gone.as_secs()), "{gone:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn s12_a_slow_but_honest_reader_stays() {
        assert_eq!(kept(6_000, Duration::from_secs(1)).await, None);
        assert_eq!(kept(120_000, Duration::from_secs(20)).await, None);
    }
}
