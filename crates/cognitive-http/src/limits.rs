//! Limits per client: runs per minute, and streams at once. Holds no state of idle clients for long.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cognitive_contract::lock::Lock;

/// The number of clients above which idle ones are evicted. Below it, their memory is not worth the search.
const MANY: usize = 10_000;

/// The limits of all clients.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The time that one run uses up, in nanoseconds; zero means no limit.
    interval: AtomicU64,
    /// The largest burst of runs, as a share of a minute.
    burst: Duration,
    /// The most streams of one client; zero means no limit.
    streams: AtomicUsize,
    clients: Lock<Clients>,
}

#[derive(Debug)]
struct Clients {
    by_name: HashMap<String, Client>,
    /// The number of clients that triggers eviction of idle ones. Grows with the active clients, so that scans stay
    /// rare.
    per_address: usize,
}

#[derive(Debug, Default)]
struct Client {
    /// The time until which the client's runs so far use up its rate.
    busy_until: Option<Instant>,
    streams: usize,
}

/// A permit for one stream, released on drop.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    limits: Arc<Limits>,
    client: String,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if let Some(client) = self.limits.clients.lock().by_name.get_mut(&self.client) {
            client.streams = client.streams.saturating_sub(1);
        }
    }
}

impl Limits {
    pub(crate) fn new(runs_per_minute: u32, streams: usize) -> Self {
        Self {
            interval: AtomicU64::new(interval_of(runs_per_minute)),
            burst: Duration::from_mins(1),
            streams: AtomicUsize::new(streams),
            clients: Lock::new(Clients { by_name: HashMap::new(), per_address: MANY }),
        }
    }

    /// Returns the time that one run uses up and the largest burst; `None` without a limit.
    pub(crate) fn rate(&self) -> Option<(Duration, Duration)> {
        let interval = self.interval();
        (!interval.is_zero()).then_some((interval, self.burst))
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval.load(Ordering::Relaxed))
    }

    /// Replaces the limits. What clients have used up so far stays.
    pub(crate) fn replace(&self, runs_per_minute: u32, streams: usize) {
        self.interval.store(interval_of(runs_per_minute), Ordering::Relaxed);
        self.streams.store(streams, Ordering::Relaxed);
    }

    /// Counts a run at `now`; the error is the time to wait.
    pub(crate) fn run(&self, name: &str, now: Instant) -> Result<(), Duration> {
        let interval = self.interval();
        if interval.is_zero() {
            return Ok(());
        }
        let mut clients = self.clients.lock();
        let client = clients.client(name, now);
        let begins = client.busy_until.map_or(now, |until| until.max(now));
        let ends = begins + interval;
        if ends > now + self.burst {
            return Err(ends - (now + self.burst));
        }
        client.busy_until = Some(ends);
        Ok(())
    }

    /// Refunds a run that was counted but did not take place.
    pub(crate) fn refund(&self, name: &str) {
        if let Some(client) = self.clients.lock().by_name.get_mut(name) {
            client.busy_until = client.busy_until.and_then(|until| until.checked_sub(self.interval()));
        }
    }

    /// Returns how long a run at `now` would have to wait, if at all, without counting it.
    pub(crate) fn wait_time(&self, name: &str, now: Instant) -> Option<Duration> {
        let busy_until = self.clients.lock().by_name.get(name).and_then(|client| client.busy_until)?;
        (busy_until.max(now) + self.interval())
            .checked_duration_since(now + self.burst)
            .filter(|wait| !wait.is_zero())
    }

    /// Returns a permit for one more stream if the client is below its limit (STREAM-023).
    pub(crate) fn stream(self: &Arc<Self>, name: &str) -> Option<StreamPermit> {
        let mut clients = self.clients.lock();
        let client = clients.client(name, Instant::now());
        let most = self.streams.load(Ordering::Relaxed);
        if most > 0 && client.streams >= most {
            return None;
        }
        client.streams += 1;
        Some(StreamPermit { limits: Arc::clone(self), client: name.to_owned() })
    }
}

/// Returns the time that one run uses up, in nanoseconds.
fn interval_of(runs_per_minute: u32) -> u64 {
    60_000_000_000_u64.checked_div(u64::from(runs_per_minute)).unwrap_or(0)
}

impl Clients {
    fn client(&mut self, name: &str, now: Instant) -> &mut Client {
        if self.by_name.len() >= self.per_address && !self.by_name.contains_key(name) {
            self.by_name
                .retain(|_, client| client.streams > 0 || client.busy_until.is_some_and(|until| until > now));
            self.per_address = MANY.max(self.by_name.len() * 2);
        }
        self.by_name.entry(name.to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_clients_are_forgotten_whichever_limit_is_set() {
        let limits = Arc::new(Limits::new(0, 2));
        let kept = limits.stream("kept").unwrap();
        for number in 0..3 * MANY {
            drop(limits.stream(&number.to_string()));
            assert!(limits.clients.lock().by_name.len() <= MANY);
        }
        assert!(limits.clients.lock().by_name.contains_key("kept"), "who has a stream is not forgotten");
        drop(kept);
        let limits = Limits::new(60, 2);
        let start = Instant::now();
        for number in 0..3 * MANY {
            limits.run(&number.to_string(), start).unwrap();
        }
        assert_eq!(limits.clients.lock().by_name.len(), 3 * MANY, "who is busy is not forgotten");
        for number in 0..=2 * MANY {
            limits.run(&format!("later-{number}"), start + Duration::from_mins(2)).unwrap();
        }
        assert!(
            limits.clients.lock().by_name.len() <= 2 * MANY + 1,
            "{}",
            limits.clients.lock().by_name.len()
        );
    }

    #[test]
    fn replaced_limits_hold_for_the_next_run() {
        let limits = Arc::new(Limits::new(1, 1));
        let (now, stream) = (Instant::now(), limits.stream("ann").unwrap());
        limits.run("ann", now).unwrap();
        assert!(limits.run("ann", now).is_err() && limits.stream("ann").is_none());
        limits.replace(0, 2);
        assert!(limits.run("ann", now).is_ok() && limits.stream("ann").is_some() && limits.rate().is_none());
        drop(stream);
    }

    #[test]
    fn a_minute_holds_so_many_runs_and_says_how_long_to_wait() {
        let limits = Limits::new(60, 4);
        let start = Instant::now();
        for _ in 0..60 {
            limits.run("a", start).unwrap();
        }
        assert_eq!(limits.run("a", start), Err(Duration::from_secs(1)));
        limits.run("b", start).unwrap();
        let later = start + Duration::from_secs(1);
        assert_eq!(limits.wait_time("a", later), None, "asking takes no note");
        limits.run("a", later).unwrap();
        assert_eq!(limits.wait_time("a", later), limits.run("a", later).err());
        limits.refund("a");
        limits.run("a", later).unwrap();
        assert!(limits.run("a", later).is_err() && limits.wait_time("b", later).is_none());
    }

    #[test]
    fn stream_023_streams_are_counted_per_client_and_given_back() {
        let limits = Arc::new(Limits::new(0, 2));
        let first = limits.stream("a").unwrap();
        let _second = limits.stream("a").unwrap();
        assert!(limits.stream("a").is_none());
        assert!(limits.stream("b").is_some());
        drop(first);
        assert!(limits.stream("a").is_some());
    }
}
