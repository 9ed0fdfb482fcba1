//! Statistics of the records, per module and in total. Percentiles are exact, by nearest rank: half a megabyte of
//! latencies costs less than the explanation of an estimate.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use cognitive_contract::money::Money;
use serde::Serialize;

use super::parts::{TracePlace, counted_by_ancestors};
use super::query::{Filter, SqlFilter, WHERE};
use crate::error::{Problem, StoreError};
use crate::sql::{SqlRow, all};
use crate::store::Store;
use crate::time;

/// Totals of records. A composition includes the tokens and the cost of its parts, so totals skip the parts of a
/// counted run. The figures of a module cover all its runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// All modules together.
    pub total: Figures,
    /// Each module, the busiest first.
    pub modules: Vec<ModuleFigures>,
    /// The end of the first run, as RFC 3339 in UTC.
    pub from: Option<String>,
    /// The end of the last run.
    pub to: Option<String>,
}

/// The figures of one module.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct ModuleFigures {
    /// The name of the module as requested.
    pub module: String,
    /// The figures of the module.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The outcomes of some runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Completed runs, without the parts of other runs among them.
    pub runs: u64,
    /// Completed parts of these runs. Their tokens and cost are included in those of the runs.
    pub parts: u64,
    /// The number of runs that called a model and have no record of their end: their process died, or they are still
    /// in flight.
    pub unfinished: u64,
    /// The number of successes.
    pub succeeded: u64,
    /// `succeeded` as a share of `runs`, from 0 to 1; absent without runs.
    pub success_rate: Option<f64>,
    /// The number of failures for each error code.
    pub codes: BTreeMap<String, u64>,
    /// The median latency.
    pub latency_p50_ms: Option<f64>,
    /// The 95th percentile of the latency.
    pub latency_p95_ms: Option<f64>,
    /// Tokens read, as far as known.
    pub input_tokens: u64,
    /// Tokens written, as far as known.
    pub output_tokens: u64,
    /// The cost of the runs with a known price, in US dollars; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The number of runs that ended in each of 16 equal parts of the time between `from` and `to`.
    pub activity: Vec<u64>,
}

/// The number of time periods in which runs are counted.
const PERIODS: usize = 16;

impl Store {
    /// Computes the totals of the records that match the filter.
    pub fn stats(&self, filter: &Filter) -> Result<Stats, StoreError> {
        let bound = SqlFilter::new(filter);
        let runs = self.look(|session| {
            let sql = format!(
                "SELECT module, ok, code, latency_ms, input_tokens, output_tokens, {}, {} FROM audit
                 WHERE {WHERE} ORDER BY id DESC LIMIT ?16",
                session.dialect().cost(),
                TracePlace::columns(session.dialect())
            );
            all(session, &sql, &bound.values(), RecordedRun::read)
        })?;
        Ok(sum_runs(&runs))
    }
}

struct RecordedRun {
    module: String,
    ok: bool,
    code: Option<String>,
    latency_ms: f64,
    input_tokens: u64,
    output_tokens: u64,
    cost: Option<Money>,
    place: TracePlace,
}

impl RecordedRun {
    fn read(row: &SqlRow) -> Result<Self, Problem> {
        Ok(Self {
            module: row.text(0)?,
            ok: row.is_true(1)?,
            code: row.maybe_text(2)?,
            latency_ms: row.real(3)?,
            input_tokens: row.count(4)?.unwrap_or(0),
            output_tokens: row.count(5)?.unwrap_or(0),
            cost: dollars(row, 6),
            place: TracePlace::read(row, 7)?,
        })
    }
}

/// Returns the amount in a receipt; `None` if the column has another type.
pub(crate) fn dollars(row: &SqlRow, column: usize) -> Option<Money> {
    row.maybe_real(column).ok().flatten().and_then(|amount| Money::parse(&amount.to_string()))
}

fn sum_runs(runs: &[RecordedRun]) -> Stats {
    let mut by_module = BTreeMap::<&str, Vec<&RecordedRun>>::new();
    for run in runs {
        by_module.entry(&run.module).or_default().push(run);
    }
    let ends = || runs.iter().filter(|run| !run.place.is_call()).map(|run| run.place.end_time());
    let (from, to) = (ends().min(), ends().max());
    let period = Period::from_range(from, to);
    let figures = |runs: &[&RecordedRun]| AuditTally::from_runs(runs).finish(&period);
    let mut modules: Vec<ModuleFigures> = by_module
        .iter()
        .map(|(module, runs)| ModuleFigures { module: (*module).to_owned(), figures: figures(runs) })
        .collect();
    modules.sort_by_key(|module| Reverse(module.figures.runs + module.figures.unfinished));
    let total = figures(&runs.iter().collect::<Vec<_>>());
    Stats { total, modules, from: from.map(time::text), to: to.map(time::text) }
}

