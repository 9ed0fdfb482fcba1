//! Times differ from run to run, and so do the bars that are drawn of them. Both are replaced by something of one width, so that
//! what stands beside them stays where it is.

/// The width of the column of times in a trace, with the gap before it.
const TIME_COLUMN: usize = 8;
const SAME_TIME: &str = "0.0 ms";

/// The same text with every duration replaced.
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

/// The same table with every time and every bar but the first replaced; the first is that of the whole.
pub(crate) fn untimed_waterfall(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let rows: Vec<Option<TimedRow<'_>>> = lines.iter().map(|line| TimedRow::read(line)).collect();
    let longest = rows.iter().flatten().map(|row| visible(row.name)).max().unwrap_or(0);
    let mut bars = 0;
    let mut steady = String::new();
    for (line, row) in lines.iter().zip(&rows) {
        let mut line = row.as_ref().map_or_else(|| (*line).to_owned(), |row| row.written(longest));
        if let Some((from, to)) = bar(&line) {
            bars += 1;
            line = if bars == 1 { line } else { short_bar(&line, from, to) };
        }
        steady.push_str(line.trim_end());
        steady.push('\n');
    }
    steady
}

/// A row of a trace: a name, a time to the right of its column, and the rest.
struct TimedRow<'a> {
    name: &'a str,
    shown: &'static str,
    rest: &'a str,
}

impl<'a> TimedRow<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (from, to, shown) = match next_duration(line) {
            Some((from, to)) => (from, to, SAME_TIME),
            None => {
                let found = |word: &'static str| line.find(word).map(|at| (at, word));
                let (from, word) = found("TIME").or_else(|| found(" -  "))?;
                (from, from + word.trim_end().len(), word.trim())
            }
        };
        Some(Self { name: line[..from].trim_end(), shown, rest: &line[to..] })
    }

    fn written(&self, longest: usize) -> String {
        let Self { name, shown, rest } = self;
        // The colour of the heading begins before its blanks.
        let name =
            name.strip_suffix("\u{1b}[1m").map_or((*name).to_owned(), |name| name.trim_end().to_owned());
        let pad = " ".repeat(longest - visible(&name));
        format!("{name}{pad}{shown:>TIME_COLUMN$}{rest}")
    }
}

fn visible(text: &str) -> usize {
    anstream::adapter::strip_str(text.trim_end_matches("\u{1b}[1m").trim_end()).to_string().chars().count()
}

/// Where the next duration is, such as `12 ms` or `3.4 s`.
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

/// The bytes of a bar.
fn bar(line: &str) -> Option<(usize, usize)> {
    let is_cell = |letter: char| matches!(letter, '·' | '█');
    let from = line.find(is_cell)?;
    let length = line[from..].find(|letter: char| !is_cell(letter)).unwrap_or(line.len() - from);
    Some((from, from + length))
}

/// One cell in place of a bar, and blanks for the others behind the end of its colour.
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
    let one =
        "MODULE   TIME  WHEN\nwhole   12 ms  ████\n└ part  9 ms  ·█    0.90\n└ other     -        skipped";
    let two = "MODULE    TIME  WHEN\nwhole   112 ms  ████\n└ part  99 ms  ███   0.90\n└ other      -        skipped";
    assert_eq!(untimed_waterfall(one), untimed_waterfall(two));
    assert!(
        untimed_waterfall(one).contains("whole    0.0 ms  ████\n└ part   0.0 ms  █     0.90"),
        "{}",
        untimed_waterfall(one)
    );
}
