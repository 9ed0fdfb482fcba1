//! Trains heads for the decisions of a module from labelled cases: on the state of the model after each question and
//! the right answer. The weights of the model do not change; a head is a few rows of numbers per decision. Its accuracy
//! is always measured on cases that it was not trained on.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use cognitive_contract::lock::Lock;
use cognitive_contract::trained_model::{
    ClassResult, FOUND, StateReader, StateRow, TrainedCurve, TrainedHead, TrainedModel, TrainingCase,
    TrainingProgress, TrainingReport, WantedValue,
};
use cognitive_llama::FeedError;
use serde_json::Value;

use super::DecisionRequest;
use super::calibration::Curve;
use super::heads::normalise;
use super::judge::DecisionJudge;
use super::logistic::LogisticModel;
use super::question::{self, DecisionKind, DecisionQuestion};
use super::question_prefix::QuestionPrefix;
use super::scale::Scale;
use crate::model::ModelState;

/// The least number of cases of a decision; fewer say nothing about the next one.
const MIN_CASES: usize = 30;
/// The least number of cases of two answers at least. Each fold needs one. Further answers may be rarer.
const MIN_OF_CLASS: usize = 5;
/// The number of folds; each is judged by a model that was trained on the others.
const PARTS: usize = 5;
/// The penalties that are tried against overfitting, per case; see [`LogisticModel::fit`].
const PENALTIES: [f32; 4] = [0.15, 0.5, 1.7, 5.0];
/// States are tried from the middle of the model to its end, in eighths of its layers.
const EIGHTHS: [usize; 5] = [4, 5, 6, 7, 8];
/// The number of cases that are read in parallel.
const AT_ONCE: usize = 8;

/// The input of a training.
pub(crate) struct LessonPlan<'a> {
    /// The name of the model, and the hash of its weights.
    pub model: (&'a str, &'a str),
    pub cases: &'a [TrainingCase],
    pub progress: &'a (dyn Fn(TrainingProgress) + Sync),
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// All training data of one decision.
#[derive(Default)]
struct Lesson {
    /// The keyword `x-decide`.
    decide: Value,
    kind: LessonKind,
    /// The layers after which states are tried.
    layers: Vec<usize>,
    rows: Vec<LessonRow>,
}

#[derive(Default, PartialEq)]
enum LessonKind {
    /// The candidates come from the input: only the curve for leads can be learned.
    #[default]
    Listed,
    /// One of these classes.
    Fixed(Vec<String>),
    /// The existence of a piece, and the accuracy of the likeliest one.
    Piece,
}

struct LessonRow {
    /// The number of the case.
    case: usize,
    /// The fold of the case.
    part: usize,
    /// The states that are tried, each normalised to mean square 1.
    states: Vec<Vec<f32>>,
    class: usize,
    /// The weight of the model's own judgement, and whether it was right.
    judged: Option<(f64, bool)>,
}

/// A training of one model.
pub(crate) struct Training<'a, 'r, B> {
    /// The basis of decisions; its input is ignored.
    pub request: &'a DecisionRequest<'r>,
    /// See [`Decisions::make`](super::Decisions::make).
    pub begin: B,
}

impl<T: ModelState, B: Fn(&[u32]) -> T + Sync> Training<'_, '_, B> {
    /// Reads all cases and learns from them.
    pub(crate) fn run(&self, plan: &LessonPlan<'_>) -> Result<TrainingReport, FeedError> {
        let (lessons, too_long) = self.read(plan)?;
        let trained = TrainedModel::new(plan.model.0, plan.model.1);
        let (left_out, classes) = (BTreeMap::new(), BTreeMap::new());
        let mut report = TrainingReport { trained, left_out, too_long, classes };
        let count = lessons.len();
        for (index, (path, lesson)) in lessons.into_iter().enumerate() {
            match lesson.learn(plan.stop)? {
                Ok((head, classes)) => {
                    report.classes.insert(path.clone(), classes);
                    report.trained.heads.insert(path, head);
                }
                Err(why) => drop(report.left_out.insert(path, why)),
            }
            (plan.progress)(TrainingProgress::Learned(index + 1, count));
        }
        Ok(report)
    }

