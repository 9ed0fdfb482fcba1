//! RMS-normalises rows of plain numbers and multiplies them with weights, in place: the norms of heads and of layer
//! outputs. The norms before products are in `activations`, where they save a pass.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of its kernel"
)]

use super::activations::sum;
use super::raw::{Kernel, Work, mul_add};
use super::tiles::COLUMNS;

/// Normalises each row of `x`. A row has the length of `weights`, a multiple of 32.
pub(super) fn normalise(kernel: Kernel, x: &mut [f32], weights: &[f32], epsilon: f32) {
    kernel.run(RmsNorm { x, weights, epsilon });
}

struct RmsNorm<'a> {
    x: &'a mut [f32],
    weights: &'a [f32],
    epsilon: f32,
}

impl Work for RmsNorm<'_> {
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "no model is wide enough to lose a digit")]
    fn run<const FUSED: bool>(self) {
        for row in self.x.chunks_exact_mut(self.weights.len()) {
            let mut squares = [0.0_f32; COLUMNS];
            for x in row.as_chunks::<COLUMNS>().0 {
                for (square, x) in squares.iter_mut().zip(x) {
                    *square = mul_add::<FUSED>(*x, *x, *square);
                }
            }
            let factor = 1.0 / (sum(squares) / row.len() as f32 + self.epsilon).sqrt();
            for (x, weight) in row.iter_mut().zip(self.weights) {
                *x = *x * factor * weight;
            }
        }
    }
}
