//! `cogn run --trace`: the modules that ran, with start, duration and cost of each; or the reason why one did not run.
//! On stderr, because stdout holds the envelope.

use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::trace::{PartState, Trace};

use crate::figures::{duration, filled_cells};
use crate::printer::{BAD, DOUBT, FAINT, GOOD, Printer};
use crate::text_table::TextTable;

/// The form of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceForm {
    /// A tree for people, with a bar for the time of each module
    Tree,
    /// One line of JSON
    Json,
}

/// Forwards all events and stores the trace.
pub(super) struct Keeper<'s> {
    sink: &'s mut dyn EventSink,
    trace: Option<Trace>,
}

impl<'s> Keeper<'s> {
    pub(super) fn new(sink: &'s mut dyn EventSink) -> Self {
        Self { sink, trace: None }
    }

    pub(super) fn into_trace(self) -> Option<Trace> {
        self.trace
    }
}

impl EventSink for Keeper<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Trace(trace) = event {
            self.trace = Some(trace.clone());
        }
        self.sink.event(event);
    }
}

/// Prints a trace.
pub(super) fn show(trace: &Trace, form: TraceForm, printer: &Printer) {
    if form == TraceForm::Json {
        printer.err(serde_json::to_string(trace).unwrap_or_default());
        return;
    }
    let is_narrow = printer.width_err().is_some_and(|width| width < NARROW);
    printer.table_err(&waterfall(trace, if is_narrow { CELLS / 2 } else { CELLS }));
}

/// The number of cells in the bars that show when each module ran.
const CELLS: usize = 24;
/// In a terminal below this width the bars have half as many cells, to leave room for names and reasons.
const NARROW: usize = 80;
/// The width of the column of times. Every duration below 100 seconds fits, so that two traces of one module have the same columns,
/// however long their runs took.
const TIME_WIDTH: usize = 6;

/// Returns a row for each module: its place in the tree, its duration, a bar on the common time axis, its verdict.
fn waterfall(trace: &Trace, cells: usize) -> TextTable {
    let heads = ["MODULE", "TIME", "WHEN", "CONFIDENCE", "RISK", "TOKENS", ""];
    let mut rows = Vec::new();
    let whole = trace.latency_ms.max(f64::MIN_POSITIVE);
    add(&mut rows, trace, &Branch { before: String::new(), below: String::new(), offset: 0.0, whole, cells });
    TextTable::new(heads).right(&[1, 3, 5]).at_least(1, TIME_WIDTH).optional_columns(&[4, 5, 3]).with(rows)
}

/// The position of a module in the tree, and the start of its caller's parts.
struct Branch {
    before: String,
    below: String,
    offset: f64,
    whole: f64,
    cells: usize,
}

fn add(rows: &mut Vec<Vec<String>>, trace: &Trace, branch: &Branch) {
    let offset = branch.offset + trace.started_ms;
    rows.push(row(trace, branch, offset));
    let last = trace.parts.len().saturating_sub(1);
    for (place, part) in trace.parts.iter().enumerate() {
        let (mark, further) = if place == last { ("└ ", "  ") } else { ("├ ", "│ ") };
        let before = format!("{}{mark}", branch.below);
        let below = format!("{}{further}", branch.below);
        add(rows, part, &Branch { before, below, offset, whole: branch.whole, cells: branch.cells });
    }
}

fn row(trace: &Trace, branch: &Branch, offset: f64) -> Vec<String> {
    let ran = !matches!(trace.outcome, PartState::Skipped | PartState::Cancelled);
    let (time, bar) = if ran {
        let style = if trace.outcome == PartState::Failed { BAD } else { GOOD };
        let bar = bar(offset / branch.whole, trace.latency_ms / branch.whole, branch.cells);
        (duration(trace.latency_ms), format!("{style}{bar}{style:#}"))
    } else {
        ("-".to_owned(), String::new())
    };
    let confidence = trace.confidence.map_or("-".to_owned(), |confidence| format!("{confidence:.2}"));
    let risk = trace.risk.clone().unwrap_or_else(|| "-".to_owned());
    let tokens = trace
        .usage
        .map_or("-".to_owned(), |usage| format!("{} + {}", usage.input_tokens, usage.output_tokens));
    let name = format!("{FAINT}{}{FAINT:#}{}", branch.before, trace.module);
    vec![name, time, bar, confidence, risk, tokens, remark(trace)]
}

