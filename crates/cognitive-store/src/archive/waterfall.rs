//! A run with the runs that it is made of, from the records of its trace. The record of a part says how deep below the run of
//! a surface it was (`receipt.parent_span`); whose part it is follows from when it ran.

use std::time::SystemTime;

use cognitive_contract::archive::WaterfallNode;
use serde_json::Value;

use crate::audit::Row;
use crate::time;

/// Times are kept in milliseconds, so a part may seem to begin or end by so much outside of its run.
const SLACK_MS: f64 = 2.0;

/// A run in the time of its trace.
struct TimedRun<'a> {
    row: &'a Row,
    depth: usize,
    from: f64,
    to: f64,
}

impl<'a> TimedRun<'a> {
    fn of(row: &'a Row) -> Self {
        let to = milliseconds(&row.ts);
        let above = row.receipt.get("parent_span").and_then(Value::as_str);
        let depth = above.map_or(0, |path| path.split('/').count());
        Self { row, depth, from: to - row.latency_ms, to }
    }

    /// Whether the other one may be a part of this.
    fn holds(&self, other: &Self) -> bool {
        other.depth == self.depth + 1 && self.from <= other.from + SLACK_MS && other.to <= self.to + SLACK_MS
    }
}

fn milliseconds(ts: &str) -> f64 {
    time::read(ts).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0
}

/// The tree of the run whose record has this id.
pub(super) fn of(rows: &[Row], id: i64) -> Option<WaterfallNode> {
    let runs: Vec<TimedRun<'_>> = rows.iter().filter(|row| row.event == "run").map(TimedRun::of).collect();
    let root = runs.iter().position(|run| run.row.id == id)?;
    // Of several that were under way, the one that began last.
    let parents: Vec<Option<usize>> = runs
        .iter()
        .map(|part| {
            let above = runs.iter().enumerate().filter(|(_, run)| run.holds(part));
            above.max_by(|(_, one), (_, other)| one.from.total_cmp(&other.from)).map(|(at, _)| at)
        })
        .collect();
    Some(node(root, &Traced { rows, begin: runs.get(root)?.from, runs, parents }))
}

/// All records of a trace, and which run is part of which.
struct Traced<'a> {
    rows: &'a [Row],
    runs: Vec<TimedRun<'a>>,
    parents: Vec<Option<usize>>,
    begin: f64,
}

/// As deep as compositions nest, which the runtime bounds: depth grows by one with every step.
fn node(at: usize, trace: &Traced<'_>) -> WaterfallNode {
    let Some(run) = trace.runs.get(at) else { return WaterfallNode::default() };
    let own = |row: &&Row| row.run_id == run.row.run_id && row.event != "run" && !row.run_id.is_empty();
    let mut children: Vec<WaterfallNode> =
        trace.rows.iter().filter(own).map(|row| moment(row, trace.begin)).collect();
    let parts = trace.parents.iter().enumerate().filter(|(_, parent)| **parent == Some(at));
    children.extend(parts.map(|(part, _)| node(part, trace)));
    children.sort_by(|one, other| one.start_ms.total_cmp(&other.start_ms));
    let (start_ms, duration_ms) = (run.from - trace.begin, run.row.latency_ms);
    WaterfallNode { start_ms, duration_ms, children, ..described(run.row) }
}

/// A record of something in a run.
fn moment(row: &Row, begin: f64) -> WaterfallNode {
    let start_ms = (milliseconds(&row.ts) - row.latency_ms - begin).max(0.0);
    WaterfallNode { start_ms, duration_ms: row.latency_ms, ..described(row) }
}

fn described(row: &Row) -> WaterfallNode {
    WaterfallNode {
        name: row.event.clone(),
        module: row.module.clone(),
        // A request that left is not a failure: what came of it is in the record of the run.
        ok: row.ok || row.event == "call",
        code: row.code.clone(),
        ..WaterfallNode::default()
    }
}
