//! Learns from labelled cases how a model's decisions about a module are made best: the state of the model after each question,
//! and which answer it points to. The weights of the model stay as they are; what is learned are a few rows of numbers for each
//! decision. How good they are is always said of cases that they were not trained on.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use cognitive_contract::trained::{
    FOUND, StateReader, StateRow, TrainedCurve, TrainedHead, TrainedModel, TrainingCase, TrainingProgress,
    TrainingReport, WantedValue,
};
use cognitive_llama::FeedError;
use serde_json::Value;

use super::DecisionRequest;
use super::asking::Asking;
use super::calibration::Curve;
use super::heads::normalised;
use super::judge::DecisionJudge;
use super::logistic::LogisticModel;
use super::question::{self, DecisionKind, DecisionQuestion};
use super::scale::Scale;
use crate::model::ModelState;

/// Fewer cases of a decision say nothing about the next one.
const MIN_CASES: usize = 40;
/// Nor do fewer cases of one of its answers.
const MIN_OF_CLASS: usize = 5;
/// The cases are cut into so many parts, each of which is judged by what was learned from the others.
const PARTS: usize = 5;
/// What is tried against learning single cases by heart, for each case; see [`LogisticModel::fit`].
const PENALTIES: [f32; 4] = [0.15, 0.5, 1.7, 5.0];
/// States are tried from the middle of the model to its end, in eighths of its layers.
const EIGHTHS: [usize; 5] = [4, 5, 6, 7, 8];
/// So many cases are read at the same time.
const AT_ONCE: usize = 8;

/// What is learned from.
pub(crate) struct LessonPlan<'a> {
    /// What the model is called, and the hash of its weights.
    pub model: (&'a str, &'a str),
    pub cases: &'a [TrainingCase],
    pub progress: &'a (dyn Fn(TrainingProgress) + Sync),
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Everything that cases say about one decision.
#[derive(Default)]
struct Lesson {
    /// The keyword `x-decide`.
    decide: Value,
    kind: LessonKind,
    /// After how many layers the states are read that are tried.
    layers: Vec<usize>,
    rows: Vec<LessonRow>,
}

#[derive(Default, PartialEq)]
enum LessonKind {
    /// The candidates are those of the input: only what a lead is worth can be learned.
    #[default]
    Listed,
    /// One of these classes.
    Fixed(Vec<String>),
    /// Whether there is a piece, and whether the likeliest is the right one.
    Piece,
}

struct LessonRow {
    /// The number of the case.
    case: usize,
    /// Which part of the cases it belongs to.
    part: usize,
    /// The states that are tried, each of length one.
    states: Vec<Vec<f32>>,
    class: usize,
    /// How heavy the judgement of the model itself was, and whether it was right.
    judged: Option<(f64, bool)>,
}

/// A training of one model.
pub(crate) struct Training<'a, 'r, B> {
    /// What decisions are made of; its input plays no part.
    pub request: &'a DecisionRequest<'r>,
    /// See [`Decisions::make`](super::Decisions::make).
    pub begin: B,
}

impl<T: ModelState, B: Fn(&[u32]) -> T + Sync> Training<'_, '_, B> {
    /// Reads all cases and learns from them.
    pub(crate) fn run(&self, plan: &LessonPlan<'_>) -> Result<TrainingReport, FeedError> {
        let (lessons, too_long) = self.read(plan)?;
        let trained = TrainedModel::new(plan.model.0, plan.model.1);
        let mut report = TrainingReport { trained, left_out: BTreeMap::new(), too_long };
        let count = lessons.len();
        for (index, (path, lesson)) in lessons.into_iter().enumerate() {
            match lesson.learn(plan.stop)? {
                Ok(head) => drop(report.trained.heads.insert(path, head)),
                Err(why) => drop(report.left_out.insert(path, why)),
            }
            (plan.progress)(TrainingProgress::Learned(index + 1, count));
        }
        Ok(report)
    }

    /// Reads the cases, several at the same time: every weight of the model is then fetched once for all of them.
    fn read(&self, plan: &LessonPlan<'_>) -> Result<(BTreeMap<String, Lesson>, usize), FeedError> {
        let (next, done, too_long) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let lessons: Mutex<BTreeMap<String, Lesson>> = Mutex::default();
        let is_stopped = || (plan.stop)();
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = plan.cases.get(number) else { return Ok(()) };
                match self.read_case(number, case, &is_stopped) {
                    Ok(found) => {
                        let mut lessons = lessons.lock().unwrap_or_else(PoisonError::into_inner);
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
            // A thread that broke has lost its case, and whoever learned from the others would not know.
            let ended =
                |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            others.into_iter().map(ended).fold(mine, Result::and)
        });
        ended?;
        let mut lessons = lessons.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Whoever was faster: the same cases teach the same.
        for lesson in lessons.values_mut() {
            lesson.rows.sort_by_key(|row| row.case);
        }
        Ok((lessons, too_long.into_inner()))
    }

