//! The kernels for NEON: four rows of four columns in a register. Everything but the whole-number products is left to the
//! compiler, which vectorises it for this processor anyway.

#![expect(clippy::indexing_slicing, reason = "every index is below a constant length")]

use std::arch::aarch64::{
    int8x16_t, int16x8_t, int32x4_t, uint8x16_t, vandq_u8, vdupq_n_s16, vdupq_n_s32, vdupq_n_u8, vget_low_s8,
    vld1q_u8, vmlal_high_s8, vmlal_s8, vpadalq_s16, vpaddlq_s16, vpaddq_s32, vreinterpretq_s8_s32,
    vreinterpretq_s8_u8, vshrq_n_u8, vst1q_s32,
};

use super::super::activations::{Group, Quantised};
use super::super::tiles::{Q4Block, Q8Block, ROWS, half};
use super::Sums;

#[target_feature(enable = "neon")]
pub(super) fn q4<const N: usize>(tile: &[Q4Block], x: &[Group]) -> Sums<N> {
    let nibble = vdupq_n_u8(15);
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = weights.scale.map(half);
        let min = weights.min.map(half);
        for (sums, x) in sums.iter_mut().zip(x) {
            let mut dots = [0; ROWS];
            for (quarter, dots) in dots.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                // Eight products of at most 15 * 127 each stay below 32,768.
                let (mut near, mut far) = (vdupq_n_s16(0), vdupq_n_s16(0));
                for k in 0..4 {
                    let bytes = load(&weights.nibbles[k], quarter);
                    let low = vreinterpretq_s8_u8(vandq_u8(bytes, nibble));
                    let high = vreinterpretq_s8_u8(vshrq_n_u8::<4>(bytes));
                    (near, far) = multiply(near, far, low, four(x, k));
                    (near, far) = multiply(near, far, high, four(x, k + 4));
                }
                store(vpaddq_s32(vpaddlq_s16(near), vpaddlq_s16(far)), dots);
            }
            weigh(sums, dots, &scale, x);
            for (sum, min) in sums.iter_mut().zip(min) {
                *sum = min.mul_add(x.scaled_sum, *sum);
            }
        }
    }
    sums
}

#[target_feature(enable = "neon")]
pub(super) fn q8<const N: usize>(tile: &[Q8Block], x: &[Group]) -> Sums<N> {
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = weights.scale.map(half);
        for (sums, x) in sums.iter_mut().zip(x) {
            let mut dots = [0; ROWS];
            for (quarter, dots) in dots.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let (mut near_sum, mut far_sum) = (vdupq_n_s32(0), vdupq_n_s32(0));
                for k in [0, 2, 4, 6] {
                    // Two products of at most 128 * 127 each stay below 32,768.
                    let (mut near, mut far) = (vdupq_n_s16(0), vdupq_n_s16(0));
                    for k in [k, k + 1] {
                        let bytes = vreinterpretq_s8_u8(load(&weights.bytes[k], quarter));
                        (near, far) = multiply(near, far, bytes, four(x, k));
                    }
                    near_sum = vpadalq_s16(near_sum, near);
                    far_sum = vpadalq_s16(far_sum, far);
                }
                store(vpaddq_s32(near_sum, far_sum), dots);
            }
            weigh(sums, dots, &scale, x);
        }
    }
    sums
}

/// The same four activations for each of four rows.
#[inline]
#[target_feature(enable = "neon")]
fn four(x: &Quantised, k: usize) -> int8x16_t {
    vreinterpretq_s8_s32(vdupq_n_s32(x.bytes[k]))
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply(near: int16x8_t, far: int16x8_t, weights: int8x16_t, x: int8x16_t) -> (int16x8_t, int16x8_t) {
    (vmlal_s8(near, vget_low_s8(weights), vget_low_s8(x)), vmlal_high_s8(far, weights, x))
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 64], quarter: usize) -> uint8x16_t {
    let bytes: &[u8; 16] = &bytes.as_chunks().0[quarter];
    // SAFETY: the array has the 16 bytes that are read, and the instruction takes any alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(from: int32x4_t, to: &mut [i32; 4]) {
    // SAFETY: the array has room for the four numbers that are written, and the instruction takes any alignment.
    unsafe { vst1q_s32(to.as_mut_ptr(), from) };
}

#[inline]
#[expect(clippy::cast_precision_loss, reason = "at most 32 * 128 * 127, which is exact")]
fn weigh(sums: &mut [f32; ROWS], dots: [i32; ROWS], scale: &[f32; ROWS], x: &Quantised) {
    for ((sum, dot), scale) in sums.iter_mut().zip(dots).zip(scale) {
        *sum = (dot as f32).mul_add(scale * x.scale, *sum);
    }
}
