//! How a model judges, and how often its judgements are right. Both depend on the model: a small one is at its best when it
//! weighs each candidate by sentences that it completes; a larger one understands a question and may be asked. Which way a
//! model goes follows from its size alone. The curves were fitted to the tuning half of the sets in `eval/`, never to the
//! other half, one set of them for each model in the table below. A model that is not in it gets no promise: its curves
//! are the plain odds that it gives itself. The ignored test in `tests.rs` fits the curves anew.

/// From here on a question is understood: the number of parameters.
const CAN_BE_ASKED: u64 = 300_000_000;
/// From here on a model weighs and orders as well as it labels and copies.
pub(crate) const REASONS: u64 = 1_000_000_000;

/// How a model judges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JudgeProfile {
    /// Whether it is asked questions that the contract has for it.
    pub(super) is_asked: bool,
    /// What counts where the question names its candidates itself.
    pub(super) fixed: Shares,
    /// What counts where they are listed in the input, so that a question has to list them.
    pub(super) listed: Shares,
    /// Whether the curves were fitted to this model.
    pub(super) is_fitted: bool,
    pub(super) curves: Curves,
}

/// How much the answer to a question counts, and how much each sentence that weighs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    pub asked: f64,
    pub weighed: f64,
}

const ONLY_WEIGHED: Shares = Shares { asked: 0.0, weighed: 1.0 };
const ONLY_ASKED: Shares = Shares { asked: 1.0, weighed: 0.0 };

/// One curve for each kind of judgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curves {
    /// Of choices that a question names: how far the first is ahead of the second, per share.
    pub fixed: Curve,
    /// Of choices that the input lists.
    pub listed: Curve,
    /// Of both where the contract has no question for the model.
    pub weighed: Curve,
    /// Of pieces: the logarithm of the probability of the likeliest.
    pub piece: Curve,
    /// Of pieces that were asked for: how far the likeliest is ahead of none.
    pub asked_piece: Curve,
    /// Of orders: how far the first is ahead of the second.
    pub order: Curve,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    pub slope: f64,
    pub offset: f64,
}

/// The odds that the model gives itself.
const PLAIN: Curve = Curve { slope: 1.0, offset: 0.0 };
/// A piece of a model that nobody has fitted counts if it is likelier than one in a hundred.
const PLAIN_PIECE: Curve = Curve { slope: 1.0, offset: 4.6 };

const UNFITTED: Curves = Curves {
    fixed: PLAIN,
    listed: PLAIN,
    weighed: PLAIN,
    piece: PLAIN_PIECE,
    asked_piece: PLAIN,
    order: PLAIN,
};

/// The models that curves were fitted to, by the number of their parameters: `SmolLM2-135M-Instruct` and
/// `Qwen2.5-Coder-Instruct` with 0.5 and 1.5 billion. What a model is never asked has no curve of its own.
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

impl JudgeProfile {
    /// How a model of so many parameters judges.
    pub(crate) fn of(parameters: u64) -> Self {
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
    /// The curve that says best of weights whether they were right, by Newton's method; a step that would make it worse is
    /// halved. The slope is kept from growing without bound where every lead is right, and from falling: more weight never
    /// says less. One case more, half right, keeps a few cases from promising certainty.
    pub(super) fn fitted(rows: &[(f64, bool)]) -> Self {
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
            // Where nothing is better, this is the best.
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

    /// Where the next step of Newton's method leads from.
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

    /// How badly the curve says what came out; less is better.
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

/// How often an answer is right as a whole, as if its decisions went wrong independently of each other: on the tuning half
/// that is nearer to the truth than the weakest of them, or anything between.
pub(super) fn of_all(probabilities: impl Iterator<Item = f64>) -> Option<f64> {
    probabilities.reduce(|all, each| all * each)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Likelihoods of pieces are far from zero, where slope and offset pull at each other.
    #[test]
    fn a_curve_is_found_however_far_the_weights_are_from_zero() {
        let rows = |shift: f64| -> Vec<(f64, bool)> {
            (0..60).map(|i| (f64::from(i) / 10.0 + shift, (i > 20) != (i % 7 == 0))).collect()
        };
        let near = Curve::fitted(&rows(-2.0));
        assert!(near.slope > 0.5, "{near:?}");
        for shift in [-9.0, -40.0, 30.0] {
            let far = Curve::fitted(&rows(shift));
            // The slope costs a little, so that the offset is not quite free to follow.
            assert!((far.slope - near.slope).abs() < 0.02, "{far:?} {near:?}");
            let middle = |curve: &Curve, shift: f64| curve.at(3.0 + shift);
            assert!((middle(&far, shift) - middle(&near, -2.0)).abs() < 0.01, "{far:?} {near:?}");
        }
    }

    #[test]
    fn weights_that_say_nothing_give_the_share_of_right_ones() {
        let rows: Vec<(f64, bool)> = (0..100).map(|i| (f64::from(100 - i), i >= 10)).collect();
        let falling = Curve::fitted(&rows);
        assert!(falling.slope.abs() < f64::EPSILON && (falling.at(50.0) - 0.9).abs() < 0.01, "{falling:?}");
        let same: Vec<(f64, bool)> = (0..100).map(|i| (-7.0, i >= 25)).collect();
        assert!((Curve::fitted(&same).at(-7.0) - 0.75).abs() < 0.01);
    }

    #[test]
    fn a_few_cases_that_are_all_right_promise_no_certainty() {
        let rows: Vec<(f64, bool)> = (0..40).map(|_| (2.0, true)).collect();
        let sure = Curve::fitted(&rows).at(2.0);
        assert!((sure - 40.5 / 41.0).abs() < 0.005, "{sure}");
        assert!(Curve::fitted(&[]).at(1.0).is_finite());
    }
}
