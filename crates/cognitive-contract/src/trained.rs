//! What a model has learned from the labelled cases of a module: `trained/NAME.json` in its folder, written by `cogn train`.
//! For each decision of the contract there is a head: a few rows of numbers that say, of the state in which the model is
//! after the question, which answer it points to; and a curve that says how often answers like this one were right. Refuses
//! numbers that cannot be computed with. Computes nothing itself.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The classes of a head that says whether a text has something of a kind.
pub const FOUND: [&str; 2] = ["found", "none"];
/// The largest number that a row is written with.
const LARGEST: f32 = 32_767.0;
/// No model that could be trained here is wider, or deeper.
const MAX_WIDTH: usize = 65_536;
const MAX_LAYERS: usize = 1_024;
/// Far more than training finds, and so little that no product with a state overflows.
const MAX_NUMBER: f64 = 1e9;

/// Everything that one model has learned about one module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TrainedModel {
    /// What the model is called, for people.
    pub model: String,
    /// The hash of its weights. To any other model the numbers mean nothing.
    pub weights_sha256: String,
    /// One head for each decision, by its dotted path below `data`.
    pub heads: BTreeMap<String, TrainedHead>,
}

/// How one decision is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedHead {
    /// The keyword `x-decide` of the question. A head does not count for a question that was changed since.
    pub decide: Value,
    /// How many cases it was trained on.
    pub cases: usize,
    /// How many of them it got right while it had not seen them.
    pub right: usize,
    /// What reads the state of the model; nothing where the candidates differ from input to input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<StateReader>,
    /// How often a lead of the first over the second is right.
    pub curve: TrainedCurve,
    /// How often a piece of the text is the right one, if there is one; only for pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_curve: Option<TrainedCurve>,
}

/// The odds that something is right are `slope` times its weight and `offset`, as a logarithm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedCurve {
    /// By how much they grow with the weight.
    pub slope: f64,
    /// Where they begin.
    pub offset: f64,
}

/// What a state of the model points to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateReader {
    /// After how many layers the state is read.
    pub layer: usize,
    /// What it can point to: the listed values in the order of their letters, or [`FOUND`].
    pub classes: Vec<String>,
    /// One row for each class but the last, which has the weight 0.
    pub rows: Vec<StateRow>,
}

/// The weight of a class is `offset` and the product of the numbers with the state, which has the mean square 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenRow", into = "WrittenRow")]
pub struct StateRow {
    /// Where the weight begins.
    pub offset: f64,
    /// One number for each number of the state.
    pub numbers: Vec<f32>,
}

/// A row in a file: 16-bit steps of `scale`, little end first, in base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    offset: f64,
    scale: f32,
    steps: String,
}

impl StateRow {
    /// The row as it is after it was written and read: what is computed with is what others will compute with.
    #[must_use]
    pub fn rounded(&self) -> Self {
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
            return Err("`steps` has half a number");
        }
        let number = |pair: &[u8; 2]| f32::from(i16::from_le_bytes(*pair)) * row.scale;
        Ok(Self { offset: row.offset, numbers: pairs.iter().map(number).collect() })
    }
}

impl TrainedModel {
    /// A model that has learned nothing yet.
    #[must_use]
    pub fn new(model: &str, weights_sha256: &str) -> Self {
        Self { model: model.to_owned(), weights_sha256: weights_sha256.to_owned(), heads: BTreeMap::new() }
    }

    /// Reads what somebody has written; the error says what cannot be computed with.
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

/// Whether a number can be computed with. What is no number is not.
fn is_usable(number: f64) -> bool {
    number.abs() <= MAX_NUMBER
}

/// An input, and what the answer to it should have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingCase {
    /// The input as a model gets it.
    pub input: String,
    /// What is right at a dotted path below `data`.
    pub wanted: BTreeMap<String, WantedValue>,
}

/// What is right at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedValue {
    /// One of these texts.
    OneOf(Vec<String>),
    /// Nothing: the text has none of the kind.
    Nothing,
}

/// How training goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingProgress {
    /// So many cases have been read.
    Read(usize),
    /// So many of so many decisions have been learned.
    Learned(usize, usize),
}

/// What came of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingReport {
    /// What was learned.
    pub trained: TrainedModel,
    /// What was not, by dotted path below `data`, and why.
    pub left_out: BTreeMap<String, String>,
    /// How many cases were too long for the model.
    pub too_long: usize,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trained() -> TrainedModel {
        let row = StateRow { offset: 0.25, numbers: vec![1.0, -0.5, 0.001] }.rounded();
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
        assert!(row.numbers.iter().zip(&row.rounded().numbers).all(near));
        let nothing = StateRow { offset: 0.0, numbers: vec![0.0; 3] };
        assert_eq!(nothing.rounded(), nothing);
    }

    #[test]
    fn what_cannot_be_computed_with_is_refused() {
        let broken = [
            ("/heads/label/reads/layer", json!(0), "layers"),
            ("/heads/label/reads/classes", json!(["a"]), "classes"),
            ("/heads/label/reads/rows/0/steps", json!(""), "lengths"),
            ("/heads/label/reads/rows/0/steps", json!("AAAA"), "half a number"),
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
