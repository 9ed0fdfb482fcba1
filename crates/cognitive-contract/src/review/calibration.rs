//! What a stated confidence was worth: from pairs of a confidence and a verdict to a curve. Knows no module and no store.
//!
//! The curve is a logistic one over the log odds of the stated confidence, and it is shrunk: it begins as the stated
//! confidence itself and leaves it only as far as decisions say so. In simulations (`calibration/tests.rs`) it is nearer to
//! the truth than isotonic regression with 30 decisions and with 200; only a truth with a step in it is met better by
//! steps. It says nothing of confidences outside of those that were decided on, and nothing at all with fewer than
//! [`MIN_DECISIONS`].

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// How many decisions a curve needs at least. Fewer say too little: what was right before would get worse.
pub const MIN_DECISIONS: usize = 30;
/// How many groups of equal width the report has.
pub const BINS: usize = 10;
/// How far beyond the confidences that were decided on the curve still speaks.
const MARGIN: f64 = 0.02;
/// What it costs when intercept and slope lie away from 0 and 1, where they lie before anybody has decided anything: they
/// are expected within 1.5 and 1 of that.
const PENALTY: (f64, f64) = (1.0 / (1.5 * 1.5), 1.0);
/// A stated 0 or 1 has no log odds; it counts as this near to it.
const EDGE: f64 = 0.01;
/// More steps than the fit ever needs.
const STEPS: usize = 50;
/// The shortest part of a step that is tried.
const SHORTEST: f64 = 1e-6;
/// How many parts the decisions are cut into, to judge the curve by those that it was not made of.
const FOLDS: usize = 5;
/// The points of a drawn curve.
const POINTS: u8 = 21;

/// An answer that a person judged: its stated confidence, and whether it was right.
pub type Judged = (f64, bool);

/// A curve from stated confidences to shares of right answers.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationCurve {
    intercept: f64,
    slope: f64,
    lowest: f64,
    highest: f64,
}

impl CalibrationCurve {
    /// The curve of these answers; nothing if they are too few.
    #[must_use]
    pub fn fit(answers: &[Judged]) -> Option<Self> {
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

    /// How often answers of this stated confidence were right; nothing where nobody has decided on any like it.
    #[must_use]
    pub fn at(&self, stated: f64) -> Option<f64> {
        (self.lowest..=self.highest).contains(&stated).then(|| self.value(stated))
    }

    fn value(&self, stated: f64) -> f64 {
        logistic(self.intercept + self.slope * log_odds(stated))
    }

    /// The curve to draw, within what was decided on.
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

/// Intercept and slope that are most likely, by Newton's method. What is sought is the lowest point of a convex function, and
/// a step that does not lead down is halved until it does: plain steps can go round in circles for ever.
fn most_likely(answers: &[Judged]) -> (f64, f64) {
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
        // Not a number, or not lower even by the shortest step: this is as low as numbers tell apart.
        if lower.partial_cmp(&height) != Some(Ordering::Less) {
            break;
        }
        (here, height) = (there, lower);
    }
    here
}

/// How unlikely the answers are with this curve, and how far it is from the stated confidence.
fn cost(answers: &[Judged], (intercept, slope): (f64, f64)) -> f64 {
    let missed = |(stated, right): &Judged| {
        let odds = intercept + slope * log_odds(*stated);
        let against = if *right { -odds } else { odds };
        // The same as ln(1 + e^x), also where e^x would be too large.
        against.max(0.0) + (-against.abs()).exp().ln_1p()
    };
    let (of_intercept, of_slope) = PENALTY;
    let away = intercept.powi(2) * of_intercept + (slope - 1.0).powi(2) * of_slope;
    answers.iter().map(missed).sum::<f64>() + away / 2.0
}

/// Where the lowest point would be if the function were a parabola. The penalty makes the matrix regular.
fn newton_step(answers: &[Judged], (intercept, slope): (f64, f64)) -> (f64, f64) {
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

/// What decisions say about confidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CalibrationReport {
    /// How many decisions about answers there are.
    pub decisions: u64,
    /// Groups of answers of about the same confidence.
    pub bins: Vec<CalibrationBin>,
    /// How far stated confidence and share of right answers are apart, on average over the groups; nothing without
    /// decisions.
    pub raw_error: Option<f64>,
    /// The same for the curve, judged by decisions that it was not made of; nothing where there is no curve.
    pub calibrated_error: Option<f64>,
    /// Points of the curve, from the lowest to the highest confidence that was decided on; empty where there is none.
    pub curve: Vec<(f64, f64)>,
}

/// What decisions say about one module on one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelCalibration {
    /// The module.
    pub module: String,
    /// The model that answered.
    pub model: String,
    /// What its newest decisions say: those that `meta.calibrated_confidence` comes from.
    #[serde(flatten)]
    pub report: CalibrationReport,
}

