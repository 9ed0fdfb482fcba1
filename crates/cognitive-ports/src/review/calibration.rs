//! Calibrates stated confidence: fits a curve to pairs of a confidence and a verdict. Knows no module and no store.
//!
//! The curve is logistic over the log odds of the stated confidence, with shrinkage. It starts as the stated confidence
//! and moves only as far as decisions support. In simulations (`calibration/tests.rs`) it is closer to the truth than
//! isotonic regression, with 30 decisions and with 200. Only for a truth with a step is isotonic regression better. The
//! curve gives no value outside the range of decided confidences, and none with fewer than [`MIN_DECISIONS`].

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;

/// Minimum number of decisions for a curve. With fewer, calibration would make good confidences worse.
pub const MIN_DECISIONS: usize = 30;
/// Number of groups of equal width in the report.
pub const BINS: usize = 10;
/// The distance beyond the decided confidences at which the curve still gives a value.
const MARGIN: f64 = 0.02;
/// Penalty weights of intercept and slope: the inverse variances of Gaussian priors with means 0 and 1 and standard
/// deviations 1.5 and 1.
const PENALTY: (f64, f64) = (1.0 / (1.5 * 1.5), 1.0);
/// A stated 0 or 1 has no finite log odds; it is clamped to this distance from the end.
const EDGE: f64 = 0.01;
/// Step limit of the fit; higher than it ever needs.
const STEPS: usize = 50;
/// The smallest fraction of a step to try.
const SHORTEST: f64 = 1e-6;
/// Number of folds of the cross-validation.
const FOLDS: usize = 5;
/// Number of points of a drawn curve.
const POINTS: u8 = 21;

/// An answer that was reviewed: its stated confidence, and whether it was right.
pub type CheckedAnswer = (f64, bool);

/// A curve that maps stated confidences to shares of right answers.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationCurve {
    intercept: f64,
    slope: f64,
    lowest: f64,
    highest: f64,
}

impl CalibrationCurve {
    /// Fits the curve to these answers; `None` if there are too few.
    #[must_use]
    pub fn fit(answers: &[CheckedAnswer]) -> Option<Self> {
        if answers.len() < MIN_DECISIONS {
            return None;
        }
        let stated = || answers.iter().map(|(stated, _)| *stated);
        let (intercept, slope) = most_likely(answers);
        Some(Self {
            intercept,
            slope,
            lowest: stated().fold(f64::INFINITY, f64::min) - MARGIN,
            highest: stated().fold(f64::NEG_INFINITY, f64::max) + MARGIN,
        })
    }

    /// Returns the share of right answers at this stated confidence; `None` outside the range of decided confidences.
    #[must_use]
    pub fn at(&self, stated: f64) -> Option<f64> {
        (self.lowest..=self.highest).contains(&stated).then(|| self.value(stated))
    }

    fn value(&self, stated: f64) -> f64 {
        logistic(self.intercept + self.slope * log_odds(stated))
    }

    /// The points to draw, within the range of decided confidences.
    #[must_use]
    pub fn points(&self) -> Vec<(f64, f64)> {
        let (from, to) = ((self.lowest + MARGIN).max(0.0), (self.highest - MARGIN).min(1.0));
        let at = |point: u8| from + (to - from) * f64::from(point) / f64::from(POINTS - 1);
        (0..POINTS).map(at).map(|stated| (stated, self.value(stated))).collect()
    }
}

fn logistic(number: f64) -> f64 {
    1.0 / (1.0 + (-number).exp())
}

fn log_odds(stated: f64) -> f64 {
    let stated = stated.clamp(EDGE, 1.0 - EDGE);
    (stated / (1.0 - stated)).ln()
}