    /// Reads several cases in parallel, so that every weight of the model is read once for all of them.
    fn read(&self, plan: &LessonPlan<'_>) -> Result<(BTreeMap<String, Lesson>, usize), FeedError> {
        let (next, done, too_long) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let lessons: Lock<BTreeMap<String, Lesson>> = Lock::default();
        let is_stopped = || (plan.stop)();
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = plan.cases.get(number) else { return Ok(()) };
                match self.read_case(number, case, &is_stopped) {
                    Ok(found) => {
                        let mut lessons = lessons.lock();
                        for (path, found) in found {
                            let lesson = lessons.entry(path).or_default();
                            (lesson.decide, lesson.kind, lesson.layers) =
                                (found.decide, found.kind, found.layers);
                            lesson.rows.extend(found.rows);
                        }
                    }
                    Err(FeedError::Full) => drop(too_long.fetch_add(1, Ordering::Relaxed)),
                    Err(FeedError::Cancelled) => return Err(FeedError::Cancelled),
                }
                (plan.progress)(TrainingProgress::Read(done.fetch_add(1, Ordering::Relaxed) + 1));
            }
        };
        let ended = std::thread::scope(|scope| {
            let others: Vec<_> = (1..AT_ONCE).map(|_| scope.spawn(work)).collect();
            let mine = work();
            // A panicked thread has lost its case, so the training must not continue silently without it.
            let ended =
                |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            others.into_iter().map(ended).fold(mine, Result::and)
        });
        ended?;
        let mut lessons = lessons.into_inner();
        // Sorted, so that the same cases give the same result regardless of thread timing.
        for lesson in lessons.values_mut() {
            lesson.rows.sort_by_key(|row| row.case);
        }
        Ok((lessons, too_long.into_inner()))
    }

    /// Returns the training data of one case for each decision with a known answer.
    fn read_case(
        &self,
        number: usize,
        case: &TrainingCase,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<(String, Lesson)>, FeedError> {
        let request = self.request;
        let asking = QuestionPrefix::new(request);
        let (mut weighed, mut asked) = ((self.begin)(&[]), (self.begin)(&asking.common_tokens()));
        let mut judge = DecisionJudge {
            profile: request.profile,
            weighing: Scale::new(&mut weighed, request.vocabulary, stop),
            asked: Scale::new(&mut asked, request.vocabulary, stop),
            asking: &asking,
            trained: None,
        };
        let mut found = Vec::new();
        let input = serde_json::from_str(&case.input).unwrap_or_default();
        for question in question::all(request.schema, &input) {
            let path = question.path.join(".");
            let Some(wanted) = case.wanted.get(&path) else { continue };
            if let Some((kind, class, judged)) = judge_case(&mut judge, &question, wanted)? {
                let states = match kind {
                    LessonKind::Listed => Vec::new(),
                    LessonKind::Fixed(_) | LessonKind::Piece => judge.states(&question)?,
                };
                let layers = layers(states.len());
                let tried = layers.iter().filter_map(|layer| states.get(layer - 1));
                let states: Vec<Vec<f32>> = tried.map(|state| normalise(state)).collect();
                if !states.iter().flatten().all(|number| number.is_finite()) {
                    continue;
                }
                let row = LessonRow { case: number, part: part_of(&case.input), states, class, judged };
                let decide = question.wish.clone();
                found.push((path, Lesson { decide, kind, layers, rows: vec![row] }));
            }
        }
        Ok(found)
    }
}

/// See [`judge_case`].
type JudgedCase = (LessonKind, usize, Option<(f64, bool)>);

/// Returns the kind of decision, the right class, and the model's own judgement if needed. Cases without a right answer
/// of that kind are skipped.
fn judge_case(
    judge: &mut DecisionJudge<'_>,
    question: &DecisionQuestion<'_>,
    wanted: &WantedValue,
) -> Result<Option<JudgedCase>, FeedError> {
    let is_right = |value: &Option<String>| match (value, wanted) {
        (Some(value), WantedValue::OneOf(texts)) => texts.contains(value),
        (None, WantedValue::Nothing) => true,
        _ => false,
    };
    match (&question.kind, wanted) {
        (DecisionKind::Choice(candidates), WantedValue::OneOf(texts)) if question.is_fixed => {
            let [text] = texts.as_slice() else { return Ok(None) };
            let class = candidates.iter().position(|candidate| candidate == text);
            Ok(class.map(|class| (LessonKind::Fixed(candidates.clone()), class, None)))
        }
        (DecisionKind::Choice(_), WantedValue::OneOf(_)) => {
            let decided = judge.decide(question)?;
            let Some(decision) = decided.first() else { return Ok(None) };
            Ok(Some((LessonKind::Listed, 0, Some((decision.weight, is_right(&decision.value))))))
        }
        (DecisionKind::Piece { .. }, WantedValue::Nothing) => Ok(Some((LessonKind::Piece, 1, None))),
        (DecisionKind::Piece { .. }, WantedValue::OneOf(_)) => {
            let found = judge.find(question)?;
            Ok(Some((LessonKind::Piece, 0, Some((found.weight, is_right(&found.piece))))))
        }
        _ => Ok(None),
    }
}

