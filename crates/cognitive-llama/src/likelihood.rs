//! How likely tokens are that are known already: the logits of every token of a block, a few at a time, and of each only
//! one number is kept.

use super::Model;
use super::exp::sum_of_powers;
use super::forward::Scratch;
use super::product::multiply;

/// How many tokens have their logits in memory at once: as many as the head is multiplied with in one go.
const AT_ONCE: usize = 8;

/// The logarithm of the probability of each next token, for as many as there are. `scratch` holds the vectors of a block,
/// and `next` begins with the token that follows the first of them.
pub(super) fn of(model: &Model, scratch: &mut Scratch, next: &[u32]) -> Vec<f32> {
    let (head, width) = (model.weights.head(), model.shape.width);
    let rows = model.tokenizer.len();
    let mut logits = vec![0.0; AT_ONCE * rows];
    let mut found = Vec::new();
    let Scratch { x, packed, .. } = scratch;
    for (vectors, next) in x.chunks(AT_ONCE * width).zip(next.chunks(AT_ONCE)) {
        packed.normalise(model.kernel, vectors, &model.weights.norm, model.shape.epsilon);
        multiply(model.kernel, head, packed, &mut logits);
        found.extend(logits.chunks_exact(rows).take(vectors.len() / width).zip(next).map(
            |(logits, token)| {
                let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let chosen = logits.get(*token as usize).copied().unwrap_or(f32::NEG_INFINITY);
                chosen - highest - sum_of_powers(model.kernel, logits, highest).ln()
            },
        ));
    }
    found
}
