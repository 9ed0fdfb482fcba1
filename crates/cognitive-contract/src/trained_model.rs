//! Weights that a model learned from the labelled cases of a module: `trained/NAME.json` in its folder, written
//! by `cogn train`. Each decision of the contract has a head. Its rows of numbers map the model's state after
//! the question to an answer. Its curve maps the weight of an answer to the probability that it is right.
//! Refuses numbers that are unusable in computations. Computes nothing itself.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The classes of a head that decides whether a text contains an item of a kind.
pub const FOUND: [&str; 2] = ["found", "none"];
/// The number of steps to the largest value of a row.
const LARGEST: f32 = 32_767.0;
/// The maximum width and depth of a model that can be trained here. The file is untrusted, and its numbers decide the
/// sizes of allocations.
const MAX_WIDTH: usize = 65_536;
const MAX_LAYERS: usize = 1_024;
/// The maximum magnitude of a number: far above trained values, and low enough that no product with a state
/// overflows.
const MAX_NUMBER: f64 = 1e9;

/// All weights that one model learned for one module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TrainedModel {
    /// The name of the model, for people.
    pub model: String,
    /// The hash of its weights. The numbers are valid for this model only.
    pub weights_sha256: String,
    /// One head for each decision, by its dotted path below `data`.
    pub heads: BTreeMap<String, TrainedHead>,
}

/// The head of one decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedHead {
    /// The keyword `x-decide` of the question. If the question has changed since, the head is ignored.
    pub decide: Value,
    /// The number of cases it was trained on.
    pub cases: usize,
    /// The number of those cases that it got right in cross-validation, without having seen them.
    pub right: usize,
    /// The classifier of the model's state; `None` where the candidates differ from input to input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<StateReader>,
    /// The accuracy, given the lead of the first candidate over the second.
    pub curve: TrainedCurve,
    /// The accuracy of a text piece, given that the text contains one; only for pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_curve: Option<TrainedCurve>,
}

/// A logistic curve: the log odds of being right are `slope` times the weight, plus `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedCurve {
    /// The increase of the log odds per unit of weight.
    pub slope: f64,
    /// The log odds at weight 0.
    pub offset: f64,
}

/// A linear classifier of the model's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateReader {
    /// The number of layers after which the state is read.
    pub layer: usize,
    /// The classes: the listed values in alphabetical order, or [`FOUND`].
    pub classes: Vec<String>,
    /// One row for each class but the last, whose weight is 0.
    pub rows: Vec<StateRow>,
}

/// A row of the classifier. The weight of its class is `offset` plus the dot product of the numbers and the
/// state, which has mean square 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenRow", into = "WrittenRow")]
pub struct StateRow {
    /// The constant part of the weight.
    pub offset: f64,
    /// The coefficients, one for each number of the state.
    pub numbers: Vec<f32>,
}

/// The file form of a row: 16-bit steps of `scale`, little endian, in base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    offset: f64,
    scale: f32,
    steps: String,
}

impl StateRow {
    /// Returns the row as it is after writing and reading. Training then computes with the same numbers as
    /// later readers.
    #[must_use]
    pub fn round_trip(&self) -> Self {
        let scale = self.scale();
        Self { offset: self.offset, numbers: self.steps(scale).map(|step| f32::from(step) * scale).collect() }
    }

    fn scale(&self) -> f32 {
        let largest = self.numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        if largest > 0.0 { largest / LARGEST } else { 1.0 }
    }

    fn steps(&self, scale: f32) -> impl Iterator<Item = i16> {
        #[expect(clippy::cast_possible_truncation, reason = "no step is larger than the largest")]
        let step = move |number: &f32| (number / scale).round().clamp(-LARGEST, LARGEST) as i16;
        self.numbers.iter().map(step)
    }
}

impl From<StateRow> for WrittenRow {
    fn from(row: StateRow) -> Self {
        let scale = row.scale();
        let bytes: Vec<u8> = row.steps(scale).flat_map(i16::to_le_bytes).collect();
        Self { offset: row.offset, scale, steps: STANDARD.encode(bytes) }
    }
}

impl TryFrom<WrittenRow> for StateRow {
    type Error = &'static str;

    fn try_from(row: WrittenRow) -> Result<Self, Self::Error> {
        let bytes = STANDARD.decode(row.steps).map_err(|_| "`steps` is not base64")?;
        let (pairs, rest) = bytes.as_chunks::<2>();
        if !rest.is_empty() {
            return Err("`steps` ends in the middle of a number");
        }
        let number = |pair: &[u8; 2]| f32::from(i16::from_le_bytes(*pair)) * row.scale;
        Ok(Self { offset: row.offset, numbers: pairs.iter().map(number).collect() })
    }
}

impl TrainedModel {
    /// A model without heads.
    #[must_use]
    pub fn new(model: &str, weights_sha256: &str) -> Self {
        Self { model: model.to_owned(), weights_sha256: weights_sha256.to_owned(), heads: BTreeMap::new() }
    }

    /// Parses the file form. Fails if a number is unusable.
    pub fn from_value(value: &Value) -> Result<Self, String> {
        let read = Self::deserialize(value).map_err(|error| error.to_string())?;
        for (path, head) in &read.heads {
            head.check().map_err(|why| format!("the head of `{path}` {why}"))?;
        }
        Ok(read)
    }
}

