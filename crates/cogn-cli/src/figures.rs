//! Formats numbers for users: counts, durations, local times, bars and sparklines. Programs get numbers and UTC, as
//! JSON.

use cognitive_contract::money::Money;
use cognitive_contract::text;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::printer::plain;

/// Formats a duration: `12 ms`, `3.4 s`, `2 min 5 s`.
pub(crate) fn duration(milliseconds: f64) -> String {
    match milliseconds {
        tiny if tiny < 9.95 => format!("{tiny:.1} ms"),
        short if short < 999.5 => format!("{short:.0} ms"),
        seconds if seconds < 119_950.0 => format!("{:.1} s", seconds / 1_000.0),
        long => {
            let seconds = (long / 1_000.0).round();
            let (minutes, rest) = ((seconds / 60.0).floor(), seconds % 60.0);
            if rest < 0.5 { format!("{minutes:.0} min") } else { format!("{minutes:.0} min {rest:.0} s") }
        }
    }
}

/// Formats an amount: `$1.25`, `$0.0042`. Amounts below a millionth of a dollar are shown exactly.
pub(crate) fn dollars(amount: Money) -> String {
    let exact = amount.to_string();
    let Some((whole, decimals)) = exact.split_once('.') else { return format!("${exact}") };
    let kept = if whole == "0" { decimals.len().min(6) } else { 2 };
    // An amount that would be cut to zero is shown exactly.
    match decimals.get(..kept) {
        Some(shown) if shown.bytes().any(|digit| digit != b'0') => {
            format!("${}", Money::parse(&format!("{whole}.{shown}")).unwrap_or(amount))
        }
        _ if whole != "0" => format!("${whole}"),
        _ => format!("${exact}"),
    }
}

/// Formats a count: `1 chain`, `2 chains`.
pub(crate) fn count_text(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Formats an RFC 3339 time in the zone of this machine, to the second. An invalid time is shown as it is.
pub(crate) fn local_time(utc: &str) -> String {
    match utc.parse::<Timestamp>() {
        Ok(at) => at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => plain(text::cut(utc, 19)),
    }
}

/// Formats a share from 0 to 1 as a bar with this number of cells. The exact number is printed next to it.
pub(crate) fn bar(share: f64, cells: usize) -> String {
    let full = filled_cells(share, cells);
    format!("{}{}", "█".repeat(full), "░".repeat(cells - full))
}

/// Returns the number of cells that a share fills; a share above zero fills at least one.
pub(crate) fn filled_cells(share: f64, cells: usize) -> usize {
    let share = share.clamp(0.0, 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few cells, from 0 up"
    )]
    let full = (share * cells as f64).round() as usize;
    full.max(usize::from(share > 0.0)).min(cells)
}

/// Returns one cell per count, scaled to the largest one.
pub(crate) fn sparkline(counts: &[u64]) -> String {
    const CELLS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let cell = |count: &u64| {
        if *count == 0 {
            return '·';
        }
        let place = usize::try_from(count.saturating_mul(7) / most).unwrap_or(0);
        CELLS.get(place).copied().unwrap_or('█')
    };
    counts.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_exact_as_they_are_short() {
        for (milliseconds, shown) in [
            (0.04, "0.0 ms"),
            (9.9, "9.9 ms"),
            (12.34, "12 ms"),
            (999.4, "999 ms"),
            (34_323.1, "34.3 s"),
            (125_000.0, "2 min 5 s"),
            (300_000.0, "5 min"),
        ] {
            assert_eq!(duration(milliseconds), shown);
        }
    }

    #[test]
    fn a_bar_is_never_empty_for_something_and_never_too_long() {
        assert_eq!((bar(0.0, 4), bar(0.01, 4), bar(0.5, 4)), ("░░░░".into(), "█░░░".into(), "██░░".into()));
        assert_eq!((bar(1.0, 4), bar(7.0, 4)), ("████".into(), "████".into()));
        assert_eq!(sparkline(&[0, 1, 4, 8]), "·▁▄█");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn what_is_no_time_is_shown_as_it_is() {
        assert_eq!(local_time("soon\u{1b}[2J"), "soon\u{fffd}[2J");
        assert_eq!(local_time("2026-05-01T12:00:00.123Z").len(), 19);
    }
}