/// Returns the fold of an input. It depends on a hash of the text (FNV-1a), so the same text is never in training and
/// test data.
fn part_of(input: &str) -> usize {
    let letters = input.trim().to_lowercase();
    let hash = letters.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    usize::try_from((hash >> 32) % PARTS as u64).unwrap_or_default()
}

/// Returns the layers after which states are tried, for a model with this many layers.
fn layers(count: usize) -> Vec<usize> {
    let mut layers: Vec<usize> = EIGHTHS.iter().map(|eighth| (count * eighth).div_ceil(8)).collect();
    layers.retain(|layer| *layer > 0);
    layers.dedup();
    layers
}

impl Lesson {
    /// Returns the trained head, or the reason why there is none.
    fn learn(
        &self,
        stop: &dyn Fn() -> bool,
    ) -> Result<Result<(TrainedHead, Vec<ClassResult>), String>, FeedError> {
        let classes = match &self.kind {
            LessonKind::Listed => Vec::new(),
            LessonKind::Fixed(classes) => classes.clone(),
            LessonKind::Piece => FOUND.map(str::to_owned).to_vec(),
        };
        if let Some(why) = self.lacks(&classes) {
            return Ok(Err(why));
        }
        if self.kind == LessonKind::Listed {
            let rows = self.own_judgements();
            let right = rows.iter().filter(|(_, right)| *right).count();
            return Ok(Ok((self.head(right, None, &rows, None), Vec::new())));
        }
        let best = self.best_trial(classes.len(), stop)?;
        let right = best.outcomes.iter().filter(|(_, right)| *right).count();
        let results = self.results(&classes, &best.right);
        let reads = self.reader(classes, best.layer, best.penalty);
        let piece_curve = (self.kind == LessonKind::Piece).then(|| Curve::fit(&self.own_judgements()));
        Ok(Ok((self.head(right, Some(reads), &best.outcomes, piece_curve), results)))
    }

    /// Returns the cases of each class, and how many of them were right while unseen.
    fn results(&self, classes: &[String], right: &[usize]) -> Vec<ClassResult> {
        let result = |(index, class): (usize, &String)| ClassResult {
            class: class.clone(),
            cases: self.count(index),
            right: right.iter().filter(|right| **right == index).count(),
        };
        classes.iter().enumerate().map(result).collect()
    }

    fn count(&self, class: usize) -> usize {
        self.rows.iter().filter(|row| row.class == class).count()
    }

    /// Returns why nothing can be learned from these cases.
    fn lacks(&self, classes: &[String]) -> Option<String> {
        let cases = self.rows.len();
        if cases < MIN_CASES {
            return Some(format!("too few cases: {cases}, at least {MIN_CASES} are needed"));
        }
        if self.kind != LessonKind::Listed && self.layers.is_empty() {
            return Some("the model does not support this question".to_owned());
        }
        // A rare value does not keep the others from being learned, but two are needed to tell anything apart.
        let mut counted: Vec<(usize, &String)> =
            classes.iter().enumerate().map(|(index, class)| (self.count(index), class)).collect();
        counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let (count, class) = counted.get(1).filter(|(count, _)| *count < MIN_OF_CLASS)?;
        Some(format!("too few cases of `{class}`: {count}, at least {MIN_OF_CLASS} are needed"))
    }

    /// Returns the model's own judgements. A choice with a single candidate teaches nothing.
    fn own_judgements(&self) -> Vec<(f64, bool)> {
        self.rows.iter().filter_map(|row| row.judged).filter(|(weight, _)| weight.is_finite()).collect()
    }

