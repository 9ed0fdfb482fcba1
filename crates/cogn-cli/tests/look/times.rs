//! Masks durations, and the bars that are drawn from them, because they differ between runs. The replacements have a
//! fixed width, so that the columns next to them do not move.

const SAME_TIME: &str = "0.0 ms";

/// Replaces every duration in a text.
pub(crate) fn untimed(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text;
    while let Some((before, after)) = next_duration(rest) {
        steady.push_str(&rest[..before]);
        steady.push_str(SAME_TIME);
        rest = &rest[after..];
    }
    steady + rest
}

/// The same table with every time and every bar but the first replaced; the first is that of the whole. The program gives times a
/// column whose width does not depend on them.
pub(crate) fn untimed_waterfall(text: &str) -> String {
    let mut bars = 0;
    let mut steady = String::new();
    for line in text.lines() {
        let mut line = same_time(line);
        if let Some((from, to)) = bar(&line) {
            bars += 1;
            line = if bars == 1 { line } else { short_bar(&line, from, to) };
        }
        steady.push_str(line.trim_end());
        steady.push('\n');
    }
    steady
}

/// A row with its time replaced, which ends where it ended.
fn same_time(line: &str) -> String {
    let Some((from, to)) = next_duration(line) else { return line.to_owned() };
    let before = line[..from].trim_end_matches(' ');
    let width = line[before.len()..to].len();
    format!("{before}{SAME_TIME:>width$}{}", &line[to..])
}

/// Returns the position of the next duration, such as `12 ms` or `3.4 s`.
fn next_duration(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    while let Some(found) = text[at..].find(|letter: char| letter.is_ascii_digit()) {
        let from = at + found;
        let number = text[from..]
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(text.len() - from);
        let after = &text[from + number..];
        let unit = [" ms", " s"].into_iter().find(|unit| {
            after
                .strip_prefix(unit)
                .is_some_and(|next| !next.starts_with(|letter: char| letter.is_alphanumeric()))
        });
        let alone = !text[..from].ends_with(|letter: char| letter.is_alphanumeric() || letter == '-');
        match unit {
            Some(unit) if alone => return Some((from, from + number + unit.len())),
            _ => at = from + number,
        }
    }
    None
}

/// Returns the byte range of a bar.
fn bar(line: &str) -> Option<(usize, usize)> {
    let is_cell = |letter: char| matches!(letter, '·' | '█');
    let from = line.find(is_cell)?;
    let length = line[from..].find(|letter: char| !is_cell(letter)).unwrap_or(line.len() - from);
    Some((from, from + length))
}

/// Replaces a bar by one cell, with blanks after its colour sequence.
fn short_bar(line: &str, from: usize, to: usize) -> String {
    let cells = line[from..to].chars().count();
    let (colour, rest) = match line[to..].strip_prefix("\u{1b}[0m") {
        Some(rest) => ("\u{1b}[0m", rest),
        None => ("", &line[to..]),
    };
    format!("{}█{colour}{}{rest}", &line[..from], " ".repeat(cells - 1))
}

#[test]
fn only_times_and_bars_are_replaced() {
    assert_eq!(
        untimed("p50 12 ms, p95 3.4 s of 12 items, gpt-5.4 says 7 seconds"),
        "p50 0.0 ms, p95 0.0 ms of 12 items, gpt-5.4 says 7 seconds"
    );
    let one = "MODULE     TIME  WHEN\nwhole    12 ms  ████\n└ part  9.1 ms  ·█    0.90\n└ other      -        skipped";
    let two = "MODULE     TIME  WHEN\nwhole   112 ms  ████\n└ part   99 ms  ███   0.90\n└ other      -        skipped";
    assert_eq!(untimed_waterfall(one), untimed_waterfall(two));
    assert!(
        untimed_waterfall(one).contains("whole   0.0 ms  ████\n└ part  0.0 ms  █     0.90"),
        "{}",
        untimed_waterfall(one)
    );
}
