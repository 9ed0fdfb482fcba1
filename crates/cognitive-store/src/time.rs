//! Converts times to text and back. The texts are UTC with milliseconds in a fixed width, so that they sort by time.
//! Uses no clock: `now` is a parameter.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Formats a time as RFC 3339 in UTC, such as `2026-05-01T12:00:00.000Z`. Times outside 1970 to 9999 are clamped.
#[must_use]
pub fn text(at: SystemTime) -> String {
    let at = Timestamp::try_from(at.max(SystemTime::UNIX_EPOCH)).unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

/// Parses the output of [`text`]. Invalid text, from manual edits, becomes the earliest time.
pub(crate) fn read(text: &str) -> SystemTime {
    moment(text).map_or(SystemTime::UNIX_EPOCH, SystemTime::from)
}

/// Parses the start of a period: an age such as `30m`, `24h`, `7d` or `2w`, a date, or an RFC 3339 time. The error
/// lists the accepted formats.
pub fn since(text: &str, now: SystemTime) -> Result<SystemTime, String> {
    age(text)
        .map(|age| now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH))
        .or_else(|| moment(text).map(SystemTime::from))
        .ok_or_else(|| {
            format!("`{text}` is neither an age (`30m`, `24h`, `7d`) nor a date (`2026-05-01`) nor a time (`2026-05-01T12:00:00Z`)")
        })
}

fn age(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

fn moment(text: &str) -> Option<Timestamp> {
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, milliseconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(milliseconds)
    }

    #[test]
    fn times_are_rfc_3339_in_utc_and_their_order_is_that_of_their_texts() {
        assert_eq!(text(at(1_767_323_045, 7)), "2026-01-02T03:04:05.007Z");
        assert_eq!(text(at(0, 0) - Duration::from_secs(9)), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(at(1 << 40, 0)).len(), 24);
        assert!(text(at(9, 999)) < text(at(10, 0)));
        assert_eq!(read(&text(at(1_767_323_045, 7))), at(1_767_323_045, 7));
        assert_eq!(read("x"), at(0, 0));
    }

    #[test]
    fn ages_dates_and_times_are_understood() {
        let now = at(1_767_323_045, 0);
        for (given, expected) in [
            ("5s", "2026-01-02T03:04:00.000Z"),
            ("4m", "2026-01-02T03:00:05.000Z"),
            ("3h", "2026-01-02T00:04:05.000Z"),
            ("1d", "2026-01-01T03:04:05.000Z"),
            ("1w", "2025-12-26T03:04:05.000Z"),
            ("99999999999d", "1970-01-01T00:00:00.000Z"),
            ("2025-12-31", "2025-12-31T00:00:00.000Z"),
            ("2025-12-31T12:00:00+02:00", "2025-12-31T10:00:00.000Z"),
        ] {
            assert_eq!(since(given, now).map(text), Ok(expected.to_owned()), "{given}");
        }
        for wrong in ["", "d", "-1d", "yesterday", "1y", "ü", "99999999999999999999w"] {
            assert!(since(wrong, now).unwrap_err().contains("neither an age"), "{wrong}");
        }
    }
}