    fn head(
        &self,
        right: usize,
        reads: Option<StateReader>,
        outcomes: &[(f64, bool)],
        piece_curve: Option<Curve>,
    ) -> TrainedHead {
        let written = |Curve { slope, offset }: Curve| {
            let short = |number: f64| (number * 1e4).round() / 1e4;
            TrainedCurve { slope: short(slope), offset: short(offset) }
        };
        TrainedHead {
            decide: self.decide.clone(),
            cases: self.rows.len(),
            right,
            reads,
            curve: written(Curve::fit(outcomes)),
            piece_curve: piece_curve.map(written),
        }
    }

    /// Finds the layer and the penalty with the best result on cases outside of the training data.
    fn best_trial(&self, classes: usize, stop: &dyn Fn() -> bool) -> Result<FoldTrial, FeedError> {
        let mut best: Option<FoldTrial> = None;
        #[expect(clippy::cast_precision_loss, reason = "there are not that many cases")]
        let cases = self.rows.len() as f32;
        for layer in 0..self.rows.first().map_or(0, |row| row.states.len()) {
            for penalty in PENALTIES {
                if stop() {
                    return Err(FeedError::Cancelled);
                }
                let trial = self.trial(classes, layer, penalty * cases);
                if best.as_ref().is_none_or(|best| trial.loss < best.loss) {
                    best = Some(trial);
                }
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// Judges every fold with a model that was trained on the others.
    fn trial(&self, classes: usize, layer: usize, penalty: f32) -> FoldTrial {
        let mut trial = FoldTrial { layer, penalty, ..FoldTrial::default() };
        for part in 0..PARTS {
            let (unseen, seen): (Vec<_>, Vec<_>) = self.rows.iter().partition(|row| row.part == part);
            let rows: Vec<&[f32]> = seen.iter().filter_map(|row| row.state(layer)).collect();
            let right: Vec<usize> = seen.iter().map(|row| row.class).collect();
            let model = LogisticModel::fit(&rows, &right, classes, penalty);
            for row in unseen {
                let weights = model.weigh(row.state(layer).unwrap_or_default());
                let own = weights.get(row.class).copied().unwrap_or_default();
                let highest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = weights.iter().map(|weight| (weight - highest).exp()).sum();
                trial.loss += highest + sum.ln() - own;
                let mut ranked = weights;
                ranked.sort_by(|one, other| other.total_cmp(one));
                let lead = ranked.first().zip(ranked.get(1)).map_or(0.0, |(one, two)| one - two);
                trial.outcomes.push((lead, own >= highest));
                trial.right.extend((own >= highest).then_some(row.class));
            }
        }
        trial
    }

    /// Trains on all cases. The last class has no row, because only differences count.
    fn reader(&self, classes: Vec<String>, layer: usize, penalty: f32) -> StateReader {
        let rows: Vec<&[f32]> = self.rows.iter().filter_map(|row| row.state(layer)).collect();
        let right: Vec<usize> = self.rows.iter().map(|row| row.class).collect();
        let mut model = LogisticModel::fit(&rows, &right, classes.len(), penalty);
        let last = model.rows.pop().zip(model.offsets.pop());
        let (last, last_offset) = last.unwrap_or_default();
        let row = |(numbers, offset): (Vec<f32>, f64)| {
            let numbers = numbers.iter().zip(&last).map(|(one, last)| one - last).collect();
            StateRow { offset: offset - last_offset, numbers }.round_trip()
        };
        let rows = model.rows.into_iter().zip(model.offsets).map(row).collect();
        StateReader { layer: self.layers.get(layer).copied().unwrap_or_default(), classes, rows }
    }
}

impl LessonRow {
    fn state(&self, layer: usize) -> Option<&[f32]> {
        self.states.get(layer).map(Vec::as_slice)
    }
}

/// A layer and a penalty, with their result on cases outside of the training data.
#[derive(Default)]
struct FoldTrial {
    layer: usize,
    penalty: f32,
    /// The sum of the negative log-probabilities of right classes; lower is better.
    loss: f64,
    /// The lead of the first class, and whether it was right.
    outcomes: Vec<(f64, bool)>,
    /// The classes of the cases that were right.
    right: Vec<usize>,
}

#[cfg(test)]
mod tests;
