//! Figures over time. Percentiles are exact, by nearest rank, as those of `cogn audit stats` are.

use std::collections::BTreeMap;
use std::time::Duration;

use cognitive_contract::money::Money;
use cognitive_ports::archive::{RunBucket, RunStats, RunTotals};

use crate::audit::{Filter, SqlFilter, TracePlace, WHERE, counted_by_ancestors, dollars, percentile};
use crate::error::{Problem, StoreError};
use crate::sql::{SqlDialect, SqlRow, all};
use crate::store::Store;
use crate::time;

/// The most parts of the time. A chart has no more pixels for them, and the caller decides the number.
const BUCKETS: usize = 500;
/// The parts of confidence from 0 to 1.
const CONFIDENCES: usize = 20;

/// The counted values of a run.
struct RunFigures {
    place: TracePlace,
    module: String,
    model: String,
    ok: bool,
    code: Option<String>,
    confidence: f64,
    latency_ms: f64,
    tokens: (u64, u64),
    cost: Option<Money>,
}

impl RunFigures {
    fn read(row: &SqlRow) -> Result<Self, Problem> {
        Ok(Self {
            place: TracePlace::read(row, 0)?,
            module: row.text(4)?,
            model: row.text(5)?,
            ok: row.is_true(6)?,
            code: row.maybe_text(7)?,
            confidence: row.real(8)?,
            latency_ms: row.real(9)?,
            tokens: (row.count(10)?.unwrap_or(0), row.count(11)?.unwrap_or(0)),
            cost: dollars(row, 12),
        })
    }
}

pub(super) fn sql(dialect: SqlDialect) -> String {
    format!(
        "SELECT {}, module, model, ok, code, confidence, latency_ms, input_tokens, output_tokens, {}
         FROM audit WHERE {WHERE} ORDER BY ts LIMIT ?16",
        TracePlace::columns(dialect),
        dialect.cost()
    )
}

pub(super) fn load(store: &Store, filter: &Filter, buckets: usize) -> Result<RunStats, StoreError> {
    let bound = SqlFilter::new(filter);
    let runs: Vec<RunFigures> = store.look(|session| {
        let sql = sql(session.dialect());
        all(session, &sql, &bound.values(), RunFigures::read)
    })?;
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(RunStats::default()) };
    let from = filter.since.unwrap_or(first.place.end_time());
    let to = filter.until.unwrap_or(last.place.end_time()).max(from + Duration::from_millis(1));
    let mut stats = RunStats {
        from: Some(time::text(from)),
        to: Some(time::text(to)),
        confidence: vec![0; CONFIDENCES],
        ..RunStats::default()
    };
    let count = buckets.clamp(1, BUCKETS);
    let (mut total, mut parts) = (RunTally::default(), vec![RunTally::default(); count]);
    let length = to.duration_since(from).unwrap_or_default().as_secs_f64();
    let places: Vec<&TracePlace> = runs.iter().map(|run| &run.place).collect();
    for (run, is_part) in runs.iter().zip(counted_by_ancestors(&places)) {
        total.add(run, is_part);
        let share = run.place.end_time().duration_since(from).unwrap_or_default().as_secs_f64() / length;
        if let Some(part) = parts.get_mut(place(share, count)) {
            part.add(run, is_part);
        }
        count_names(&mut stats, run);
    }
    stats.totals = total.finish();
    let width = Duration::from_secs_f64(length).div_f64(f64::from(u32::try_from(count).unwrap_or(1)));
    stats.buckets = parts
        .into_iter()
        .enumerate()
        .map(|(at, part)| {
            let begins = from + width.saturating_mul(u32::try_from(at).unwrap_or(u32::MAX));
            RunBucket { at: time::text(begins), totals: part.finish() }
        })
        .collect();
    Ok(stats)
}

/// Returns the index of the part of 0 to 1 that contains a share.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "bounded by both"
)]
fn place(share: f64, count: usize) -> usize {
    ((share.clamp(0.0, 1.0) * count as f64) as usize).min(count - 1)
}

fn count_names(stats: &mut RunStats, run: &RunFigures) {
    let add = |names: &mut BTreeMap<String, u64>, name: &String| match names.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(names.insert(name.clone(), 1)),
    };
    add(&mut stats.modules, &run.module);
    if !run.model.is_empty() {
        add(&mut stats.models, &run.model);
    }
    if run.place.is_call() {
        return;
    }
    if let Some(code) = &run.code {
        add(&mut stats.codes, code);
    }
    if run.ok
        && let Some(count) = stats.confidence.get_mut(place(run.confidence, CONFIDENCES))
    {
        *count += 1;
    }
}

#[derive(Clone, Default)]
struct RunTally {
    totals: RunTotals,
    latencies: Vec<f64>,
}

impl RunTally {
    fn add(&mut self, run: &RunFigures, is_part: bool) {
        let totals = &mut self.totals;
        if is_part {
            totals.parts += 1;
            return;
        }
        if run.place.is_call() {
            totals.unfinished += 1;
            return;
        }
        totals.runs += 1;
        totals.failures += u64::from(!run.ok);
        totals.input_tokens = totals.input_tokens.saturating_add(run.tokens.0);
        totals.output_tokens = totals.output_tokens.saturating_add(run.tokens.1);
        totals.cost = totals.cost.plus(run.cost.unwrap_or_default());
        self.latencies.push(run.latency_ms);
    }

    fn finish(mut self) -> RunTotals {
        self.latencies.sort_by(f64::total_cmp);
        let [p50_ms, p95_ms, p99_ms] = [50, 95, 99].map(|percent| percentile(&self.latencies, percent));
        RunTotals { p50_ms, p95_ms, p99_ms, ..self.totals }
    }
}