/// How many decisions about a module and a model count, the newest first: models and prompts change.
const WINDOW: usize = 1_000;

/// Answers that were judged, each by the module and the model that it belongs to.
#[derive(Debug, Default)]
pub struct JudgedByModel(BTreeMap<(String, String), VecDeque<Judged>>);

impl JudgedByModel {
    /// Takes one more, which was judged after all others.
    pub fn add(&mut self, module: &str, model: &str, judged: Judged) {
        let answers = self.0.entry((module.to_owned(), model.to_owned())).or_default();
        answers.push_back(judged);
        if answers.len() > WINDOW {
            answers.pop_front();
        }
    }

    /// What they say: of each module and model by itself.
    #[must_use]
    pub fn reports(self) -> Vec<ModelCalibration> {
        let of_pair = |((module, model), mut judged): ((String, String), VecDeque<Judged>)| {
            ModelCalibration { module, model, report: CalibrationReport::of(judged.make_contiguous()) }
        };
        self.0.into_iter().map(of_pair).collect()
    }
}

/// Answers of about the same confidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CalibrationBin {
    /// From this confidence on.
    pub from: f64,
    /// Up to this one.
    pub to: f64,
    /// How many answers.
    pub count: u64,
    /// How many of them were right.
    pub right: u64,
    /// Their confidence on average; nothing if there are none.
    pub mean_confidence: Option<f64>,
}

impl CalibrationReport {
    /// What these answers say.
    #[must_use]
    pub fn of(answers: &[Judged]) -> Self {
        Self {
            decisions: answers.len() as u64,
            bins: bins(answers),
            raw_error: error(answers),
            calibrated_error: unseen(answers).and_then(|unseen| error(&unseen)),
            curve: CalibrationCurve::fit(answers).map(|curve| curve.points()).unwrap_or_default(),
        }
    }
}

/// How far confidence and share of right answers are apart, on average over groups of equal width. Nothing without answers.
#[must_use]
pub fn error(answers: &[Judged]) -> Option<f64> {
    let count: f64 = answers.iter().map(|_| 1.0).sum();
    let apart = |bin: usize| {
        let within = answers.iter().filter(|(stated, _)| bin_of(*stated) == bin);
        within.map(|(stated, right)| stated - f64::from(u8::from(*right))).sum::<f64>().abs()
    };
    (count > 0.0).then(|| (0..BINS).map(apart).sum::<f64>() / count)
}

/// Which group a confidence belongs to.
fn bin_of(stated: f64) -> usize {
    (1..BINS).take_while(|bin| stated >= edge(*bin)).count()
}

#[expect(clippy::cast_precision_loss, reason = "there are ten")]
fn edge(bin: usize) -> f64 {
    bin as f64 / BINS as f64
}

#[expect(clippy::cast_precision_loss, reason = "there are never 2^53 decisions")]
fn bins(answers: &[Judged]) -> Vec<CalibrationBin> {
    let bin = |bin: usize| {
        let within: Vec<&Judged> = answers.iter().filter(|(stated, _)| bin_of(*stated) == bin).collect();
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

/// Every answer with the confidence that a curve gives it which was made without it.
fn unseen(answers: &[Judged]) -> Option<Vec<Judged>> {
    let mut found = Vec::with_capacity(answers.len());
    for fold in 0..FOLDS {
        let part = |own: bool| {
            let mine = answers.iter().enumerate().filter(move |(at, _)| (at % FOLDS == fold) == own);
            mine.map(|(_, judged)| *judged).collect::<Vec<Judged>>()
        };
        let curve = CalibrationCurve::fit(&part(false))?;
        found.extend(part(true).into_iter().map(|(stated, right)| (curve.value(stated), right)));
    }
    Some(found)
}

#[cfg(test)]
mod tests;
