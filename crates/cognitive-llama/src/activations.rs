//! The activation side of a product: signed bytes in blocks of 32 with one scale each. Eight tokens are interleaved,
//! because the kernels unpack weights once for eight tokens.

#![expect(
    clippy::indexing_slicing,
    reason = "the lengths follow from the shape of the model, which was checked on load"
)]
#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of its kernel"
)]
#![expect(clippy::cast_possible_truncation, reason = "a byte is what is wanted of the bits")]

use super::raw::{Kernel, Work};
use super::tiles::COLUMNS;

/// The number of interleaved tokens.
pub(super) const LANES: usize = 8;

/// 32 activations of one token.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(16))]
pub(super) struct ActivationBlock {
    /// Four signed bytes each, the first in the lowest place.
    pub(super) bytes: [i32; 8],
    /// The value of one step of a byte.
    pub(super) scale: f32,
    /// The sum of the bytes, times the scale.
    pub(super) scaled_sum: f32,
    /// The sum of the bytes.
    pub(super) sum: i32,
    /// The sum of the first 16 bytes.
    pub(super) first_sum: i32,
}

/// A group of 32 columns of eight tokens.
pub(super) type Group = [ActivationBlock; LANES];

/// The activations of a few tokens.
#[derive(Debug, Default)]
pub(super) struct Activations {
    groups: Vec<Group>,
    blocks: usize,
    tokens: usize,
}

impl Activations {
    /// Quantises the rows of `x`.
    pub(super) fn quantise(&mut self, kernel: Kernel, x: &[f32], columns: usize) {
        self.resize(x.len() / columns, columns);
        kernel.run(Quantise { x, columns, to: self });
    }

    /// RMS-normalises each row of `x`, multiplies it with the weights and quantises it.
    pub(super) fn normalise(&mut self, kernel: Kernel, x: &[f32], weights: &[f32], epsilon: f32) {
        self.resize(x.len() / weights.len(), weights.len());
        kernel.run(Normalise { x, weights, epsilon, to: self });
    }

    fn resize(&mut self, tokens: usize, columns: usize) {
        self.tokens = tokens;
        self.blocks = columns / COLUMNS;
        self.groups.resize(self.blocks * tokens.div_ceil(LANES), Group::default());
    }

    /// The number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// The blocks of every eight tokens, with the number of tokens in them.
    pub(super) fn groups(&self) -> impl Iterator<Item = (usize, &[Group])> {
        let counts = (0..self.tokens).step_by(LANES).map(|first| (self.tokens - first).min(LANES));
        counts.zip(self.groups.chunks_exact(self.blocks))
    }

    #[inline(always)]
    fn set(&mut self, token: usize, block: usize, x: &[f32; COLUMNS]) {
        let group = token / LANES * self.blocks + block;
        self.groups[group][token % LANES] = quantise(x);
    }
}

struct Quantise<'a> {
    x: &'a [f32],
    columns: usize,
    to: &'a mut Activations,
}

impl Work for Quantise<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (token, row) in self.x.chunks_exact(self.columns).enumerate() {
            for (block, x) in row.as_chunks().0.iter().enumerate() {
                self.to.set(token, block, x);
            }
        }
    }
}

struct Normalise<'a> {
    x: &'a [f32],
    weights: &'a [f32],
    epsilon: f32,
    to: &'a mut Activations,
}

impl Work for Normalise<'_> {
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "no model is wide enough to lose a digit")]
    fn run<const FUSED: bool>(self) {
        let columns = self.weights.len();
        for (token, row) in self.x.chunks_exact(columns).enumerate() {
            let mut squares = [0.0_f32; COLUMNS];
            for x in row.as_chunks::<COLUMNS>().0 {
                for (square, x) in squares.iter_mut().zip(x) {
                    *square = super::raw::mul_add::<FUSED>(*x, *x, *square);
                }
            }
            let factor = 1.0 / (sum(squares) / columns as f32 + self.epsilon).sqrt();
            let weights = self.weights.as_chunks::<COLUMNS>().0;
            for (block, (x, weights)) in row.as_chunks::<COLUMNS>().0.iter().zip(weights).enumerate() {
                let mut scaled = [0.0; COLUMNS];
                for ((scaled, x), weight) in scaled.iter_mut().zip(x).zip(weights) {
                    *scaled = x * factor * weight;
                }
                self.to.set(token, block, &scaled);
            }
        }
    }
}

#[inline(always)]
fn quantise(x: &[f32; COLUMNS]) -> ActivationBlock {
    // Adding this to a small number leaves its nearest whole number in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let mut largest = [0.0_f32; COLUMNS];
    for (largest, x) in largest.iter_mut().zip(x) {
        *largest = x.abs();
    }
    let largest = fold(largest, |one, other| if one > other { one } else { other });
    let scale = largest / 127.0;
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let mut whole = [0_u8; COLUMNS];
    for (whole, x) in whole.iter_mut().zip(x) {
        *whole = (x * inverse + ROUND).to_bits() as u8;
    }
    let (mut first_sum, mut other_sum) = (0, 0);
    for i in 0..COLUMNS / 2 {
        first_sum += i32::from(whole[i].cast_signed());
        other_sum += i32::from(whole[i + COLUMNS / 2].cast_signed());
    }
    let sum = first_sum + other_sum;
    let mut bytes = [0_i32; 8];
    for (bytes, four) in bytes.iter_mut().zip(whole.as_chunks().0) {
        *bytes = i32::from_le_bytes(*four);
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 32 times 127")]
    let scaled_sum = scale * sum as f32;
    ActivationBlock { bytes, scale, scaled_sum, sum, first_sum }
}

/// The sum of a block, always in the same order, so that every kernel returns the same bits.
#[inline(always)]
pub(super) fn sum(x: [f32; COLUMNS]) -> f32 {
    fold(x, |one, other| one + other)
}

/// Halves a block until one number is left. Every instruction set can add in this order.
#[inline(always)]
pub(super) fn fold(mut x: [f32; COLUMNS], with: impl Fn(f32, f32) -> f32) -> f32 {
    // Unrolled by hand: a nested closure would not be compiled for the instructions of the kernel.
    for i in 0..16 {
        x[i] = with(x[i], x[i + 16]);
    }
    for i in 0..8 {
        x[i] = with(x[i], x[i + 8]);
    }
    for i in 0..4 {
        x[i] = with(x[i], x[i + 4]);
    }
    with(with(x[0], x[2]), with(x[1], x[3]))
}