    /// What one case says about each decision that it knows the answer to.
    fn read_case(
        &self,
        number: usize,
        case: &TrainingCase,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<(String, Lesson)>, FeedError> {
        let request = self.request;
        let asking = Asking::new(request);
        let (mut weighed, mut asked) = ((self.begin)(&[]), (self.begin)(&asking.fixed()));
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
            if let Some((kind, class, judged)) = judged(&mut judge, &question, wanted)? {
                let states = match kind {
                    LessonKind::Listed => Vec::new(),
                    LessonKind::Fixed(_) | LessonKind::Piece => judge.states(&question)?,
                };
                let layers = layers(states.len());
                let tried = layers.iter().filter_map(|layer| states.get(layer - 1));
                let states: Vec<Vec<f32>> = tried.map(|state| normalised(state)).collect();
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

/// See [`judged`].
type JudgedCase = (LessonKind, usize, Option<(f64, bool)>);

/// What kind of decision it is, which class is right, and how the model itself judges where that matters. Nothing is learned of
/// a case that has no right answer of the kind.
fn judged(
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

/// Which part of the cases an input belongs to. Its letters decide (by FNV-1a), so the same text twice is never seen and unseen.
fn part_of(input: &str) -> usize {
    let letters = input.trim().to_lowercase();
    let hash = letters.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    usize::try_from((hash >> 32) % PARTS as u64).unwrap_or_default()
}

/// After how many of so many layers states are tried.
fn layers(count: usize) -> Vec<usize> {
    let mut layers: Vec<usize> = EIGHTHS.iter().map(|eighth| (count * eighth).div_ceil(8)).collect();
    layers.retain(|layer| *layer > 0);
    layers.dedup();
    layers
}

impl Lesson {
    /// What is learned, or why nothing is.
    fn learn(&self, stop: &dyn Fn() -> bool) -> Result<Result<TrainedHead, String>, FeedError> {
        let classes = match &self.kind {
            LessonKind::Listed => Vec::new(),
            LessonKind::Fixed(classes) => classes.clone(),
            LessonKind::Piece => FOUND.map(str::to_owned).to_vec(),
        };
        if let Some(why) = self.lacks(&classes) {
            return Ok(Err(why));
        }
        if self.kind == LessonKind::Listed {
            let rows = self.judged();
            let right = rows.iter().filter(|(_, right)| *right).count();
            return Ok(Ok(self.head(right, None, &rows, None)));
        }
        let best = self.best(classes.len(), stop)?;
        let right = best.outcomes.iter().filter(|(_, right)| *right).count();
        let reads = self.reader(classes, best.layer, best.penalty);
        let piece_curve = (self.kind == LessonKind::Piece).then(|| Curve::fitted(&self.judged()));
        Ok(Ok(self.head(right, Some(reads), &best.outcomes, piece_curve)))
    }

    /// Why nothing can be learned from these cases.
    fn lacks(&self, classes: &[String]) -> Option<String> {
        let cases = self.rows.len();
        if cases < MIN_CASES {
            return Some(format!("{cases} cases are fewer than {MIN_CASES}"));
        }
        if self.kind != LessonKind::Listed && self.layers.is_empty() {
            return Some("the model cannot be asked this question".to_owned());
        }
        let count = |index| self.rows.iter().filter(|row| row.class == index).count();
        let mut counted = classes.iter().enumerate().map(|(index, class)| (class, count(index)));
        counted
            .find(|(_, count)| *count < MIN_OF_CLASS)
            .map(|(class, count)| format!("{count} cases of `{class}` are fewer than {MIN_OF_CLASS}"))
    }

    /// What the model itself judged. Nothing is learned of a choice between one.
    fn judged(&self) -> Vec<(f64, bool)> {
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
            curve: written(Curve::fitted(outcomes)),
            piece_curve: piece_curve.map(written),
        }
    }

    /// The state and the penalty with which cases that were not learned from are judged best.
    fn best(&self, classes: usize, stop: &dyn Fn() -> bool) -> Result<FoldTrial, FeedError> {
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

    /// Judges every part of the cases by what is learned from the others.
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
            }
        }
        trial
    }

    /// What is learned from all cases. The last class has no row: only differences count.
    fn reader(&self, classes: Vec<String>, layer: usize, penalty: f32) -> StateReader {
        let rows: Vec<&[f32]> = self.rows.iter().filter_map(|row| row.state(layer)).collect();
        let right: Vec<usize> = self.rows.iter().map(|row| row.class).collect();
        let mut model = LogisticModel::fit(&rows, &right, classes.len(), penalty);
        let last = model.rows.pop().zip(model.offsets.pop());
        let (last, last_offset) = last.unwrap_or_default();
        let row = |(numbers, offset): (Vec<f32>, f64)| {
            let numbers = numbers.iter().zip(&last).map(|(one, last)| one - last).collect();
            StateRow { offset: offset - last_offset, numbers }.rounded()
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

/// One way to learn, and how well it judged what it had not learned from.
#[derive(Default)]
struct FoldTrial {
    layer: usize,
    penalty: f32,
    /// The logarithms of what right classes were given, summed up; less is better.
    loss: f64,
    /// How far the first class was ahead, and whether it was right.
    outcomes: Vec<(f64, bool)>,
}

#[cfg(test)]
mod tests;
