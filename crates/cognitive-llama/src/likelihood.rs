//! The likelihood of known tokens. Logits are computed for a few tokens at a time, and only one number per token is
//! kept.

use super::Model;
use super::activations::Activations;
use super::exp::sum_of_powers;
use super::product::multiply;

/// The number of tokens whose logits are in memory at once: as many as one product with the head computes together.
const AT_ONCE: usize = 8;

/// Returns the log-probability of each token of `next` after the text that ends with its vector.
pub(super) fn log_probabilities(
    model: &Model,
    packed: &mut Activations,
    vectors: &[f32],
    next: &[u32],
) -> Vec<f32> {
    let (head, width) = (model.weights.head(), model.shape.width);
    let rows = model.tokenizer.len();
    let mut logits = vec![0.0; AT_ONCE.min(next.len()) * rows];
    let mut found = Vec::new();
    for (vectors, next) in vectors.chunks(AT_ONCE * width).zip(next.chunks(AT_ONCE)) {
        packed.normalise(model.kernel, vectors, &model.weights.norm, model.shape.epsilon);
        multiply(model.kernel, head, packed, &mut logits);
        found.extend(logits.chunks_exact(rows).zip(next).map(|(logits, token)| {
            let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let chosen = logits.get(*token as usize).copied().unwrap_or(f32::NEG_INFINITY);
            chosen - highest - sum_of_powers(model.kernel, logits, highest).ln()
        }));
    }
    found
}
