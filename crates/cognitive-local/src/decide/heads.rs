//! Applies trained heads: reads the state of the model after a question and returns the class that it indicates. A head
//! is valid only for the weights and the question that it was trained with. Trains nothing.

use cognitive_contract::trained_model::{self, FOUND, StateReader, TrainedCurve, TrainedHead, TrainedModel};

use super::calibration::Curve;
use super::question::{DecisionKind, DecisionQuestion};

impl From<TrainedCurve> for Curve {
    fn from(TrainedCurve { slope, offset }: TrainedCurve) -> Self {
        Self { slope, offset }
    }
}

/// Returns the trained heads for these weights, if there are any.
pub(crate) fn for_weights<'a>(
    trained: &'a [TrainedModel],
    weights: Option<&str>,
) -> Option<&'a TrainedModel> {
    trained.iter().find(|model| Some(model.weights_sha256.as_str()) == weights)
}

/// Returns the head of a question, if it was trained for exactly this question.
pub(super) fn head<'a>(
    trained: Option<&'a TrainedModel>,
    question: &DecisionQuestion<'_>,
) -> Option<&'a TrainedHead> {
    let head = trained?.heads.get(&question.path.join("."))?;
    let classes = head.reads.as_ref().map(|reads| reads.classes.as_slice());
    let fits = match (&question.kind, classes) {
        (DecisionKind::Choice(candidates), Some(classes)) => question.is_fixed && classes == candidates,
        (DecisionKind::Choice(_), None) => !question.is_fixed,
        (DecisionKind::Piece { .. }, Some(classes)) => classes == FOUND && head.piece_curve.is_some(),
        (DecisionKind::Piece { .. } | DecisionKind::Topic { .. } | DecisionKind::Order { .. }, _) => false,
    };
    (fits && *question.wish == head.decide).then_some(head)
}

/// Returns the weight of each class; the last class has weight zero. Returns `None` if the states do not fit the head.
pub(super) fn read(reads: &StateReader, states: &[Vec<f32>]) -> Option<Vec<f64>> {
    let state = normalise(states.get(reads.layer.checked_sub(1)?)?);
    let weigh = |row: &trained_model::StateRow| {
        let product = row.numbers.iter().zip(&state).map(|(one, other)| f64::from(one * other)).sum::<f64>();
        (row.numbers.len() == state.len()).then_some(row.offset + product)
    };
    let mut weights: Vec<f64> = reads.rows.iter().map(weigh).collect::<Option<_>>()?;
    weights.push(0.0);
    Some(weights)
}

/// Scales a state to the mean square 1, because its length depends more on the length of the text than on its meaning.
pub(super) fn normalise(state: &[f32]) -> Vec<f32> {
    let count = f64::from(u32::try_from(state.len()).unwrap_or(u32::MAX));
    let squares = state.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>();
    let length = (squares / count.max(1.0)).sqrt().max(f64::from(f32::MIN_POSITIVE));
    #[expect(clippy::cast_possible_truncation, reason = "a state has no more digits than that")]
    state.iter().map(|number| (f64::from(*number) / length) as f32).collect()
}
