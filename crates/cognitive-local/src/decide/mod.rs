//! Decisions that the contract requests: the keyword `x-decide` specifies how a value is judged. Each candidate is
//! weighed separately, so the order of a list has no influence. A piece of the text must be likelier than none.
//! Decisions are made before anything is written, so that the text about them can be true. Writes nothing itself.

mod calibration;
mod heads;
mod judge;
mod logistic;
mod pieces;
mod question;
mod question_prefix;
mod scale;
#[cfg(test)]
mod tests;
mod training;

use cognitive_contract::ports::Example;
use cognitive_contract::trained_model::TrainedModel;

use crate::chat::TurnMarks;
use crate::model::{ModelState, Vocabulary};
pub(crate) use calibration::{JudgeProfile, REASONS};
use cognitive_llama::FeedError;
pub(crate) use heads::for_weights as trained_for;
use judge::DecisionJudge;
use question_prefix::QuestionPrefix;
use scale::Scale;
pub(crate) use training::{LessonPlan, Training};

/// The decision about one value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decision {
    /// The names of the members that lead to the value from `data`.
    pub path: Vec<String>,
    /// The value; `None` if the text has nothing of the kind.
    pub value: Option<String>,
    /// The second candidate; if nothing was found, the piece that was not likely enough.
    pub next: Option<String>,
    /// The basis of the decision: the lead per way of judging, or the log-likelihood of the piece.
    pub weight: f64,
    /// The share of similar decisions that were right, from 0 to 1.
    pub probability: f64,
    /// The probability that nothing of the kind exists, if a trained head gives it and a piece was found.
    pub nothing: Option<f64>,
    /// True if training has measured the accuracy of such decisions.
    pub is_learned: bool,
}

/// All decisions about one answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decisions {
    made: Vec<Decision>,
    /// True if the accuracy of such decisions was measured.
    is_measured: bool,
}

/// The basis of decisions.
pub(crate) struct DecisionRequest<'a> {
    /// The lowered contract.
    pub schema: &'a serde_json::Value,
    /// The input that is judged, as sent.
    pub input: &'a str,
    /// Examples of the contract, which show a model how its questions are answered.
    pub examples: &'a [Example],
    pub marks: &'a TurnMarks<'a>,
    pub vocabulary: &'a dyn Vocabulary,
    pub profile: JudgeProfile,
    /// The heads trained on labelled cases of the module.
    pub trained: Option<&'a TrainedModel>,
}

impl Decisions {
    /// Makes the decisions of the contract about the input, and returns the number of tokens that were read. `begin`
    /// returns a text that starts with the given tokens and has read nothing else. Decisions that cannot be made are
    /// left to the writer: the input lacks the text, or the model cannot judge it.
    pub(crate) fn make<T: ModelState>(
        request: &DecisionRequest<'_>,
        begin: impl Fn(&[u32]) -> T,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Self, usize), FeedError> {
        let input = serde_json::from_str(request.input).unwrap_or_default();
        let questions = question::all(request.schema, &input);
        let asking = QuestionPrefix::new(request);
        let (mut weighed, mut asked) = (begin(&[]), begin(&asking.common_tokens()));
        let mut judge = DecisionJudge {
            profile: request.profile,
            weighing: Scale::new(&mut weighed, request.vocabulary, stop),
            asked: Scale::new(&mut asked, request.vocabulary, stop),
            asking: &asking,
            trained: request.trained,
        };
        let mut made = Vec::new();
        let mut is_measured = true;
        for question in &questions {
            let decided = judge.decide(question)?;
            is_measured &= judge.is_measured(question, &decided);
            let alone = |decision: &Decision| {
                question.kind.is_alone().then(|| judge.probability_without_piece(question, decision))
            };
            made.extend(decided.into_iter().map(|decision| (alone(&decision), decision)));
        }
        assign_pieces_once(&mut made);
        let made = made.into_iter().map(|(_, decision)| decision).collect();
        let read = judge.weighing.read + judge.asked.read;
        Ok((Self { made, is_measured }, read))
    }

    /// Returns whether a lowered contract requests any decision.
    pub(crate) fn are_requested(schema: &serde_json::Value) -> bool {
        question::any(schema)
    }

    #[cfg(test)]
    pub(crate) fn from_decisions(made: Vec<Decision>) -> Self {
        Self { made, is_measured: true }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Returns the decision about the value at a place, if there is one. The path starts at the document root.
    pub(crate) fn at<T: AsRef<str>>(&self, mut path: impl Iterator<Item = T>) -> Option<&Decision> {
        path.next().filter(|first| first.as_ref() == "data")?;
        let path: Vec<T> = path.collect();
        self.made
            .iter()
            .find(|decision| decision.path.iter().map(String::as_str).eq(path.iter().map(AsRef::as_ref)))
    }

    /// Returns whether anything was decided about an item of a list. The path leads from the document root to the item.
    pub(crate) fn has_item_decision<T: AsRef<str>>(&self, mut path: impl Iterator<Item = T>) -> bool {
        let is_data = path.next().is_some_and(|first| first.as_ref() == "data");
        let path: Vec<T> = path.collect();
        is_data
            && self.made.iter().any(|decision| {
                decision.path.len() > path.len()
                    && decision.path.iter().zip(&path).all(|(one, other)| one == other.as_ref())
            })
    }

    /// Returns the decision at a dotted path below `data`.
    pub(crate) fn at_path(&self, path: &str) -> Option<&Decision> {
        self.made.iter().find(|decision| decision.path.iter().map(String::as_str).eq(path.split('.')))
    }

    /// Returns the decisions about the members of an object at a dotted path below `data`.
    pub(crate) fn below_path(&self, path: &str) -> impl Iterator<Item = &Decision> {
        self.made.iter().filter(move |decision| {
            let above = decision.path.split_last().map(|(_, above)| above).unwrap_or_default();
            above.iter().map(String::as_str).eq(path.split('.'))
        })
    }

    /// Returns the probability that the whole answer is right, and whether it was measured.
    pub(crate) fn probability(&self) -> Option<(f64, bool)> {
        let all = calibration::joint_probability(self.made.iter().map(|decision| decision.probability))?;
        Some((all, self.is_measured))
    }
}

/// If the contract allows a piece for one value only, the decision with the highest weight keeps it. Decisions about
/// such values come with the probability that they have no value if another one keeps the piece.
fn assign_pieces_once(made: &mut [(Option<f64>, Decision)]) {
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
