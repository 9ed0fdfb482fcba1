//! The kernels without vector instructions: the reference for the others, and the fallback on every processor.

#![expect(clippy::indexing_slicing, reason = "every index is below a constant length")]

use super::super::activations::{ActivationBlock, Group};
use super::super::tiles::{Q4Block, Q5Block, Q6Block, Q8Block, ROWS, half};
use super::{SIDE_BY_SIDE, Sums, mul_add};

pub(super) fn q4<const N: usize>(tile: &[Q4Block], x: &[Group]) -> Sums<N> {
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = weights.scale.map(half);
        let min = weights.min.map(half);
        for (sums, x) in sums.iter_mut().zip(x) {
            let mut dots = [0_i32; ROWS];
            for (k, bytes) in weights.nibbles.iter().enumerate() {
                let (low, high) = (signed_values(x, k), signed_values(x, k + 4));
                for (dot, four) in dots.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    for ((byte, low), high) in four.iter().zip(low).zip(high) {
                        *dot += i32::from(byte & 15) * low + i32::from(byte >> 4) * high;
                    }
                }
            }
            for row in 0..ROWS {
                sums[row] += to_float(dots[row]) * (scale[row] * x.scale);
                sums[row] += min[row] * x.scaled_sum;
            }
        }
    }
    sums
}

pub(super) fn q5<const N: usize>(tile: &[Q5Block], x: &[Group]) -> Sums<N> {
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = weights.scale.map(half);
        let min = weights.min.map(half);
        let mut numbers = [[0; 64]; 8];
        for k in 0..4 {
            for (at, byte) in weights.nibbles[k].iter().enumerate() {
                let fifth = weights.fifth[at];
                numbers[k][at] = byte & 15 | (fifth >> k & 1) << 4;
                numbers[k + 4][at] = byte >> 4 | (fifth >> (k + 4) & 1) << 4;
            }
        }
        for (sums, x) in sums.iter_mut().zip(x) {
            let dots = dots(&numbers, x, 0);
            for row in 0..ROWS {
                sums[row] += to_float(dots[row]) * (scale[row] * x.scale);
                sums[row] += min[row] * x.scaled_sum;
            }
        }
    }
    sums
}

pub(super) fn q6<const N: usize>(tile: &[Q6Block], x: &[Group]) -> Sums<N> {
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scales = weights.scales.map(|scales| scales.map(half));
        let mut numbers = [[0; 64]; 8];
        for k in 0..4 {
            for (at, byte) in weights.nibbles[k].iter().enumerate() {
                numbers[k][at] = byte & 15 | (weights.upper[0][at] >> (2 * k) & 3) << 4;
                numbers[k + 4][at] = byte >> 4 | (weights.upper[1][at] >> (2 * k) & 3) << 4;
            }
        }
        let (near, far) = numbers.split_at(4);
        for (sums, x) in sums.iter_mut().zip(x) {
            let (one, other) = (dots(near, x, 0), dots(far, x, 4));
            let (one_off, other_off) = (32 * x.first_sum, 32 * (x.sum - x.first_sum));
            for row in 0..ROWS {
                sums[row] += to_float(one[row] - one_off) * (scales[0][row] * x.scale);
                sums[row] += to_float(other[row] - other_off) * (scales[1][row] * x.scale);
            }
        }
    }
    sums
}

/// Multiplies groups of four columns with the activations from group `first` on.
fn dots(groups: &[[u8; 64]], x: &ActivationBlock, first: usize) -> [i32; ROWS] {
    let mut dots = [0; ROWS];
    for (k, bytes) in groups.iter().enumerate() {
        let x = signed_values(x, first + k);
        for (dot, four) in dots.iter_mut().zip(bytes.as_chunks::<4>().0) {
            for (byte, x) in four.iter().zip(x) {
                *dot += i32::from(*byte) * x;
            }
        }
    }
    dots
}

pub(super) fn q8<const N: usize>(tile: &[Q8Block], x: &[Group]) -> Sums<N> {
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = weights.scale.map(half);
        for (sums, x) in sums.iter_mut().zip(x) {
            let mut dots = [0_i32; ROWS];
            for (k, bytes) in weights.bytes.iter().enumerate() {
                let x = signed_values(x, k);
                for (dot, four) in dots.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    for (byte, x) in four.iter().zip(x) {
                        *dot += i32::from(byte.cast_signed()) * x;
                    }
                }
            }
            for row in 0..ROWS {
                sums[row] += to_float(dots[row]) * (scale[row] * x.scale);
            }
        }
    }
    sums
}

pub(super) fn blend<const R: usize, const FUSED: bool>(
    sums: &mut [[f32; SIDE_BY_SIDE]; R],
    weights: [&[f32]; R],
    values: &[f32],
    stride: usize,
) {
    for (k, values) in values.chunks(stride).take(weights[0].len()).enumerate() {
        let Some(values) = values.first_chunk::<SIDE_BY_SIDE>() else { return };
        for r in 0..R {
            let weight = weights[r][k];
            for (sum, value) in sums[r].iter_mut().zip(values) {
                *sum = mul_add::<FUSED>(weight, *value, *sum);
            }
        }
    }
}

/// Returns four activations.
fn signed_values(x: &ActivationBlock, k: usize) -> [i32; 4] {
    x.bytes[k].to_le_bytes().map(|byte| byte.cast_signed().into())
}

#[expect(clippy::cast_precision_loss, reason = "at most 32 * 128 * 127, which is exact")]
fn to_float(dot: i32) -> f32 {
    dot as f32
}
