//! The kernels for NEON: four rows of four columns in a register. Only the integer products are written by hand; the
//! compiler vectorises the rest for this processor anyway. On other machines the tests run under qemu:
//!
//! ```sh
//! rustup target add aarch64-unknown-linux-gnu   # and Debian's gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user-static
//! export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
//! export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
//! cargo test -p cognitive-llama --lib --target aarch64-unknown-linux-gnu
//! ```

#![expect(clippy::indexing_slicing, reason = "every index is below a constant length")]

use std::arch::aarch64::{
    int8x16_t, int16x8_t, int32x4_t, uint8x16_t, vandq_u8, vdupq_n_s16, vdupq_n_s32, vdupq_n_u8, vget_low_s8,
    vld1q_u8, vmlal_high_s8, vmlal_s8, vorrq_u8, vpadalq_s16, vpaddlq_s16, vpaddq_s32, vreinterpretq_s8_s32,
    vreinterpretq_s8_u8, vshlq_n_u8, vshrq_n_u8, vst1q_s32,
};

use super::super::activations::{ActivationBlock, Group};
use super::super::tiles::{Q4Block, Q5Block, Q6Block, Q8Block, ROWS, half};
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
pub(super) fn q5<const N: usize>(tile: &[Q5Block], x: &[Group]) -> Sums<N> {
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = weights.scale.map(half);
        let min = weights.min.map(half);
        for quarter in 0..ROWS / 4 {
            let fifth = load(&weights.fifth, quarter);
            let (mut low, mut high) = split(&weights.nibbles, quarter);
            low[0] = with_bits::<16>(low[0], vshlq_n_u8::<4>(fifth));
            low[1] = with_bits::<16>(low[1], vshlq_n_u8::<3>(fifth));
            low[2] = with_bits::<16>(low[2], vshlq_n_u8::<2>(fifth));
            low[3] = with_bits::<16>(low[3], vshlq_n_u8::<1>(fifth));
            high[0] = with_bits::<16>(high[0], fifth);
            high[1] = with_bits::<16>(high[1], vshrq_n_u8::<1>(fifth));
            high[2] = with_bits::<16>(high[2], vshrq_n_u8::<2>(fifth));
            high[3] = with_bits::<16>(high[3], vshrq_n_u8::<3>(fifth));
            for (sums, x) in sums.iter_mut().zip(x) {
                // Eight products of at most 31 * 127 each stay below 32,768.
                let (mut near, mut far) = (vdupq_n_s16(0), vdupq_n_s16(0));
                for k in 0..4 {
                    (near, far) = multiply(near, far, vreinterpretq_s8_u8(low[k]), four(x, k));
                    (near, far) = multiply(near, far, vreinterpretq_s8_u8(high[k]), four(x, k + 4));
                }
                let mut dots = [0; 4];
                store(vpaddq_s32(vpaddlq_s16(near), vpaddlq_s16(far)), &mut dots);
                let rows = 4 * quarter..4 * quarter + 4;
                for ((sum, dot), row) in sums[rows.clone()].iter_mut().zip(dots).zip(rows) {
                    *sum = to_float(dot).mul_add(scale[row] * x.scale, *sum);
                    *sum = min[row].mul_add(x.scaled_sum, *sum);
                }
            }
        }
    }
    sums
}

#[target_feature(enable = "neon")]
pub(super) fn q6<const N: usize>(tile: &[Q6Block], x: &[Group]) -> Sums<N> {
    let mut sums = [[0.0; ROWS]; N];
    for (weights, x) in tile.iter().zip(x) {
        let scales = weights.scales.map(|scales| scales.map(half));
        for quarter in 0..ROWS / 4 {
            let (mut low, mut high) = split(&weights.nibbles, quarter);
            for (side, upper) in [&mut low, &mut high].into_iter().zip(&weights.upper) {
                let upper = load(upper, quarter);
                side[0] = with_bits::<48>(side[0], vshlq_n_u8::<4>(upper));
                side[1] = with_bits::<48>(side[1], vshlq_n_u8::<2>(upper));
                side[2] = with_bits::<48>(side[2], upper);
                side[3] = with_bits::<48>(side[3], vshrq_n_u8::<2>(upper));
            }
            for (sums, x) in sums.iter_mut().zip(x) {
                let (one, other) = (sixteen(&low, x, 0), sixteen(&high, x, 4));
                // Each number is 32 too high, so 32 times the sum of the activations is subtracted.
                let (one_off, other_off) = (32 * x.first_sum, 32 * (x.sum - x.first_sum));
                for at in 0..4 {
                    let row = 4 * quarter + at;
                    let sum = to_float(one[at] - one_off).mul_add(scales[0][row] * x.scale, sums[row]);
                    sums[row] = to_float(other[at] - other_off).mul_add(scales[1][row] * x.scale, sum);
                }
            }
        }
    }
    sums
}

/// Multiplies sixteen columns of six bits of four rows with the activations from group `first` on.
#[inline]
#[target_feature(enable = "neon")]
fn sixteen(numbers: &[uint8x16_t; 4], x: &ActivationBlock, first: usize) -> [i32; 4] {
    // Four products of at most 63 * 127 each stay below 32,768.
    let (mut near, mut far) = (vdupq_n_s16(0), vdupq_n_s16(0));
    for k in 0..4 {
        (near, far) = multiply(near, far, vreinterpretq_s8_u8(numbers[k]), four(x, first + k));
    }
    let mut dots = [0; 4];
    store(vpaddq_s32(vpaddlq_s16(near), vpaddlq_s16(far)), &mut dots);
    dots
}

/// Returns the low and the high halves of the bytes of four rows.
#[inline]
#[target_feature(enable = "neon")]
fn split(nibbles: &[[u8; 64]; 4], quarter: usize) -> ([uint8x16_t; 4], [uint8x16_t; 4]) {
    let mut low = [vdupq_n_u8(0); 4];
    let mut high = low;
    for k in 0..4 {
        let bytes = load(&nibbles[k], quarter);
        low[k] = vandq_u8(bytes, vdupq_n_u8(15));
        high[k] = vshrq_n_u8::<4>(bytes);
    }
    (low, high)
}

/// Adds the bits selected by the mask to nibbles.
#[inline]
#[target_feature(enable = "neon")]
fn with_bits<const MASK: u8>(nibbles: uint8x16_t, bits: uint8x16_t) -> uint8x16_t {
    vorrq_u8(nibbles, vandq_u8(bits, vdupq_n_u8(MASK)))
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

/// Repeats the same four activations for each of four rows.
#[inline]
#[target_feature(enable = "neon")]
fn four(x: &ActivationBlock, k: usize) -> int8x16_t {
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
fn to_float(dot: i32) -> f32 {
    dot as f32
}

#[inline]
fn weigh(sums: &mut [f32; ROWS], dots: [i32; ROWS], scale: &[f32; ROWS], x: &ActivationBlock) {
    for ((sum, dot), scale) in sums.iter_mut().zip(dots).zip(scale) {
        *sum = to_float(dot).mul_add(scale * x.scale, *sum);
    }
}
