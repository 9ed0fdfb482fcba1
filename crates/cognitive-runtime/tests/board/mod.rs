//! Stores the spans of a run and prints them as a tree, with a clock that advances by one second per read.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use cognitive_contract::span::{Span, SpanSink, SpanValue};
use cognitive_runtime::{Clock, SpanParent};

#[derive(Default)]
pub struct Board(Mutex<Vec<Span>>);

impl SpanSink for Board {
    fn record_span(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }

    fn lost_spans(&self) -> u64 {
        0
    }
}

/// The values of the attributes whose names have this suffix, in order.
fn counts(span: &Span, end: &str) -> Vec<u64> {
    let number = |value: &SpanValue| match value {
        SpanValue::Count(count) => Some(*count),
        SpanValue::Text(_) => None,
    };
    span.attributes
        .iter()
        .filter(|(name, _)| name.ends_with(end))
        .filter_map(|(_, value)| number(value))
        .collect()
}

pub fn text(span: &Span, wanted: &str) -> Option<String> {
    let found = span.attributes.iter().find(|(name, _)| *name == wanted);
    found.and_then(|(_, value)| match value {
        SpanValue::Text(text) => Some(text.clone()),
        SpanValue::Count(_) => None,
    })
}

impl Board {
    /// A span parent that reports to this board.
    pub fn place(self: &Arc<Self>) -> Arc<SpanParent> {
        let ticks = AtomicU64::new(0);
        let clock = Clock::from_fn(move || {
            SystemTime::UNIX_EPOCH + Duration::from_secs(ticks.fetch_add(1, Ordering::Relaxed))
        });
        let sink = Arc::clone(self) as Arc<dyn SpanSink>;
        Arc::new(SpanParent::new(sink).asking_for(Some("wanted")).by_clock(clock))
    }

    pub fn spans(&self) -> Vec<Span> {
        self.0.lock().unwrap().clone()
    }

    /// The tree: name, start and end, tokens and failure of each span.
    pub fn tree(&self) -> Vec<String> {
        let mut spans = self.spans();
        spans.sort_by_key(|span| span.started);
        let ids: HashSet<&str> = spans.iter().map(|span| span.span_id.as_str()).collect();
        let traces: HashSet<&str> = spans.iter().map(|span| span.trace_id.as_str()).collect();
        assert!(ids.len() == spans.len() && traces.len() <= 1, "{spans:?}");
        let mut lines = Vec::new();
        add(&spans, None, 0, &mut lines);
        assert_eq!(lines.len(), spans.len(), "each has its place: {spans:?}");
        lines
    }
}

fn add(spans: &[Span], parent: Option<&str>, depth: usize, lines: &mut Vec<String>) {
    for span in spans.iter().filter(|span| span.parent.as_deref() == parent) {
        let second = |moment: SystemTime| moment.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let mut line =
            format!("{}{} {}-{}", "  ".repeat(depth), span.name, second(span.started), second(span.ended));
        let tokens: Vec<String> = counts(span, "_tokens").iter().map(u64::to_string).collect();
        let error = text(span, "error.type");
        assert_eq!(error.is_some(), span.failed, "{span:?}");
        for more in [tokens.join("+"), error.unwrap_or_default()].iter().filter(|more| !more.is_empty()) {
            line = format!("{line} {more}");
        }
        lines.push(line);
        add(spans, Some(&span.span_id), depth + 1, lines);
    }
}