/// Finds the most likely intercept and slope by Newton's method. The function is convex. A step that does not decrease
/// the cost is halved until it does, because plain steps can cycle forever.
fn most_likely(answers: &[CheckedAnswer]) -> (f64, f64) {
    let mut here = (0.0, 1.0);
    let mut height = cost(answers, here);
    for _ in 0..STEPS {
        let step = newton_step(answers, here);
        let mut scale = 1.0;
        let (there, lower) = loop {
            let there = (here.0 + scale * step.0, here.1 + scale * step.1);
            let lower = cost(answers, there);
            if lower <= height || scale < SHORTEST {
                break (there, lower);
            }
            scale /= 2.0;
        };
        // NaN, or no decrease even with the smallest step: the limit of floating-point precision.
        if lower.partial_cmp(&height) != Some(Ordering::Less) {
            break;
        }
        (here, height) = (there, lower);
    }
    here
}

/// The negative log-likelihood of the answers, plus the penalty for distance from the stated confidence.
fn cost(answers: &[CheckedAnswer], (intercept, slope): (f64, f64)) -> f64 {
    let missed = |(stated, right): &CheckedAnswer| {
        let odds = intercept + slope * log_odds(*stated);
        let against = if *right { -odds } else { odds };
        // Equals ln(1 + e^x), without overflow of e^x.
        against.max(0.0) + (-against.abs()).exp().ln_1p()
    };
    let (of_intercept, of_slope) = PENALTY;
    let away = intercept.powi(2) * of_intercept + (slope - 1.0).powi(2) * of_slope;
    answers.iter().map(missed).sum::<f64>() + away / 2.0
}

/// Returns the step to the minimum of the quadratic approximation. The penalty makes the matrix regular.
fn newton_step(answers: &[CheckedAnswer], (intercept, slope): (f64, f64)) -> (f64, f64) {
    let (of_intercept, of_slope) = PENALTY;
    let mut gradient = (-intercept * of_intercept, (1.0 - slope) * of_slope);
    let mut matrix = (of_intercept, 0.0, of_slope);
    for (stated, right) in answers {
        let place = log_odds(*stated);
        let share = logistic(intercept + slope * place);
        let missed = f64::from(u8::from(*right)) - share;
        let weight = share * (1.0 - share);
        gradient = (gradient.0 + missed, gradient.1 + missed * place);
        matrix = (matrix.0 + weight, matrix.1 + weight * place, matrix.2 + weight * place * place);
    }
    let determinant = matrix.0 * matrix.2 - matrix.1 * matrix.1;
    (
        (matrix.2 * gradient.0 - matrix.1 * gradient.1) / determinant,
        (matrix.0 * gradient.1 - matrix.1 * gradient.0) / determinant,
    )
}

/// The results of decisions about confidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CalibrationReport {
    /// Number of decisions about answers.
    pub decisions: u64,
    /// Groups of answers of similar confidence.
    pub bins: Vec<CalibrationBin>,
    /// The expected calibration error: the distance between stated confidence and share of right answers, averaged over
    /// the groups. `None` without decisions.
    pub raw_error: Option<f64>,
    /// The expected calibration error after calibration, by cross-validation; `None` if there is no curve.
    pub calibrated_error: Option<f64>,
    /// Points of the curve, from the lowest to the highest decided confidence; empty if there is no curve.
    #[schemars(with = "Vec<[f64; 2]>")]
    pub curve: Vec<(f64, f64)>,
}

/// The calibration of one module on one model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ModelCalibration {
    /// The module.
    pub module: String,
    /// The model that answered.
    pub model: String,
    /// The results of its newest decisions, the source of `meta.calibrated_confidence`.
    #[serde(flatten)]
    pub report: CalibrationReport,
}

/// Maximum number of decisions per module and model. The oldest are dropped, because models and prompts change.
const WINDOW: usize = 1_000;

/// Reviewed answers by module and model.
#[derive(Debug, Default)]
pub struct JudgedByModel(BTreeMap<(String, String), VecDeque<CheckedAnswer>>);

