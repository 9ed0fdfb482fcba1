//! The confidence of the model, measured while it writes, because a small model invents any number that it is asked
//! for. Returns nothing if the model made no choice.

use crate::json_cursor::JsonCursor;

/// No measurement proves certainty or its opposite.
const RANGE: (f64, f64) = (0.01, 0.99);

/// The source of a measurement, as shown in the receipt.
pub(crate) const LABELS: &str = "label_probability";
/// See [`LABELS`]. The share of similar decisions that were right.
pub(crate) const DECISIONS: &str = "calibrated_decisions";
/// See [`LABELS`]. The model's own probability for its decisions, without a measurement of its accuracy.
pub(crate) const PLAIN_DECISIONS: &str = "decision_probability";
/// See [`LABELS`].
pub(crate) const TOKENS: &str = "token_probability";

/// Collects the probabilities of choices in `data`.
#[derive(Debug, Default)]
pub(crate) struct ChoiceConfidence {
    /// The probability of decisions that were made beforehand, and whether it was measured.
    decided: Option<(f64, bool)>,
    /// The lowest probability of the finished labels.
    weakest: Option<f64>,
    /// The label that is being written: the number of its value, and the product so far.
    label: Option<(u32, f64)>,
    logarithms: f64,
    choices: u32,
}

impl ChoiceConfidence {
    /// Starts with the probability of decisions that were made beforehand; if there is one, no other source counts.
    pub(crate) fn new(decided: Option<(f64, bool)>) -> Self {
        Self { decided, ..Self::default() }
    }

    /// Records a choice of the model at a place.
    pub(crate) fn note(&mut self, place: &JsonCursor, is_label: bool, probability: f32) {
        if !place.is_below("data") {
            return;
        }
        let probability = f64::from(probability).max(f64::MIN_POSITIVE);
        self.logarithms += probability.ln();
        self.choices = self.choices.saturating_add(1);
        if !is_label || !place.in_value() {
            return;
        }
        match &mut self.label {
            Some((value, product)) if *value == place.values() => *product *= probability,
            _ => {
                self.weakest = self.least_confidence();
                self.label = Some((place.values(), probability));
            }
        }
    }

    fn least_confidence(&self) -> Option<f64> {
        let current = self.label.map(|(_, product)| product);
        [self.weakest, current].into_iter().flatten().min_by(f64::total_cmp)
    }

    /// Returns the number to write, with two decimals, and its source.
    pub(crate) fn number_text(&self) -> Option<(String, &'static str)> {
        let (value, source) = match (self.decided, self.least_confidence()) {
            (Some((decided, true)), _) => (decided, DECISIONS),
            (Some((decided, false)), _) => (decided, PLAIN_DECISIONS),
            (None, Some(least)) => (least, LABELS),
            (None, None) if self.choices > 0 => ((self.logarithms / f64::from(self.choices)).exp(), TOKENS),
            (None, None) => return None,
        };
        let text = format!("{:.2}", value.clamp(RANGE.0, RANGE.1));
        // With a step of 0.01 each number must have one notation: the short one.
        Some((text.trim_end_matches('0').to_owned(), source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> JsonCursor {
        let mut place = JsonCursor::default();
        place.advance(text.as_bytes());
        place
    }

    #[test]
    fn the_weakest_label_decides() {
        let mut confidence = ChoiceConfidence::default();
        confidence.note(&at(r#"{"data":{"a":"#), true, 0.9);
        confidence.note(&at(r#"{"data":{"a":"x"#), true, 0.5);
        confidence.note(&at(r#"{"data":{"a":"xy","b":"#), true, 0.8);
        confidence.note(&at(r#"{"data":{"a":"xy","b":"z","c":"words"#), false, 0.01);
        assert_eq!(confidence.number_text(), Some(("0.45".to_owned(), LABELS)));
    }

    #[test]
    fn without_labels_it_is_the_mean_of_all_choices_in_data() {
        let mut confidence = ChoiceConfidence::default();
        assert_eq!(confidence.number_text(), None);
        confidence.note(&at(r#"{"data":{"t":""#), false, 0.9);
        confidence.note(&at(r#"{"data":{"t":"a"#), false, 0.4);
        confidence.note(&at(r#"{"data":{},"meta":{"risk":"#), true, 0.001);
        assert_eq!(confidence.number_text(), Some(("0.6".to_owned(), TOKENS)));
    }

    #[test]
    fn nothing_is_certain() {
        let mut confidence = ChoiceConfidence::default();
        confidence.note(&at(r#"{"data":{"a":"#), true, 1.0);
        assert_eq!(confidence.number_text().unwrap().0, "0.99");
        confidence.note(&at(r#"{"data":{"a":1,"b":"#), true, 0.0);
        assert_eq!(confidence.number_text().unwrap().0, "0.01");
    }
}
