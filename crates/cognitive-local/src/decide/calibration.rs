//! The judging method of a model, and the accuracy of its judgements. Both depend on the model. A small model judges
//! best by weighing candidates in sentences; a larger one understands a question and can be asked. The size alone
//! selects the method. The curves were fitted to the tuning half of the sets in `eval/`, never to the other half. The
//! table below has one set of curves per model. Models outside the table have no
//! measured accuracy: their curves return the odds of the model unchanged. The ignored test in `tests.rs` fits the
//! curves again.

/// The number of parameters from which a model understands questions.
const CAN_BE_ASKED: u64 = 300_000_000;
/// The number of parameters from which a model compares and orders as well as it labels and copies.
pub(crate) const REASONS: u64 = 1_000_000_000;

/// The judging method of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JudgeProfile {
    /// True if it is asked the questions of the contract.
    pub(super) is_asked: bool,
    /// The shares if the question names its candidates itself.
    pub(super) fixed: Shares,
    /// The shares if the input lists the candidates, so that a question has to list them.
    pub(super) listed: Shares,
    /// True if the curves were fitted to this model.
    pub(super) is_fitted: bool,
    pub(super) curves: Curves,
}

/// The shares of the answer to a question and of each weighing sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    pub asked: f64,
    pub weighed: f64,
}

const ONLY_WEIGHED: Shares = Shares { asked: 0.0, weighed: 1.0 };
const ONLY_ASKED: Shares = Shares { asked: 1.0, weighed: 0.0 };

/// One curve per kind of judgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curves {
    /// For choices that a question names: the lead of the first over the second, per share.
    pub fixed: Curve,
    /// For choices that the input lists.
    pub listed: Curve,
    /// For both, if the contract has no question for the model.
    pub weighed: Curve,
    /// For pieces: the log-probability of the likeliest.
    pub piece: Curve,
    /// For pieces that were asked for: the lead of the likeliest over none.
    pub asked_piece: Curve,
    /// The curve for orders, by the lead of the first candidate over the second.
    pub order: Curve,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    pub slope: f64,
    pub offset: f64,
}

/// The model's own odds.
const PLAIN: Curve = Curve { slope: 1.0, offset: 0.0 };
/// For models without fitted curves, a piece counts if its probability exceeds one in a hundred.
const PLAIN_PIECE: Curve = Curve { slope: 1.0, offset: 4.6 };

const UNFITTED: Curves = Curves {
    fixed: PLAIN,
    listed: PLAIN,
    weighed: PLAIN,
    piece: PLAIN_PIECE,
    asked_piece: PLAIN,
    order: PLAIN,
};

/// The models with fitted curves, by their number of parameters: `SmolLM2-135M-Instruct` and `Qwen2.5-Coder-Instruct`
/// with 0.5 and 1.5 billion. Kinds of questions that a model is never asked have no fitted curve.
const FITTED: [(u64, Curves); 3] = [
    (
        134_479_872,
        Curves {
            weighed: Curve { slope: 1.752, offset: 0.627 },
            piece: Curve { slope: 0.893, offset: 5.729 },
            ..UNFITTED
        },
    ),
    (
        493_961_216,
        Curves {
            fixed: Curve { slope: 1.342, offset: 0.176 },
            listed: Curve { slope: 2.970, offset: -0.437 },
            weighed: Curve { slope: 1.740, offset: -0.774 },
            asked_piece: Curve { slope: 1.068, offset: 0.892 },
            order: Curve { slope: 1.369, offset: -0.474 },
            ..UNFITTED
        },
    ),
    (
        1_543_569_408,
        Curves {
            fixed: Curve { slope: 1.114, offset: 0.713 },
            listed: Curve { slope: 1.719, offset: 0.278 },
            weighed: Curve { slope: 0.851, offset: -0.156 },
            asked_piece: Curve { slope: 3.280, offset: 2.118 },
            order: Curve { slope: 1.372, offset: 1.497 },
            ..UNFITTED
        },
    ),
];