impl JudgedByModel {
    /// Adds an answer that was reviewed after all others.
    pub fn add(&mut self, module: &str, model: &str, judged: CheckedAnswer) {
        let answers = self.0.entry((module.to_owned(), model.to_owned())).or_default();
        answers.push_back(judged);
        if answers.len() > WINDOW {
            answers.pop_front();
        }
    }

    /// Returns one report for each module and model.
    #[must_use]
    pub fn reports(self) -> Vec<ModelCalibration> {
        let of_pair =
            |((module, model), mut judged): ((String, String), VecDeque<CheckedAnswer>)| ModelCalibration {
                module,
                model,
                report: CalibrationReport::from_answers(judged.make_contiguous()),
            };
        self.0.into_iter().map(of_pair).collect()
    }
}

/// Answers of similar confidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct CalibrationBin {
    /// The lower bound, inclusive.
    pub from: f64,
    /// The upper bound.
    pub to: f64,
    /// Number of answers.
    pub count: u64,
    /// Number of right answers.
    pub right: u64,
    /// The mean confidence; `None` without answers.
    pub mean_confidence: Option<f64>,
}

impl CalibrationReport {
    /// Builds the report of these answers.
    #[must_use]
    pub fn from_answers(answers: &[CheckedAnswer]) -> Self {
        Self {
            decisions: answers.len() as u64,
            bins: bins(answers),
            raw_error: error(answers),
            calibrated_error: out_of_sample(answers).and_then(|unseen| error(&unseen)),
            curve: CalibrationCurve::fit(answers).map(|curve| curve.points()).unwrap_or_default(),
        }
    }
}

/// Returns the expected calibration error over groups of equal width; `None` without answers.
#[must_use]
pub fn error(answers: &[CheckedAnswer]) -> Option<f64> {
    let count: f64 = answers.iter().map(|_| 1.0).sum();
    let apart = |bin: usize| {
        let within = answers.iter().filter(|(stated, _)| bin_of(*stated) == bin);
        within.map(|(stated, right)| stated - f64::from(u8::from(*right))).sum::<f64>().abs()
    };
    (count > 0.0).then(|| (0..BINS).map(apart).sum::<f64>() / count)
}

/// Returns the index of a confidence's group.
fn bin_of(stated: f64) -> usize {
    (1..BINS).take_while(|bin| stated >= edge(*bin)).count()
}

#[expect(clippy::cast_precision_loss, reason = "there are ten")]
fn edge(bin: usize) -> f64 {
    bin as f64 / BINS as f64
}

#[expect(clippy::cast_precision_loss, reason = "there are never 2^53 decisions")]
fn bins(answers: &[CheckedAnswer]) -> Vec<CalibrationBin> {
    let bin = |bin: usize| {
        let within: Vec<&CheckedAnswer> =
            answers.iter().filter(|(stated, _)| bin_of(*stated) == bin).collect();
        let sum: f64 = within.iter().map(|(stated, _)| stated).sum();
        CalibrationBin {
            from: edge(bin),
            to: edge(bin + 1),
            count: within.len() as u64,
            right: within.iter().filter(|(_, right)| *right).count() as u64,
            mean_confidence: (!within.is_empty()).then(|| sum / within.len() as f64),
        }
    };
    (0..BINS).map(bin).collect()
}

/// Returns every answer with the confidence from a curve that was fitted without it.
fn out_of_sample(answers: &[CheckedAnswer]) -> Option<Vec<CheckedAnswer>> {
    let mut found = Vec::with_capacity(answers.len());
    for fold in 0..FOLDS {
        let part = |own: bool| {
            let mine = answers.iter().enumerate().filter(move |(at, _)| (at % FOLDS == fold) == own);
            mine.map(|(_, judged)| *judged).collect::<Vec<CheckedAnswer>>()
        };
        let curve = CalibrationCurve::fit(&part(false))?;
        found.extend(part(true).into_iter().map(|(stated, right)| (curve.value(stated), right)));
    }
    Some(found)
}

#[cfg(test)]
mod tests;
