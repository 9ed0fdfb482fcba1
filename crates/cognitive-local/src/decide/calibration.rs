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
    /// The curve that says best of weights whether they were right, by Newton's method. The slope is kept from growing without
    /// bound where every lead is right, and from falling: more weight never says less.
    pub(super) fn fitted(rows: &[(f64, bool)]) -> Self {
        let count: f64 = rows.iter().map(|_| 1.0).sum();
        let mut curve = Self { slope: 0.0, offset: 0.0 };
        for _ in 0..50 {
            let keep = 0.001 * count.max(1.0);
            let (mut slope, mut offset) = (keep * curve.slope, 0.0);
            let (mut steep, mut mixed, mut flat) = (keep, 0.0, 1e-6);
            for (weight, right) in rows {
                let likely = curve.at(*weight);
                let (error, spread) = (likely - f64::from(u8::from(*right)), likely * (1.0 - likely));
                slope += error * weight;
                offset += error;
                steep += spread * weight * weight;
                mixed += spread * weight;
                flat += spread;
            }
            let whole = steep * flat - mixed * mixed;
            let moved = Self {
                slope: curve.slope - ((flat * slope - mixed * offset) / whole).clamp(-1.0, 1.0),
                offset: curve.offset - ((steep * offset - mixed * slope) / whole).clamp(-1.0, 1.0),
            };
            if !(moved.slope.is_finite() && moved.offset.is_finite()) {
                break;
            }
            curve = moved;
        }
        Self { slope: curve.slope.max(0.0), ..curve }
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
