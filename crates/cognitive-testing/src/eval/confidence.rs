//! Measures the quality of `meta.confidence`: whether it separates right answers from wrong ones, and whether
//! it matches the share of right answers. Works on pairs of a number and a verdict only.

/// The gap between confidence and the share of right answers, computed as for reviews.
pub(super) use cognitive_ports::review::calibration::error as calibration_error;

/// Returns the probability that a right answer has a higher confidence than a wrong one: 0.5 is chance.
/// `None` if all answers are right, or all are wrong.
pub(super) fn auc(answers: &[(f64, bool)]) -> Option<f64> {
    let of =
        |wanted: bool| answers.iter().filter(move |(_, right)| *right == wanted).map(|(number, _)| *number);
    let (mut sum, mut pairs) = (0.0, 0.0);
    for good in of(true) {
        for bad in of(false) {
            pairs += 1.0;
            if good > bad {
                sum += 1.0;
            } else if good >= bad {
                sum += 0.5;
            }
        }
    }
    (pairs > 0.0).then(|| sum / pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_is_one_for_perfect_order_a_half_for_none_and_unknown_for_one_kind() {
        assert_eq!(auc(&[(0.9, true), (0.8, true), (0.3, false)]), Some(1.0));
        assert_eq!(auc(&[(0.5, true), (0.5, false)]), Some(0.5));
        assert_eq!(auc(&[(0.2, true), (0.6, false), (0.1, false)]), Some(0.5));
        assert_eq!((auc(&[(0.9, true)]), auc(&[])), (None, None));
    }

    #[test]
    fn the_calibration_error_is_the_distance_of_confidence_and_share_per_group() {
        let close = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        assert!(close(calibration_error(&[(0.75, true), (0.75, true), (0.75, true), (0.75, false)]), 0.0));
        assert!(close(calibration_error(&[(0.95, false), (0.95, true)]), 0.45));
        // Two groups: 0.2 too high in one half, 0.4 too low in the other.
        assert!(close(calibration_error(&[(0.2, false), (0.6, true)]), 0.3));
        assert_eq!(calibration_error(&[]), None);
    }
}