/// The decisions that the curves were fitted to: those of the bundled modules, by their fingerprints. Another question
/// has another share of right answers, so its confidence is the model's own odds.
const FITTED_TO: [u64; 8] = [
    0x171d_3446_ccff_67bf,
    0xb643_86d4_cc81_598f,
    0xbe65_a249_a1dc_8760,
    0x9500_dac3_4244_13cd,
    0x632c_dbd5_0a35_a268,
    0xa8c9_873b_5559_7b9a,
    0xd0e4_6811_b84b_6789,
    0xef2a_2312_fa96_2f6e,
];

/// The factor of the slope in [`highest_claim`]. With it, the limit matters only near a tie, where the curve's offset
/// would claim more than a tie can be worth.
const STEEPER: f64 = 4.0;

/// Returns whether the curves were fitted to a decision with this fingerprint.
pub(super) fn is_fitted_to(fingerprint: u64) -> bool {
    FITTED_TO.contains(&fingerprint)
}

/// Returns the probability of the first candidate by the weights alone: with k equal weights, it is 1/k.
pub(super) fn odds(weights: &[f64], slope: f64) -> f64 {
    let highest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = weights.iter().map(|weight| (slope * (weight - highest)).exp()).sum();
    if sum >= 1.0 { 1.0 / sum } else { 1.0 }
}

/// Returns the highest probability that an untrained decision may claim on the way from a tie to a clear lead.
pub(super) fn highest_claim(weights: &[f64], curve: Curve) -> f64 {
    odds(weights, STEEPER * curve.slope)
}

impl JudgeProfile {
    /// Returns the judging method of a model with this many parameters.
    pub(crate) fn for_parameters(parameters: u64) -> Self {
        let curves = FITTED.iter().find(|(of, _)| *of == parameters).map(|(_, curves)| *curves);
        let (fixed, listed) = match parameters {
            REASONS.. => (ONLY_ASKED, Shares { asked: 3.0, weighed: 1.0 }),
            CAN_BE_ASKED.. => (Shares { asked: 1.0, weighed: 1.0 }, ONLY_WEIGHED),
            _ => (ONLY_WEIGHED, ONLY_WEIGHED),
        };
        Self {
            is_asked: parameters >= CAN_BE_ASKED,
            fixed,
            listed,
            is_fitted: curves.is_some(),
            curves: curves.unwrap_or(UNFITTED),
        }
    }
}

impl Curve {
    /// Fits the curve that best predicts from weights whether decisions were right, by Newton's method; a step that
    /// increases the cost is halved. A penalty limits the slope if every lead is right, and the slope is never
    /// negative: more weight never means less confidence. One extra case, half right, keeps a few cases from promising
    /// certainty.
    pub(super) fn fit(rows: &[(f64, bool)]) -> Self {
        let count: f64 = rows.iter().map(|_| 1.0).sum();
        let mean = rows.iter().map(|(weight, _)| weight).sum::<f64>() / count.max(1.0);
        let mut outcomes: Vec<(f64, f64)> =
            rows.iter().map(|(weight, right)| (*weight, f64::from(u8::from(*right)))).collect();
        outcomes.push((mean, 0.5));
        let keep = 0.001 * count.max(1.0);
        let mut curve = Self { slope: 0.0, offset: 0.0 };
        for _ in 0..50 {
            let (step, cost) = (curve.newton_step(&outcomes, keep), curve.cost(&outcomes, keep));
            let shares = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(40);
            let moved = |share: f64| Self {
                slope: curve.slope - share * step.slope,
                offset: curve.offset - share * step.offset,
            };
            // If no step is better, this is the best.
            let Some(better) = shares.map(moved).find(|moved| moved.cost(&outcomes, keep) < cost) else {
                break;
            };
            curve = better;
        }
        if curve.slope < 0.0 {
            let right: f64 = outcomes.iter().map(|(_, right)| right).sum();
            return Self { slope: 0.0, offset: (right / (count + 1.0 - right)).ln() };
        }
        curve
    }

    /// Returns the step of Newton's method, to be subtracted.
    fn newton_step(&self, outcomes: &[(f64, f64)], keep: f64) -> Self {
        let (mut slope, mut offset) = (keep * self.slope, 0.0);
        let (mut steep, mut mixed, mut flat) = (keep, 0.0, 1e-9);
        for (weight, right) in outcomes {
            let likely = self.at(*weight);
            let (error, spread) = (likely - right, likely * (1.0 - likely));
            slope += error * weight;
            offset += error;
            steep += spread * weight * weight;
            mixed += spread * weight;
            flat += spread;
        }
        let whole = steep * flat - mixed * mixed;
        Self {
            slope: (flat * slope - mixed * offset) / whole,
            offset: (steep * offset - mixed * slope) / whole,
        }
    }

