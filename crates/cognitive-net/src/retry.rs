//! Decides on retries: at most two, after 0.5 s × 2ⁿ with full jitter, or after the service's delay of up to 30 s.
//! Only decides; the loop is in `llm::remote`. (S-02)

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use cognitive_contract::ports::PortFuture;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The most retries of a call. More would exceed the time of most calls and add load to a service in trouble.
const RETRIES: u32 = 2;
/// The longest first wait; it doubles with each further retry. The actual wait is random, so that clients do not
/// retry in step.
const FIRST: Duration = Duration::from_millis(500);
/// The longest delay that is accepted from a service. For a longer one, the call fails and the caller decides.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The decision whether a failure may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// The same request would fail again.
    Never,
    /// It may succeed next time.
    Later,
    /// It may succeed after this delay, according to the service.
    After(Duration),
}

/// A source of delays and randomness, replaceable in tests.
pub trait Pause: Send + Sync {
    /// Waits.
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()>;

    /// Returns a random number from 0 to 1, so that clients do not all retry at the same moment.
    fn jitter(&self) -> f64;
}

/// Waits in real time, with random jitter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RealPause;

impl Pause for RealPause {
    fn sleep(&self, time: Duration) -> PortFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }

    fn jitter(&self) -> f64 {
        // Each hasher of the standard library has random keys, which is random enough for backoff.
        let random = RandomState::new().hash_one(0_u8) >> 32;
        u32::try_from(random).map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX))
    }
}

/// Returns the wait before the next attempt. `None` if the failure is permanent, the retries are used up, or the
/// requested delay is too long. Also `None` if the wait would leave no time for an answer.
pub(crate) fn wait(again: RetryDecision, tries_before: u32, left: Duration, jitter: f64) -> Option<Duration> {
    if tries_before >= RETRIES {
        return None;
    }
    let wait = match again {
        RetryDecision::Never => None,
        RetryDecision::Later => Some(FIRST.saturating_mul(1 << tries_before).mul_f64(jitter.clamp(0.0, 1.0))),
        RetryDecision::After(asked) => Some(asked).filter(|asked| *asked <= MAX_WAIT),
    };
    wait.filter(|wait| *wait < left)
}

/// Returns the delay that the service asks for: in milliseconds, in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(milliseconds) = milliseconds {
        return Duration::try_from_secs_f64(milliseconds / 1_000.0).ok();
    }
    let asked = text(RETRY_AFTER.as_str())?;
    match asked.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => time_until(asked, now),
    }
}

/// Returns the time until an HTTP date; zero if the date has passed.
fn time_until(date: &str, now: SystemTime) -> Option<Duration> {
    let then = DateTimeParser::new().parse_timestamp(date).ok()?;
    let now = Timestamp::try_from(now).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use reqwest::header::HeaderValue;

    use super::*;

    const PLENTY: Duration = Duration::from_mins(1);

    // S-02: 0.5 s × 2ⁿ with full jitter, two retries.
    #[test]
    fn pipe_009_waits_grow_and_end() {
        let waits = |jitter| {
            (0..4).map(|tries| wait(RetryDecision::Later, tries, PLENTY, jitter)).collect::<Vec<_>>()
        };
        let ms = |time| Some(Duration::from_millis(time));
        assert_eq!(waits(1.0), [ms(500), ms(1_000), None, None]);
        assert_eq!(waits(0.5), [ms(250), ms(500), None, None]);
        assert_eq!(waits(0.0), [ms(0), ms(0), None, None]);
        assert_eq!(waits(7.0), [ms(500), ms(1_000), None, None]);
    }

    #[test]
    fn what_the_service_asks_for_is_kept_or_not_waited_for_at_all() {
        let asked = |seconds, left| wait(RetryDecision::After(Duration::from_secs(seconds)), 0, left, 0.1);
        assert_eq!(asked(30, PLENTY), Some(Duration::from_secs(30)));
        assert_eq!(asked(31, PLENTY), None);
        assert_eq!(asked(5, Duration::from_secs(5)), None);
        assert_eq!(wait(RetryDecision::Never, 0, PLENTY, 1.0), None);
    }

    #[test]
    fn retry_after_in_all_its_forms() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
        for (name, value, expected) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", " 1.5 ", Some(1_500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-3", None),
            ("x-other", "3", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_millis), "{name}: {value}");
        }
    }

    #[test]
    fn chance_stays_within_bounds() {
        let values: Vec<f64> = (0..100).map(|_| RealPause.jitter()).collect();
        assert!(values.iter().all(|value| (0.0..=1.0).contains(value)));
        assert!(values.iter().any(|value| *value > 0.5) && values.iter().any(|value| *value < 0.5));
    }
}
