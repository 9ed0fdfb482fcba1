//! What stated confidences are worth, from the decisions of the store: read when somebody asks, and read again when there
//! are more of them, whichever process made them. A store that is busy is not waited for: what was known before counts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cognitive_contract::review::calibration::Judged;
use cognitive_contract::review::{CalibrationCurve, Verdict};
use rusqlite::Connection;

use crate::store::Store;

/// The newest decisions that a curve is made of: models and prompts change.
const WINDOW: i64 = 1_000;
/// The most that a report looks at.
const REPORTED: i64 = 100_000;
/// More modules than these are not remembered at once.
const MODULES: usize = 1_000;

/// The curves of the modules that were asked about.
#[derive(Debug, Default)]
pub(super) struct CurveCache(Mutex<HashMap<String, ModuleCurves>>);

/// The curves of one module, by model: what one model is worth says nothing of another.
#[derive(Debug, Clone, Default)]
struct ModuleCurves {
    /// The last decision about the module that is in them.
    newest: i64,
    of_model: HashMap<String, Option<CalibrationCurve>>,
}

impl CurveCache {
    pub(super) fn at(&self, store: &Store, module: &str, model: &str, confidence: f64) -> Option<f64> {
        let known = self.lock().get(module).map(|curves| curves.newest);
        // Whoever asks for the first time waits; nobody waits to hear that there is nothing new.
        let read = |connection: &mut Connection| newer(connection, module, known.unwrap_or(-1));
        let found = match known {
            None => store.with(read).ok().flatten(),
            Some(_) => store.with_at_once(read).flatten(),
        };
        let mut modules = self.lock();
        if let Some(curves) = found {
            if modules.len() >= MODULES {
                modules.clear();
            }
            modules.insert(module.to_owned(), curves);
        }
        modules.get(module)?.of_model.get(model)?.as_ref()?.at(confidence)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, ModuleCurves>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The curves of a module, if there are decisions about it after `known`.
fn newer(connection: &Connection, module: &str, known: i64) -> rusqlite::Result<Option<ModuleCurves>> {
    let last = "SELECT coalesce(max(seq), 0) FROM decisions WHERE module = ?1";
    let newest: i64 = connection.prepare_cached(last)?.query_row([module], |row| row.get(0))?;
    if newest == known {
        return Ok(None);
    }
    let mut of_model: HashMap<String, Vec<Judged>> = HashMap::new();
    let mut statement = connection.prepare_cached(
        "SELECT model, confidence, verdict FROM (SELECT model, confidence, verdict, ok, row_number() OVER
            (PARTITION BY model ORDER BY seq DESC) AS place FROM decisions WHERE module = ?1 AND ok = 1) WHERE place <= ?2",
    )?;
    let rows = statement.query_map((module, WINDOW), |row| {
        Ok((row.get::<_, String>(0)?, judgement(row.get(1)?, row.get_ref(2)?.as_str()?)))
    })?;
    for row in rows {
        let (model, judged) = row?;
        of_model.entry(model).or_default().push(judged);
    }
    let fitted = of_model.into_iter().map(|(model, judged)| (model, CalibrationCurve::fit(&judged)));
    Ok(Some(ModuleCurves { newest, of_model: fitted.collect() }))
}

fn judgement(confidence: f64, verdict: &str) -> Judged {
    (confidence, Verdict::parse(verdict).is_some_and(Verdict::is_right))
}

/// The answers that people judged, the oldest first. Failures are no answers.
pub(super) fn judged(connection: &Connection, module: Option<&str>) -> rusqlite::Result<Vec<Judged>> {
    let mut statement = connection.prepare_cached(
        "SELECT confidence, verdict FROM decisions WHERE ok = 1 AND (?1 IS NULL OR module = ?1)
         ORDER BY seq DESC LIMIT ?2",
    )?;
    let rows = statement
        .query_map((module, REPORTED), |row| Ok(judgement(row.get(0)?, row.get_ref(1)?.as_str()?)))?;
    let mut judged: Vec<Judged> = rows.collect::<rusqlite::Result<_>>()?;
    judged.reverse();
    Ok(judged)
}