    /// Returns the cost of the curve as a predictor of the outcomes; lower is better.
    fn cost(&self, outcomes: &[(f64, f64)], keep: f64) -> f64 {
        let one = |(weight, right): &(f64, f64)| {
            let odds = self.slope * weight + self.offset;
            odds.max(0.0) + (-odds.abs()).exp().ln_1p() - right * odds
        };
        outcomes.iter().map(one).sum::<f64>() + 0.5 * keep * self.slope * self.slope
    }

    pub(super) fn at(&self, weight: f64) -> f64 {
        if weight == f64::INFINITY {
            return 1.0;
        }
        1.0 / (1.0 + (-(self.slope * weight + self.offset)).exp())
    }
}

/// Returns the probability that a whole answer is right, assuming independent errors. On the tuning half this is closer
/// to the truth than the weakest decision, or any value between.
pub(super) fn joint_probability(probabilities: impl Iterator<Item = f64>) -> Option<f64> {
    probabilities.reduce(|all, each| all * each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_of_k_values_is_worth_one_in_k() {
        for count in 1..=8_u32 {
            let tie = vec![-3.5; usize::try_from(count).unwrap()];
            for (_, curves) in FITTED {
                for curve in [curves.weighed, curves.fixed, curves.listed, curves.order] {
                    for worth in [odds(&tie, curve.slope), highest_claim(&tie, curve)] {
                        assert!((worth - 1.0 / f64::from(count)).abs() < 1e-9, "{count}: {worth}");
                    }
                }
            }
        }
        // More candidates leave less for the first one.
        assert!(odds(&[1.0, 0.0, 0.0], 1.0) < odds(&[1.0, 0.0], 1.0));
        assert!((odds(&[f64::INFINITY], 1.0) - 1.0).abs() < 1e-9);
    }

    /// Log-likelihoods of pieces are far from zero, where slope and offset are correlated.
    #[test]
    fn a_curve_is_found_however_far_the_weights_are_from_zero() {
        let rows = |shift: f64| -> Vec<(f64, bool)> {
            (0..60).map(|i| (f64::from(i) / 10.0 + shift, (i > 20) != (i % 7 == 0))).collect()
        };
        let near = Curve::fit(&rows(-2.0));
        assert!(near.slope > 0.5, "{near:?}");
        for shift in [-9.0, -40.0, 30.0] {
            let far = Curve::fit(&rows(shift));
            // The slope has a small penalty, so the offset cannot follow completely.
            assert!((far.slope - near.slope).abs() < 0.02, "{far:?} {near:?}");
            let middle = |curve: &Curve, shift: f64| curve.at(3.0 + shift);
            assert!((middle(&far, shift) - middle(&near, -2.0)).abs() < 0.01, "{far:?} {near:?}");
        }
    }

    #[test]
    fn weights_that_say_nothing_give_the_share_of_right_ones() {
        let rows: Vec<(f64, bool)> = (0..100).map(|i| (f64::from(100 - i), i >= 10)).collect();
        let falling = Curve::fit(&rows);
        assert!(falling.slope.abs() < f64::EPSILON && (falling.at(50.0) - 0.9).abs() < 0.01, "{falling:?}");
        let same: Vec<(f64, bool)> = (0..100).map(|i| (-7.0, i >= 25)).collect();
        assert!((Curve::fit(&same).at(-7.0) - 0.75).abs() < 0.01);
    }

    #[test]
    fn a_few_cases_that_are_all_right_promise_no_certainty() {
        let rows: Vec<(f64, bool)> = (0..40).map(|_| (2.0, true)).collect();
        let sure = Curve::fit(&rows).at(2.0);
        assert!((sure - 40.5 / 41.0).abs() < 0.005, "{sure}");
        assert!(Curve::fit(&[]).at(1.0).is_finite());
    }
}
