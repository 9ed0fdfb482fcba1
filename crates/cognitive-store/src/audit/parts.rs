//! Parts of compositions in sums over runs. The record of a composition has the tokens and the
//! cost of all its parts, and each part has a record too, so a sum over all records counts them twice.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use crate::error::Problem;
use crate::sql::{SqlDialect, SqlRow};
use crate::time;

/// The place of a run in its trace.
pub(crate) struct TracePlace {
    trace_id: String,
    /// The number of runs above it; 0 for a run that a surface asked for.
    depth: usize,
    ended: SystemTime,
    /// Set for the first call of an unfinished run, which has no usage and says nothing about other runs.
    is_call: bool,
}

impl TracePlace {
    /// The columns that [`read`](Self::read) takes.
    pub(crate) fn columns(dialect: SqlDialect) -> String {
        format!("ts, event, trace_id, {}", dialect.parent_span())
    }

    /// Reads the columns that begin at `at`.
    pub(crate) fn read(row: &SqlRow, at: usize) -> Result<Self, Problem> {
        // A receipt that was changed by hand may have anything there.
        let above = row.maybe_text(at + 3).ok().flatten();
        Ok(Self {
            trace_id: row.text(at + 2)?,
            depth: above.map_or(0, |path| path.split('/').count()),
            ended: time::read(row.str(at)?),
            is_call: row.str(at + 1)? == "call",
        })
    }

    /// Returns when the run ended.
    pub(crate) fn end_time(&self) -> SystemTime {
        self.ended
    }

    /// Returns whether the run has no record of its end.
    pub(crate) fn is_call(&self) -> bool {
        self.is_call
    }
}

/// Returns for each run whether it is counted with one of the others: its trace has a run further up that ended no earlier.
/// A part whose composition is not among the runs, because a filter left it out or its process died, counts by itself.
pub(crate) fn counted_by_ancestors(runs: &[&TracePlace]) -> Vec<bool> {
    let mut ends: HashMap<&str, BTreeMap<usize, SystemTime>> = HashMap::new();
    for part in runs.iter().filter(|run| run.depth > 0) {
        ends.entry(&part.trace_id).or_default();
    }
    // Most stores have no compositions.
    if ends.is_empty() {
        return vec![false; runs.len()];
    }
    for run in runs.iter().filter(|run| !run.is_call) {
        if let Some(trace) = ends.get_mut(run.trace_id.as_str()) {
            let last = trace.entry(run.depth).or_insert(run.ended);
            *last = run.ended.max(*last);
        }
    }
    let is_above = |run: &TracePlace| {
        let trace = ends.get(run.trace_id.as_str()).filter(|_| !run.is_call);
        trace.is_some_and(|trace| trace.range(..run.depth).any(|(_, last)| *last >= run.ended))
    };
    runs.iter().map(|run| is_above(run)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn place(trace_id: &str, depth: usize, second: u64, is_call: bool) -> TracePlace {
        let ended = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        TracePlace { trace_id: trace_id.to_owned(), depth, ended, is_call }
    }

    #[test]
    fn a_part_is_counted_with_a_run_above_it_and_else_by_itself() {
        let runs = [
            place("whole", 1, 1, false),
            place("whole", 2, 2, false),
            place("whole", 0, 3, false),
            // Its composition died, and a later call of the same trace is not its end.
            place("died", 1, 1, false),
            place("died", 0, 2, true),
            // A composition of the same trace that had ended before.
            place("again", 0, 1, false),
            place("again", 1, 2, false),
            // The filter left the outermost run out.
            place("inner", 2, 1, false),
            place("inner", 1, 2, false),
        ];
        let runs: Vec<&TracePlace> = runs.iter().collect();
        let expected = [true, true, false, false, false, false, false, true, false];
        assert_eq!(counted_by_ancestors(&runs), expected);
        assert_eq!(counted_by_ancestors(&runs[2..3]), [false]);
    }
}
