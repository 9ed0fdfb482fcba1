//! What stated confidences are worth, from the decisions of the store: read when somebody asks, and read again when there
//! are more of them, whichever process made them. Those of another process are seen within a second: to ask before every
//! answer would cost every run a way to the store. A store that is busy is not waited for: what was known before counts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cognitive_contract::review::calibration::Judged;
use cognitive_contract::review::{CalibrationCurve, Verdict};

use crate::error::Problem;
use crate::sql::{SqlRow, SqlSession, all, number, values};
use crate::store::Store;

/// The newest decisions that a curve is made of: models and prompts change.
const WINDOW: i64 = 1_000;
/// The most that a report looks at.
const REPORTED: i64 = 100_000;
/// How long nobody asks whether another process has decided something.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// More modules than these are not remembered at once.
const MODULES: usize = 1_000;

/// The curves of the modules that were asked about.
#[derive(Debug)]
pub(super) struct CurveCache {
    modules: Mutex<HashMap<String, ModuleCurves>>,
    look_again: Duration,
}

impl Default for CurveCache {
    fn default() -> Self {
        Self::looking_after(LOOK_AGAIN)
    }
}

/// The curves of one module, by model: what one model is worth says nothing of another.
#[derive(Debug, Clone, Default)]
struct ModuleCurves {
    /// The last decision about the module that is in them.
    newest: i64,
    /// When somebody last asked for newer ones; nothing, if there are some for certain.
    asked: Option<Instant>,
    of_model: HashMap<String, Option<CalibrationCurve>>,
}

impl CurveCache {
    pub(super) fn looking_after(look_again: Duration) -> Self {
        Self { modules: Mutex::default(), look_again }
    }

    pub(super) fn at(&self, store: &Store, module: &str, model: &str, confidence: f64) -> Option<f64> {
        let known = {
            let mut modules = self.lock();
            let known = modules.get_mut(module);
            let is_fresh =
                |curves: &ModuleCurves| curves.asked.is_some_and(|at| at.elapsed() < self.look_again);
            if let Some(fresh) = known.as_deref().filter(|curves| is_fresh(curves)) {
                return fresh.at(model, confidence);
            }
            known.map(|curves| {
                // One asks for all who come meanwhile.
                curves.asked = Some(Instant::now());
                curves.newest
            })
        };
        // Whoever asks for the first time waits; nobody waits to hear that there is nothing new.
        let read = |session: &mut dyn SqlSession| newer(session, module, known.unwrap_or(-1));
        let found = match known {
            None => store.look(read).ok().flatten(),
            Some(_) => store.glance(read).flatten(),
        };
        let mut modules = self.lock();
        if let Some(curves) = found {
            if modules.len() >= MODULES {
                modules.clear();
            }
            modules.insert(module.to_owned(), curves);
        }
        modules.get(module)?.at(model, confidence)
    }

    /// There is a new decision about a module: whoever asks next looks for it.
    pub(super) fn look_again(&self, module: &str) {
        if let Some(curves) = self.lock().get_mut(module) {
            curves.asked = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, ModuleCurves>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModuleCurves {
    fn at(&self, model: &str, confidence: f64) -> Option<f64> {
        self.of_model.get(model)?.as_ref()?.at(confidence)
    }
}

/// The curves of a module, if there are decisions about it after `known`.
fn newer(session: &mut dyn SqlSession, module: &str, known: i64) -> Result<Option<ModuleCurves>, Problem> {
    let last = "SELECT coalesce(max(seq), 0) FROM decisions WHERE module = ?1";
    let newest = number(session, last, &values![module])?;
    if newest == known {
        return Ok(None);
    }
    let mut of_model: HashMap<String, Vec<Judged>> = HashMap::new();
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

fn judgement(confidence: f64, verdict: &str) -> Judged {
    (confidence, Verdict::parse(verdict).is_some_and(Verdict::is_right))
}

/// The answers that people judged, the oldest first. Failures are no answers.
pub(super) fn judged(session: &mut dyn SqlSession, module: Option<&str>) -> Result<Vec<Judged>, Problem> {
    let sql = "SELECT confidence, verdict FROM decisions WHERE ok = 1 AND (module = ?1 OR ?1 IS NULL)
         ORDER BY seq DESC LIMIT ?2";
    let read = |row: &SqlRow| Ok(judgement(row.real(0)?, row.str(1)?));
    let mut judged: Vec<Judged> = all(session, sql, &values![module, REPORTED], read)?;
    judged.reverse();
    Ok(judged)
}
