//! A cache of calibration curves, fitted from the decisions in the store. A curve is refitted when there are more
//! decisions, from any process. Decisions of other processes are noticed within a second, because a query before
//! every answer would be too slow. If the store is busy, the cached curve is used.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cognitive_contract::lock::Lock;
use cognitive_ports::review::calibration::CheckedAnswer;
use cognitive_ports::review::{CalibrationCurve, Verdict};

use crate::error::Problem;
use crate::sql::{SqlRow, SqlSession, all, number, values};
use crate::store::Store;

/// The number of newest decisions for a curve, because models and prompts change.
const WINDOW: i64 = 1_000;
/// The most decisions in a report. A report is computed while the request waits.
const REPORTED: i64 = 100_000;
/// The refresh interval for decisions of other processes. A query for each answer would slow down every run.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The most modules in the cache. Callers decide how many modules there are.
const MODULES: usize = 1_000;

/// The cached curves by module.
#[derive(Debug)]
pub(super) struct CurveCache {
    modules: Lock<HashMap<String, ModuleCurves>>,
    look_again: Duration,
}

impl Default for CurveCache {
    fn default() -> Self {
        Self::with_recheck(LOOK_AGAIN)
    }
}

/// The curves of one module by model, because calibration differs between models.
#[derive(Debug, Clone, Default)]
struct ModuleCurves {
    /// The newest decision about the module in the curves.
    newest: i64,
    /// The time of the last refresh; `None` if there are certainly newer decisions.
    asked: Option<Instant>,
    of_model: HashMap<String, Option<CalibrationCurve>>,
}

impl CurveCache {
    pub(super) fn with_recheck(look_again: Duration) -> Self {
        Self { modules: Lock::default(), look_again }
    }

    pub(super) fn at(&self, store: &Store, module: &str, model: &str, confidence: f64) -> Option<f64> {
        let known = {
            let mut modules = self.modules.lock();
            let known = modules.get_mut(module);
            let is_fresh =
                |curves: &ModuleCurves| curves.asked.is_some_and(|at| at.elapsed() < self.look_again);
            if let Some(fresh) = known.as_deref().filter(|curves| is_fresh(curves)) {
                return fresh.at(model, confidence);
            }
            known.map(|curves| {
                // Only this thread refreshes; others use the cached curves meanwhile.
                curves.asked = Some(Instant::now());
                curves.newest
            })
        };
        // The first query for a module waits; a refresh does not.
        let read = |session: &mut dyn SqlSession| newer(session, module, known.unwrap_or(-1));
        let found = match known {
            None => store.look(read).ok().flatten(),
            Some(_) => store.glance(read).flatten(),
        };
        let mut modules = self.modules.lock();
        if let Some(curves) = found {
            if modules.len() >= MODULES {
                modules.clear();
            }
            modules.insert(module.to_owned(), curves);
        }
        modules.get(module)?.at(model, confidence)
    }

    /// Marks a module with a new decision for refresh at the next query.
    pub(super) fn mark_stale(&self, module: &str) {
        if let Some(curves) = self.modules.lock().get_mut(module) {
            curves.asked = None;
        }
    }
}

impl ModuleCurves {
    fn at(&self, model: &str, confidence: f64) -> Option<f64> {
        self.of_model.get(model)?.as_ref()?.at(confidence)
    }
}

/// Returns the curves of a module, if there are decisions newer than `known`.
fn newer(session: &mut dyn SqlSession, module: &str, known: i64) -> Result<Option<ModuleCurves>, Problem> {
    let last = "SELECT coalesce(max(seq), 0) FROM decisions WHERE module = ?1";
    let newest = number(session, last, &values![module])?;
    if newest == known {
        return Ok(None);
    }
    let mut of_model: HashMap<String, Vec<CheckedAnswer>> = HashMap::new();
    let newest_of_each =
        "SELECT model, confidence, verdict FROM (SELECT model, confidence, verdict, ok, row_number() OVER
        (PARTITION BY model ORDER BY seq DESC) AS place FROM decisions WHERE module = ?1 AND ok = 1) AS placed
        WHERE place <= ?2";
    let rows = all(session, newest_of_each, &values![module, WINDOW], |row| {
        Ok((row.text(0)?, judgement(row.real(1)?, row.str(2)?)))
    })?;
    for (model, judged) in rows {
        of_model.entry(model).or_default().push(judged);
    }
    let fitted = of_model.into_iter().map(|(model, judged)| (model, CalibrationCurve::fit(&judged)));
    Ok(Some(ModuleCurves { newest, asked: Some(Instant::now()), of_model: fitted.collect() }))
}

fn judgement(confidence: f64, verdict: &str) -> CheckedAnswer {
    (confidence, Verdict::parse(verdict).is_some_and(Verdict::is_right))
}

/// Returns the answers that people judged, oldest first. Failures are not answers.
pub(super) fn judged_answers(
    session: &mut dyn SqlSession,
    module: Option<&str>,
) -> Result<Vec<CheckedAnswer>, Problem> {
    let sql = "SELECT confidence, verdict FROM decisions WHERE ok = 1 AND (module = ?1 OR ?1 IS NULL)
         ORDER BY seq DESC LIMIT ?2";
    let read = |row: &SqlRow| Ok(judgement(row.real(0)?, row.str(1)?));
    let mut judged: Vec<CheckedAnswer> = all(session, sql, &values![module, REPORTED], read)?;
    judged.reverse();
    Ok(judged)
}
