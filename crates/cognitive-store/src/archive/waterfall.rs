//! Builds the tree of a run and its child runs, from the records of its trace. Each record has its depth below the
//! surface run (`receipt.parent_span`); the parent of a child follows from their times.

use std::time::SystemTime;

use cognitive_ports::archive::WaterfallNode;
use serde_json::Value;

use crate::audit::Row;
use crate::time;

/// Times are stored in milliseconds, so a child may seem to start or end this far outside its parent.
const SLACK_MS: f64 = 2.0;

/// A run with its start and end times.
struct TimedRun<'a> {
    row: &'a Row,
    depth: usize,
    from: f64,
    to: f64,
}

impl<'a> TimedRun<'a> {
    fn from_row(row: &'a Row) -> Self {
        let to = milliseconds(&row.ts);
        let above = row.receipt.get("parent_span").and_then(Value::as_str);
        let depth = above.map_or(0, |path| path.split('/').count());
        Self { row, depth, from: to - row.latency_ms, to }
    }

    /// Returns whether the other run may be a child of this one.
    fn holds(&self, other: &Self) -> bool {
        other.depth == self.depth + 1 && self.from <= other.from + SLACK_MS && other.to <= self.to + SLACK_MS
    }
}

fn milliseconds(ts: &str) -> f64 {
    time::read(ts).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0
}

/// Returns the tree of the run whose record has this id.
pub(super) fn build(rows: &[Row], id: i64) -> Option<WaterfallNode> {
    let runs: Vec<TimedRun<'_>> =
        rows.iter().filter(|row| row.event == "run").map(TimedRun::from_row).collect();
    let root = runs.iter().position(|run| run.row.id == id)?;
    // If several candidates were active, the one that started last.
    let parents: Vec<Option<usize>> = runs
        .iter()
        .map(|part| {
            let above = runs.iter().enumerate().filter(|(_, run)| run.holds(part));
            above.max_by(|(_, one), (_, other)| one.from.total_cmp(&other.from)).map(|(at, _)| at)
        })
        .collect();
    Some(node(root, &TraceRecords { rows, begin: runs.get(root)?.from, runs, parents }))
}

/// All records of a trace, and the parent of each run.
struct TraceRecords<'a> {
    rows: &'a [Row],
    runs: Vec<TimedRun<'a>>,
    parents: Vec<Option<usize>>,
    begin: f64,
}

/// Builds the node of a run. The recursion is bounded by the nesting of compositions: each step increases the depth
/// by one.
fn node(at: usize, trace: &TraceRecords<'_>) -> WaterfallNode {
    let Some(run) = trace.runs.get(at) else { return WaterfallNode::default() };
    let own = |row: &&Row| row.run_id == run.row.run_id && row.event != "run" && !row.run_id.is_empty();
    let mut children: Vec<WaterfallNode> =
        trace.rows.iter().filter(own).map(|row| moment(row, trace.begin)).collect();
    let parts = trace.parents.iter().enumerate().filter(|(_, parent)| **parent == Some(at));
    children.extend(parts.map(|(part, _)| node(part, trace)));
    children.sort_by(|one, other| one.start_ms.total_cmp(&other.start_ms));
    let (start_ms, duration_ms) = (run.from - trace.begin, run.row.latency_ms);
    WaterfallNode { start_ms, duration_ms, children, ..waterfall_node(run.row) }
}

/// Builds the node of a record within a run.
fn moment(row: &Row, begin: f64) -> WaterfallNode {
    let start_ms = (milliseconds(&row.ts) - row.latency_ms - begin).max(0.0);
    WaterfallNode { start_ms, duration_ms: row.latency_ms, ..waterfall_node(row) }
}

fn waterfall_node(row: &Row) -> WaterfallNode {
    WaterfallNode {
        name: row.event.clone(),
        module: row.module.clone(),
        // A sent request is not a failure; its outcome is in the record of the run.
        ok: row.ok || row.event == "call",
        code: row.code.clone(),
        ..WaterfallNode::default()
    }
}