/// The time span in which runs are counted.
struct Period {
    begin: SystemTime,
    length: Duration,
}

impl Period {
    fn from_range(from: Option<SystemTime>, to: Option<SystemTime>) -> Self {
        let begin = from.unwrap_or(SystemTime::UNIX_EPOCH);
        let length = to.and_then(|end| end.duration_since(begin).ok());
        Self { begin, length: length.unwrap_or_default().max(Duration::from_millis(1)) }
    }

    /// Counts the times in each part.
    fn counts(&self, ends: &[SystemTime]) -> Vec<u64> {
        let mut counts = vec![0; PERIODS];
        for end in ends {
            let since = end.duration_since(self.begin).unwrap_or_default();
            let share = since.as_millis().saturating_mul(PERIODS as u128) / self.length.as_millis().max(1);
            let place = usize::try_from(share).unwrap_or(usize::MAX).min(PERIODS - 1);
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        }
        counts
    }
}

/// Figures under construction.
#[derive(Default)]
struct AuditTally {
    figures: Figures,
    latencies: Vec<f64>,
    ends: Vec<SystemTime>,
}

impl AuditTally {
    fn from_runs(runs: &[&RecordedRun]) -> Self {
        let places: Vec<&TracePlace> = runs.iter().map(|run| &run.place).collect();
        let mut tally = Self::default();
        for (run, is_part) in runs.iter().zip(counted_by_ancestors(&places)) {
            if is_part {
                tally.figures.parts += 1;
            } else {
                tally.add(run);
            }
        }
        tally
    }

    fn add(&mut self, run: &RecordedRun) {
        let figures = &mut self.figures;
        if run.place.is_call() {
            figures.unfinished += 1;
            return;
        }
        figures.runs += 1;
        figures.succeeded += u64::from(run.ok);
        figures.input_tokens = figures.input_tokens.saturating_add(run.input_tokens);
        figures.output_tokens = figures.output_tokens.saturating_add(run.output_tokens);
        if let Some(cost) = run.cost {
            figures.cost = Some(figures.cost.unwrap_or_default().plus(cost));
        }
        if let Some(code) = &run.code {
            *figures.codes.entry(code.clone()).or_default() += 1;
        }
        self.latencies.push(run.latency_ms);
        self.ends.push(run.place.end_time());
    }

    fn finish(mut self, period: &Period) -> Figures {
        self.latencies.sort_by(f64::total_cmp);
        Figures {
            success_rate: rate(self.figures.succeeded, self.figures.runs),
            latency_p50_ms: percentile(&self.latencies, 50),
            latency_p95_ms: percentile(&self.latencies, 95),
            activity: period.counts(&self.ends),
            ..self.figures
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are never 2^53 runs")]
fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Returns the percentile by nearest rank: the smallest value that at least `percent` of all values do not exceed.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = sorted.len().checked_mul(percent)?.div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_in_equal_parts_of_the_time() {
        let at = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let period = Period::from_range(Some(at(0)), Some(at(32)));
        let counts = period.counts(&[at(0), at(1), at(2), at(31), at(32)]);
        assert_eq!((counts.len(), counts[0], counts[1], counts[15]), (16, 2, 1, 2));
        assert_eq!(Period::from_range(Some(at(0)), Some(at(0))).counts(&[at(0)])[0], 1);
        assert_eq!(Period::from_range(None, None).counts(&[]), vec![0; 16]);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&numbers, 50), Some(50.0));
        assert_eq!(percentile(&numbers, 95), Some(95.0));
        assert_eq!(percentile(&[15.0, 20.0, 35.0, 40.0, 50.0], 50), Some(35.0));
        assert_eq!(percentile(&[15.0, 20.0, 35.0, 40.0, 50.0], 95), Some(50.0));
        assert_eq!(percentile(&[7.0], 50), Some(7.0));
        assert_eq!(percentile(&[], 95), None);
    }
}