/// Returns a bar with this start and length as shares of the whole; at least one cell, never beyond the end.
fn bar(start: f64, share: f64, cells: usize) -> String {
    let length = filled_cells(share, cells).max(1);
    let before = if start > 0.0 { filled_cells(start, cells).min(cells - length) } else { 0 };
    format!("{}{}", "·".repeat(before), "█".repeat(length))
}

/// Returns a remark on anything unusual.
fn remark(trace: &Trace) -> String {
    let instead = trace.stands_in_for.as_ref().map(|name| format!("in place of {name}"));
    let because = trace.because.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let ended = match (trace.outcome, &trace.code) {
        (PartState::Failed, Some(code)) => Some(format!("{BAD}failed{BAD:#} {code}")),
        (PartState::Finished, _) => None,
        (other, _) => Some(format!("{DOUBT}{}{DOUBT:#}{because}", other.word())),
    };
    instead.into_iter().chain(ended).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use cognitive_contract::Envelope;
    use cognitive_contract::ports::Usage;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trace_is_a_waterfall_with_time_verdict_tokens_and_why_a_part_did_not_run() {
        let envelope = json!({
            "ok": true, "meta": { "confidence": 0.5, "risk": "low", "explain": "e" }, "data": { "rationale": "r" },
        });
        let envelope = Envelope::from_value(envelope).unwrap();
        let usage = Some(Usage::new(30, 4));
        let node = |name: &str, began: f64, took: f64| {
            let mut node = Trace::from_envelope(name, "1.0.0", &envelope, took, usage);
            node.started_ms = began;
            node
        };
        let skipped = Trace::unfinished_trace("leaf", PartState::Skipped)
            .with_reason(Some("`$.x` does not hold".to_owned()));
        let inner = node("inner", 0.0, 12_000.0).with_parts(vec![skipped]);
        let mut other = node("other", 12_000.0, 12_000.0);
        other.stands_in_for = Some("gone".to_owned());
        let lines =
            waterfall(&node("whole", 0.0, 24_000.0).with_parts(vec![inner, other]), CELLS).lines(None);
        let bare: Vec<String> =
            lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(
            bare,
            [
                "MODULE      TIME  WHEN                      CONFIDENCE  RISK  TOKENS",
                "whole     24.0 s  ████████████████████████        0.50  low   30 + 4",
                "├ inner   12.0 s  ████████████                    0.50  low   30 + 4",
                "│ └ leaf       -                                     -  -          -  skipped: `$.x` does not hold",
                "└ other   12.0 s  ············████████████        0.50  low   30 + 4  in place of gone",
            ]
        );
    }

    /// Returns the lines of a trace without times and bars, for these durations and this terminal width. They show
    /// the columns and the line breaks.
    fn layout(whole: f64, part: f64, width: usize) -> Vec<String> {
        let envelope = json!({
            "ok": true, "meta": { "confidence": 0.5, "risk": "low", "explain": "e" }, "data": { "rationale": "r" },
        });
        let envelope = Envelope::from_value(envelope).unwrap();
        let because = Some("`$.data.warmth == 'cold'` does not hold".to_owned());
        let skipped = Trace::unfinished_trace("text-classifier", PartState::Skipped).with_reason(because);
        let greeter = Trace::from_envelope("greeter", "1.0.0", &envelope, part, None);
        let trace = Trace::from_envelope("./visit", "1.0.0", &envelope, whole, None)
            .with_parts(vec![greeter, skipped]);
        let lines = waterfall(&trace, CELLS).lines(Some(width)).into_iter();
        let mut bare = lines.map(|line| anstream::adapter::strip_str(&line).to_string());
        let head = bare.next().unwrap();
        let times = [whole, part].map(duration);
        let words = bare.map(|line| {
            let line = times.iter().fold(line, |line, time| line.replace(time, " ")).replace(['█', '·'], " ");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        [head].into_iter().chain(words).collect()
    }

    // The columns and the line breaks do not depend on the speed of the machine.
    #[test]
    fn the_columns_of_a_trace_do_not_depend_on_how_long_it_took() {
        for width in [60, 100, 101, 102, 200] {
            let fast = layout(9.9, 0.04, width);
            for (whole, part) in [(12.0, 11.0), (150.0, 12.0), (1_234.0, 999.0), (99_900.0, 5.0)] {
                assert_eq!(layout(whole, part, width), fast, "{width} columns: {whole} ms, {part} ms");
            }
        }
    }
}
