//! Decisions that the contract asks for by name: the keyword `x-decide` says what a value is judged by. Each candidate is
//! weighed on its own, so the order of a list plays no part; a piece of the text has to be likelier than none. They are
//! made before anything is written, so that what is written about them can be true. Writes nothing itself.

mod asking;
mod calibration;
mod heads;
mod judge;
mod logistic;
mod pieces;
mod question;
mod scale;
#[cfg(test)]
mod tests;
mod training;

use cognitive_contract::ports::Example;
use cognitive_contract::trained::TrainedModel;

use crate::chat::TurnMarks;
use crate::model::{ModelState, Vocabulary};
use asking::Asking;
pub(crate) use calibration::{JudgeProfile, REASONS};
use cognitive_llama::FeedError;
pub(crate) use heads::of as trained_for;
use judge::DecisionJudge;
use scale::Scale;
pub(crate) use training::{LessonPlan, Training};

/// What was decided about one value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decision {
    /// The names of the members that lead to it from `data`.
    pub path: Vec<String>,
    /// The value; `None` if there is nothing of the kind.
    pub value: Option<String>,
    /// The candidate that came second; where nothing was found, what was not likely enough.
    pub next: Option<String>,
    /// What that was decided by: how far it is ahead per way of judging, or how likely the piece is.
    pub weight: f64,
    /// How often decisions like this one were right, from 0 to 1.
    pub probability: f64,
    /// How likely it is that there is nothing of the kind, where that was learned and something was found.
    pub nothing: Option<f64>,
    /// Whether training has measured how often decisions like this one are right.
    pub is_learned: bool,
}

/// Everything that was decided about one answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decisions {
    made: Vec<Decision>,
    /// Whether it was measured how often decisions like these are right.
    is_fitted: bool,
}

/// What decisions are made of.
pub(crate) struct DecisionRequest<'a> {
    /// The lowered contract.
    pub schema: &'a serde_json::Value,
    /// What is judged, as it was sent.
    pub input: &'a str,
    /// Answers of the same contract, to show a model how its questions are answered.
    pub examples: &'a [Example],
    pub marks: &'a TurnMarks<'a>,
    pub vocabulary: &'a dyn Vocabulary,
    pub profile: JudgeProfile,
    /// What the model has learned from labelled cases of the module.
    pub trained: Option<&'a TrainedModel>,
}

impl Decisions {
    /// Decides what the contract asks for about the input, and says how many tokens it took. `begin` gives a text that
    /// begins with the given tokens and has read nothing else. What cannot be decided, because the input lacks what is
    /// judged or the model is not of the kind that could, is left to the writer.
    pub(crate) fn make<T: ModelState>(
        request: &DecisionRequest<'_>,
        begin: impl Fn(&[u32]) -> T,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Self, usize), FeedError> {
        let input = serde_json::from_str(request.input).unwrap_or_default();
        let questions = question::all(request.schema, &input);
        let asking = Asking::new(request);
        let (mut weighed, mut asked) = (begin(&[]), begin(&asking.fixed()));
        let mut judge = DecisionJudge {
            profile: request.profile,
            weighing: Scale::new(&mut weighed, request.vocabulary, stop),
            asked: Scale::new(&mut asked, request.vocabulary, stop),
            asking: &asking,
            trained: request.trained,
        };
        let mut made = Vec::new();
        let mut is_learned = true;
        for question in &questions {
            let decided = judge.decide(question)?;
            is_learned &= decided.iter().all(|decision| decision.is_learned);
            let alone = |decision: &Decision| {
                question.kind.is_alone().then(|| judge.without_its_piece(question, decision))
            };
            made.extend(decided.into_iter().map(|decision| (alone(&decision), decision)));
        }
        give_each_piece_to_one(&mut made);
        let made = made.into_iter().map(|(_, decision)| decision).collect();
        let read = judge.weighing.read + judge.asked.read;
        Ok((Self { made, is_fitted: request.profile.is_fitted || is_learned }, read))
    }

    /// Whether a lowered contract wants anything decided.
    pub(crate) fn are_wanted(schema: &serde_json::Value) -> bool {
        question::any(schema)
    }

    #[cfg(test)]
    pub(crate) fn of(made: Vec<Decision>) -> Self {
        Self { made, is_fitted: true }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// The decision about the value at a place, if there was one; the way leads from the document itself.
    pub(crate) fn at<T: AsRef<str>>(&self, mut path: impl Iterator<Item = T>) -> Option<&Decision> {
        path.next().filter(|first| first.as_ref() == "data")?;
        let path: Vec<T> = path.collect();
        self.made
            .iter()
            .find(|decision| decision.path.iter().map(String::as_str).eq(path.iter().map(AsRef::as_ref)))
    }

    /// Whether anything was decided about an item of a list; the way leads from the document itself to the item.
    pub(crate) fn has_below<T: AsRef<str>>(&self, mut path: impl Iterator<Item = T>) -> bool {
        let is_data = path.next().is_some_and(|first| first.as_ref() == "data");
        let path: Vec<T> = path.collect();
        is_data
            && self.made.iter().any(|decision| {
                decision.path.len() > path.len()
                    && decision.path.iter().zip(&path).all(|(one, other)| one == other.as_ref())
            })
    }

    /// The decision at a dotted path below `data`.
    pub(crate) fn named(&self, path: &str) -> Option<&Decision> {
        self.made.iter().find(|decision| decision.path.iter().map(String::as_str).eq(path.split('.')))
    }

    /// The decisions about the members of an object at a dotted path below `data`.
    pub(crate) fn below(&self, path: &str) -> impl Iterator<Item = &Decision> {
        self.made.iter().filter(move |decision| {
            let above = decision.path.split_last().map(|(_, above)| above).unwrap_or_default();
            above.iter().map(String::as_str).eq(path.split('.'))
        })
    }

    /// How often answers like this one are right as a whole, and whether that was measured.
    pub(crate) fn probability(&self) -> Option<(f64, bool)> {
        let all = calibration::of_all(self.made.iter().map(|decision| decision.probability))?;
        Some((all, self.is_fitted))
    }
}

/// Where the contract says that a piece can be only one of several things, the likeliest of them keeps it. Those that can be
/// only one thing come with the probability that they are nothing if another one keeps it.
fn give_each_piece_to_one(made: &mut [(Option<f64>, Decision)]) {
    let claims: Vec<(bool, Option<String>, f64)> =
        made.iter().map(|(alone, each)| (alone.is_some(), each.value.clone(), each.weight)).collect();
    for (index, (alone, decision)) in made.iter_mut().enumerate() {
        let Some(probability) = *alone else { continue };
        let is_taken = claims.iter().enumerate().any(|(other, (is_alone, value, weight))| {
            other != index
                && *is_alone
                && value.is_some()
                && *value == decision.value
                && *weight > decision.weight
        });
        if is_taken {
            let path = std::mem::take(&mut decision.path);
            let is_learned = decision.is_learned;
            let weight = pieces::MIN_SCORE;
            *decision = Decision { path, weight, probability, is_learned, ..Decision::default() };
        }
    }
}
