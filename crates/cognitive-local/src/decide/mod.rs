//! Decisions that the contract asks for by name: the keyword `x-decide` says what a value is judged by. Each candidate is
//! weighed on its own, so the order of a list plays no part; a piece of the text has to be likelier than none. They are
//! made before anything is written, so that what is written about them can be true. Writes nothing itself.

mod calibration;
mod pieces;
mod question;
mod scale;
#[cfg(test)]
mod tests;

use crate::model::{ModelState, Vocabulary};
use cognitive_llama::FeedError;
use question::{DecisionKind, DecisionQuestion};
use scale::Scale;

/// What was decided about one value.
#[derive(Debug, Clone, PartialEq)]
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
}

/// Everything that was decided about one answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decisions(Vec<Decision>);

impl Decisions {
    /// Decides what `schema` asks for about `input`, with a session that has read nothing yet, and says how many tokens it
    /// took. What cannot be decided, because the input lacks what is judged, is left to the writer.
    pub(crate) fn make(
        schema: &serde_json::Value,
        input: &str,
        reading: &mut dyn ModelState,
        vocabulary: &dyn Vocabulary,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Self, usize), FeedError> {
        let input = serde_json::from_str(input).unwrap_or_default();
        let questions = question::all(schema, &input);
        let Some(mut scale) = Scale::new(reading, vocabulary, stop).filter(|_| !questions.is_empty()) else {
            return Ok((Self::default(), 0));
        };
        let mut made = Vec::new();
        for question in &questions {
            made.push(decide(question, &mut scale)?);
        }
        give_each_piece_to_one(&questions, &mut made);
        Ok((Self(made), scale.read))
    }

    /// Whether a lowered contract wants anything decided.
    pub(crate) fn are_wanted(schema: &serde_json::Value) -> bool {
        question::any(schema)
    }

    #[cfg(test)]
    pub(crate) fn of(made: Vec<Decision>) -> Self {
        Self(made)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The decision about the value at a place, if there was one; the way leads from the document itself.
    pub(crate) fn at<'a>(&self, path: impl Iterator<Item = Option<&'a [u8]>>) -> Option<&Decision> {
        let path: Vec<&[u8]> = path.collect::<Option<_>>()?;
        let (first, rest) = path.split_first()?;
        let is_there =
            |decision: &&Decision| decision.path.iter().map(String::as_bytes).eq(rest.iter().copied());
        self.0.iter().filter(|_| *first == b"data").find(is_there)
    }

    /// The decision at a dotted path below `data`.
    pub(crate) fn named(&self, path: &str) -> Option<&Decision> {
        self.0.iter().find(|decision| decision.path.iter().map(String::as_str).eq(path.split('.')))
    }

    /// The decisions about the members of an object at a dotted path below `data`.
    pub(crate) fn below(&self, path: &str) -> impl Iterator<Item = &Decision> {
        self.0.iter().filter(move |decision| {
            let above = decision.path.split_last().map(|(_, above)| above).unwrap_or_default();
            above.iter().map(String::as_str).eq(path.split('.'))
        })
    }

    /// How often answers like this one are right as a whole.
    pub(crate) fn probability(&self) -> Option<f64> {
        calibration::of_all(self.0.iter().map(|decision| decision.probability))
    }
}

fn decide(question: &DecisionQuestion<'_>, scale: &mut Scale<'_>) -> Result<Decision, FeedError> {
    let path = question.path.iter().map(|name| (*name).to_owned()).collect();
    match &question.kind {
        DecisionKind::Choice(candidates) => {
            let weights = scale.weigh(&question.ways, question.text, candidates)?;
            let mut ranked: Vec<(f64, &String)> = weights.into_iter().zip(candidates).collect();
            // Equals in the order of their letters, so that the order of the list cannot matter.
            ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
            let (first, second) = (ranked.first(), ranked.get(1));
            let ways = u32::try_from(question.ways.len()).map_or(1.0, f64::from).max(1.0);
            let lead = first.zip(second).map_or(f64::INFINITY, |(first, second)| first.0 - second.0) / ways;
            Ok(Decision {
                path,
                value: first.map(|(_, value)| (*value).clone()),
                next: second.map(|(_, value)| (*value).clone()),
                weight: lead,
                probability: calibration::of_lead(lead),
            })
        }
        DecisionKind::Topic { most } => {
            let found = pieces::likeliest(scale, &question.ways, question.text, *most, f64::NEG_INFINITY)?;
            // Nobody asked for one of a list, so there is none that would be right.
            Ok(Decision { path, value: found.piece, next: None, weight: found.weight, probability: 1.0 })
        }
        DecisionKind::Piece { most, .. } => {
            let found = pieces::likeliest(scale, &question.ways, question.text, *most, pieces::MIN_SCORE)?;
            Ok(piece(path, found.piece, found.weight))
        }
    }
}

/// A piece, unless it is likelier that there is none.
fn piece(path: Vec<String>, piece: Option<String>, weight: f64) -> Decision {
    let probability = calibration::of_piece(weight);
    let is_there = probability >= 0.5 && piece.is_some();
    let probability = if is_there { probability } else { 1.0 - probability };
    let (value, next) = if is_there { (piece, None) } else { (None, piece) };
    Decision { path, value, next, weight, probability }
}

/// Where the contract says that a piece can be only one of several things, the likeliest of them keeps it.
fn give_each_piece_to_one(questions: &[DecisionQuestion<'_>], made: &mut [Decision]) {
    let is_alone = |index: usize| {
        questions
            .get(index)
            .is_some_and(|question| matches!(question.kind, DecisionKind::Piece { alone: true, .. }))
    };
    let claims: Vec<(Option<String>, f64)> =
        made.iter().map(|each| (each.value.clone(), each.weight)).collect();
    for (index, decision) in made.iter_mut().enumerate().filter(|(index, _)| is_alone(*index)) {
        let is_taken = claims.iter().enumerate().any(|(other, (value, weight))| {
            other != index
                && is_alone(other)
                && value.is_some()
                && *value == decision.value
                && *weight > decision.weight
        });
        if is_taken {
            *decision = piece(std::mem::take(&mut decision.path), None, pieces::MIN_SCORE);
        }
    }
}