impl TrainedHead {
    fn check(&self) -> Result<(), String> {
        if self.right > self.cases {
            return Err(format!("was right in {} of {} cases", self.right, self.cases));
        }
        let curves = [Some(self.curve), self.piece_curve];
        if !curves.iter().flatten().all(|curve| is_usable(curve.slope) && is_usable(curve.offset)) {
            return Err("has a curve with numbers that are too large".to_owned());
        }
        let Some(StateReader { layer, classes, rows }) = &self.reads else { return Ok(()) };
        if *layer == 0 || *layer > MAX_LAYERS {
            return Err(format!("reads after {layer} layers"));
        }
        if classes.len() < 2 || rows.len() + 1 != classes.len() {
            return Err(format!("has {} rows for {} classes; it needs one less", rows.len(), classes.len()));
        }
        let width = rows.first().map_or(0, |row| row.numbers.len());
        let is_whole = |row: &StateRow| {
            let usable = row.numbers.iter().all(|number| is_usable(f64::from(*number)));
            row.numbers.len() == width && usable && is_usable(row.offset)
        };
        if width == 0 || width > MAX_WIDTH || !rows.iter().all(is_whole) {
            return Err("has rows of different lengths, or numbers that are too large".to_owned());
        }
        Ok(())
    }
}

/// Returns whether a number is usable; NaN is not.
fn is_usable(number: f64) -> bool {
    number.abs() <= MAX_NUMBER
}

/// An input with the correct answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingCase {
    /// The input in the form that a model receives.
    pub input: String,
    /// The correct values, by dotted path below `data`.
    pub wanted: BTreeMap<String, WantedValue>,
}

/// The correct value of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedValue {
    /// One of these texts.
    OneOf(Vec<String>),
    /// None: the text contains no item of this kind.
    Nothing,
}

/// The progress of a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingProgress {
    /// The number of cases read.
    Read(usize),
    /// The number of decisions learned, and their total.
    Learned(usize, usize),
}

/// The result of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingReport {
    /// The learned weights.
    pub trained: TrainedModel,
    /// The decisions left out, by dotted path below `data`, each with the reason.
    pub left_out: BTreeMap<String, String>,
    /// The number of cases that were too long for the model.
    pub too_long: usize,
    /// The results of each answer, by dotted path below `data`; empty where the candidates differ from input to input.
    pub classes: BTreeMap<String, Vec<ClassResult>>,
}

/// The cases of one answer of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassResult {
    /// The listed value, or one of [`FOUND`].
    pub class: String,
    /// The number of cases with this answer.
    pub cases: usize,
    /// The number of those that cross-validation got right.
    pub right: usize,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trained() -> TrainedModel {
        let row = StateRow { offset: 0.25, numbers: vec![1.0, -0.5, 0.001] }.round_trip();
        let reads = StateReader { layer: 3, classes: vec!["a".to_owned(), "b".to_owned()], rows: vec![row] };
        let curve = TrainedCurve { slope: 1.0, offset: 0.5 };
        let head = TrainedHead {
            decide: json!({ "ask": "What?" }),
            cases: 10,
            right: 9,
            reads: Some(reads),
            curve,
            piece_curve: None,
        };
        let mut model = TrainedModel::new("m", "00");
        model.heads.insert("label".to_owned(), head);
        model
    }

    #[test]
    fn what_was_written_is_what_is_read() {
        let model = trained();
        let written = serde_json::to_value(&model).unwrap();
        assert_eq!(TrainedModel::from_value(&written), Ok(model));
    }

    #[test]
    fn numbers_are_as_near_as_a_thirtythousandth_of_the_largest() {
        let row = StateRow { offset: 0.0, numbers: vec![2.0, -1.999, 0.0, 1e-9] };
        let near = |(one, other): (&f32, &f32)| (one - other).abs() <= 2.0 / LARGEST;
        assert!(row.numbers.iter().zip(&row.round_trip().numbers).all(near));
        let nothing = StateRow { offset: 0.0, numbers: vec![0.0; 3] };
        assert_eq!(nothing.round_trip(), nothing);
    }

    #[test]
    fn what_cannot_be_computed_with_is_refused() {
        let broken = [
            ("/heads/label/reads/layer", json!(0), "layers"),
            ("/heads/label/reads/classes", json!(["a"]), "classes"),
            ("/heads/label/reads/rows/0/steps", json!(""), "lengths"),
            ("/heads/label/reads/rows/0/steps", json!("AAAA"), "middle of a number"),
            ("/heads/label/reads/rows/0/steps", json!("?"), "base64"),
            ("/heads/label/reads/rows/0/scale", json!(1e38), "too large"),
            ("/heads/label/reads/rows/0/scale", json!(1e30), "too large"),
            ("/heads/label/reads/rows/0/offset", json!(-1e10), "too large"),
            ("/heads/label/curve/slope", json!(1e300), "too large"),
            ("/heads/label/right", json!(11), "11 of 10 cases"),
        ];
        for (place, value, why) in broken {
            let mut written = serde_json::to_value(trained()).unwrap();
            *written.pointer_mut(place).unwrap() = value;
            let error = TrainedModel::from_value(&written).unwrap_err();
            assert!(error.contains(why), "{place}: {error}");
        }
        let mut more = serde_json::to_value(trained()).unwrap();
        more["heads"]["label"]["bias"] = json!(1);
        assert!(TrainedModel::from_value(&more).unwrap_err().contains("bias"));
    }
}
