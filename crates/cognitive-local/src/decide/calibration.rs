//! How often decisions of this kind are right: two curves with constants that were fitted to the tuning half of the sets
//! in `eval/`, never to the other half. They belong to `SmolLM2-135M-Instruct` and to the two kinds of decisions; for
//! another model file they are a first guess. The ignored test in `tests.rs` fits them anew:
//! `cargo test -p cognitive-local --lib -- --ignored --nocapture the_constants`.

/// Of choices: how far the first is ahead of the second, per way of judging.
pub(super) const LEAD: Curve = Curve { slope: 1.752, offset: 0.627 };
/// Of pieces: the logarithm of the probability of the likeliest.
pub(super) const PIECE: Curve = Curve { slope: 0.893, offset: 5.729 };

#[derive(Debug, Clone, Copy)]
pub(super) struct Curve {
    pub slope: f64,
    pub offset: f64,
}

impl Curve {
    pub(super) fn at(&self, weight: f64) -> f64 {
        1.0 / (1.0 + (-(self.slope * weight + self.offset)).exp())
    }
}

/// How often the first candidate is right that is so far ahead of the second.
pub(super) fn of_lead(lead: f64) -> f64 {
    if lead.is_finite() { LEAD.at(lead) } else { 1.0 }
}

/// How often a piece of this weight is there and is the right one.
pub(super) fn of_piece(weight: f64) -> f64 {
    PIECE.at(weight)
}

/// How often an answer is right as a whole, as if its decisions went wrong independently of each other: on the tuning half
/// that is nearer to the truth than the weakest of them, or anything between.
pub(super) fn of_all(probabilities: impl Iterator<Item = f64>) -> Option<f64> {
    probabilities.reduce(|all, each| all * each)
}
