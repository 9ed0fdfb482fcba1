//! `cogn run --trace`: which modules ran, in which order, and what each of them took and cost. On stderr, so that stdout
//! stays the envelope.

use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::trace::{PartState, Trace};

use crate::printer::{BAD, DOUBT, FAINT, HEAD, Printer, table};

/// How a trace is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceForm {
    /// A tree for people
    Tree,
    /// One line of JSON
    Json,
}

/// Passes everything on and keeps the trace.
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
    for line in tree(trace) {
        printer.err(line);
    }
}

fn tree(trace: &Trace) -> Vec<String> {
    let heads = ["MODULE", "TIME", "CONFIDENCE", "RISK", "TOKENS"];
    let mut rows = vec![heads.map(|head| format!("{HEAD}{head}{HEAD:#}")).to_vec()];
    add(trace, "", "", &mut rows);
    table(&rows)
}

fn add(trace: &Trace, before: &str, below: &str, rows: &mut Vec<Vec<String>>) {
    rows.push(row(trace, before));
    let last = trace.parts.len().saturating_sub(1);
    for (place, part) in trace.parts.iter().enumerate() {
        let (branch, further) = if place == last { ("└ ", "  ") } else { ("├ ", "│ ") };
        add(part, &format!("{below}{branch}"), &format!("{below}{further}"), rows);
    }
}

fn row(trace: &Trace, before: &str) -> Vec<String> {
    let ran = !matches!(trace.outcome, PartState::Skipped | PartState::Cancelled);
    let time = if ran { format!("{:.1} ms", trace.latency_ms) } else { "-".to_owned() };
    let confidence = trace.confidence.map_or("-".to_owned(), |confidence| format!("{confidence:.2}"));
    let risk = trace.risk.clone().unwrap_or_else(|| "-".to_owned());
    let tokens = trace
        .usage
        .map_or("-".to_owned(), |usage| format!("{} + {}", usage.input_tokens, usage.output_tokens));
    vec![format!("{FAINT}{before}{FAINT:#}{}", trace.module), time, confidence, risk, tokens, remark(trace)]
}

/// What is out of the ordinary.
fn remark(trace: &Trace) -> String {
    let instead = trace.stands_in_for.as_ref().map(|name| format!("in place of {name}"));
    let ended = match (trace.outcome, &trace.code) {
        (PartState::Failed, Some(code)) => Some(format!("{BAD}failed{BAD:#} {code}")),
        (PartState::Finished, _) => None,
        (other, _) => Some(format!("{DOUBT}{}{DOUBT:#}", other.word())),
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
    fn a_trace_is_a_tree_with_time_verdict_and_tokens() {
        let envelope = json!({
            "ok": true, "meta": { "confidence": 0.5, "risk": "low", "explain": "e" }, "data": { "rationale": "r" },
        });
        let envelope = Envelope::from_value(envelope).unwrap();
        let usage = Some(Usage { input_tokens: 30, output_tokens: 4 });
        let node = |name: &str| Trace::of(name, "1.0.0", &envelope, 12.34, usage);
        let inner = node("inner").with_parts(vec![Trace::unfinished("leaf", PartState::Skipped)]);
        let mut other = node("other");
        other.stands_in_for = Some("gone".to_owned());
        let lines = tree(&node("whole").with_parts(vec![inner, other]));
        let bare: Vec<String> =
            lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(
            bare,
            [
                "MODULE    TIME     CONFIDENCE  RISK  TOKENS",
                "whole     12.3 ms  0.50        low   30 + 4",
                "├ inner   12.3 ms  0.50        low   30 + 4",
                "│ └ leaf  -        -           -     -       skipped",
                "└ other   12.3 ms  0.50        low   30 + 4  in place of gone",
            ]
        );
    }
}
