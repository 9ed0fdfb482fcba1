//! The progress display of a batch: a bar with rate, cost and remaining time on a terminal, periodic lines in a pipe,
//! and a summary at the end. Decides nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_batch::{BatchEstimate, BatchProgress, BatchStop, BatchSummary};
use cognitive_contract::lock::Lock;
use indicatif::{ProgressBar, ProgressStyle};

use crate::figures::{count_text, dollars, duration};
use crate::printer::{BAD, DOUBT, FAINT, GOOD, HEAD, Printer};
use crate::text_table::TextTable;

/// The interval between lines in a pipe, so that the log of a batch of many hours stays readable.
const LINE: Duration = Duration::from_secs(10);

/// The display.
#[derive(Clone)]
pub(super) struct BatchScreen {
    bar: Option<ProgressBar>,
    /// The time of the last line, in a pipe.
    last: Arc<Lock<Instant>>,
}

impl BatchScreen {
    pub(super) fn new(printer: &Printer) -> Self {
        let bar = printer.for_people().then(|| ProgressBar::new(0));
        if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}")) {
            bar.set_style(style);
        }
        Self { bar, last: Arc::new(Lock::new(Instant::now())) }
    }

    /// Shows the progress.
    pub(super) fn show(&self, at: &BatchProgress) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(at.rows);
                bar.set_position(at.counts.answered);
                bar.set_message(message(at));
            }
            None => {
                let mut last = self.last.lock();
                if last.elapsed() >= LINE {
                    *last = Instant::now();
                    Printer.notice(format!("{}/{} rows, {}", at.counts.answered, at.rows, message(at)));
                }
            }
        }
    }

    /// Prints a line above the bar.
    pub(super) fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| Printer.notice(line)),
            None => Printer.notice(line),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn message(at: &BatchProgress) -> String {
    let mut parts = vec![format!("{}/s", rate(at.rate()))];
    if at.counts.cost.pico() > 0 {
        parts.push(dollars(at.counts.cost));
    }
    if at.counts.failed > 0 {
        parts.push(format!("{} failed", at.counts.failed));
    }
    if at.deferred > 0 {
        parts.push(format!("{} to retry", at.deferred));
    }
    parts.push(format!("{} of {} in flight", at.in_flight, at.concurrency));
    if let Some(left) = at.remaining_time() {
        parts.push(format!("{} left", duration(left.as_secs_f64() * 1_000.0)));
    }
    parts.join(", ")
}

fn rate(per_second: f64) -> String {
    if per_second < 9.95 { format!("{per_second:.1}") } else { format!("{per_second:.0}") }
}

/// Returns the result, line by line.
pub(super) fn summary(summary: &BatchSummary, printer: &Printer) -> Vec<String> {
    let counts = &summary.counts;
    let (style, word) = match summary.stopped {
        BatchStop::Finished => (GOOD, "finished"),
        BatchStop::MaxCost => (DOUBT, "stopped: the next row could exceed `--max-cost`"),
        BatchStop::MaxTokens => (DOUBT, "stopped: the next row could exceed `--max-total-tokens`"),
        BatchStop::MaxTime => (DOUBT, "stopped: `--max-time` is over"),
        BatchStop::Interrupted => (DOUBT, "stopped"),
        BatchStop::Provider => (BAD, "stopped: the provider does not respond"),
    };
    let mut lines = vec![format!("{HEAD}{}{HEAD:#} {style}{word}{style:#}", summary.module)];
    if let Some(reason) = &summary.reason {
        lines.push(format!("  {}", crate::printer::plain(reason)));
    }
    let mut rows = vec![
        vec!["rows".to_owned(), summary.rows.to_string()],
        vec!["ok".to_owned(), counts.ok.to_string()],
        vec!["failed".to_owned(), counts.failed.to_string()],
    ];
    if counts.duplicates > 0 {
        rows.push(vec!["deduplicated".to_owned(), counts.duplicates.to_string()]);
    }
    if summary.left > 0 {
        rows.push(vec!["left".to_owned(), summary.left.to_string()]);
    }
    if counts.tokens > 0 {
        rows.push(vec!["tokens".to_owned(), counts.tokens.to_string()]);
    }
    if counts.cost.pico() > 0 {
        rows.push(vec!["cost".to_owned(), dollars(counts.cost)]);
    }
    if let Some(unaccounted) = summary.unaccounted {
        rows.push(vec!["killed processes".to_owned(), format!("at most {} more", dollars(unaccounted))]);
    }
    #[expect(clippy::cast_precision_loss, reason = "a time for people")]
    rows.push(vec!["took".to_owned(), duration(summary.elapsed_ms as f64)]);
    rows.push(vec!["output".to_owned(), summary.output.display().to_string()]);
    if let Some(failed) = &summary.failed_output {
        rows.push(vec!["failed rows".to_owned(), failed.display().to_string()]);
    }
    lines.extend(TextTable::without_headings(2).indent(2).with(rows).lines(printer.width()));
    if summary.stopped != BatchStop::Finished {
        lines.push(format!(
            "{FAINT}The same command resumes with {}.{FAINT:#}",
            count_text(summary.left, "row")
        ));
    }
    lines
}

/// Returns the estimate, line by line.
pub(super) fn estimate(estimate: &BatchEstimate) -> Vec<String> {
    let mut rows = vec![vec!["rows".to_owned(), estimate.rows.to_string()]];
    let of = |count: u64| format!("{count} of the first {}", estimate.sampled);
    rows.push(vec!["equal inputs".to_owned(), of(estimate.duplicates)]);
    let why = estimate.first_refusal.as_ref().map(|why| format!(": {}", crate::printer::plain(why)));
    rows.push(vec!["would fail".to_owned(), format!("{}{}", of(estimate.refused), why.unwrap_or_default())]);
    let price = estimate.input_cost.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    rows.push(vec![
        "to read".to_owned(),
        format!("about {}{price}", count_text(estimate.input_tokens, "token")),
    ]);
    let most = match (&estimate.at_most, &estimate.no_ceiling) {
        (Some(most), _) => dollars(*most),
        (None, why) => format!("unknown: {}", why.as_deref().unwrap_or("no row could run")),
    };
    rows.push(vec!["at most".to_owned(), most]);
    TextTable::without_headings(2).with(rows).lines(Printer.width())
}
