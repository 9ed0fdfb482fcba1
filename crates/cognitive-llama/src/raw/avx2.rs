//! The kernels for AVX2 with FMA and F16C: the rows of a tile in two halves of eight. The sums equal those of AVX-512
//! bit by bit: integers are exact, and everything else is computed in the same order.

#![expect(clippy::indexing_slicing, reason = "every index is below a constant length")]

use std::arch::x86_64::{
    __m256, __m256i, _mm_loadu_si128, _mm256_abs_epi8, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
    _mm256_cvtepi32_ps, _mm256_cvtph_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_setzero_si256,
    _mm256_sign_epi8, _mm256_slli_epi16, _mm256_srli_epi16, _mm256_storeu_ps, _mm256_sub_epi32,
};

use super::super::activations::Group;
use super::super::tiles::{Q4Block, Q5Block, Q6Block, Q8Block, ROWS};
use super::{SIDE_BY_SIDE, Sums, Work};

/// The number of rows in a register.
const HALF: usize = 8;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn run(work: impl Work) {
    work.run::<true>();
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4<const N: usize>(tile: &[Q4Block], x: &[Group]) -> Sums<N> {
    let mut stored = [[0.0; ROWS]; N];
    q4_half::<N, 0>(tile, x, &mut stored);
    q4_half::<N, 1>(tile, x, &mut stored);
    stored
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q4_half<const N: usize, const SIDE: usize>(tile: &[Q4Block], x: &[Group], stored: &mut Sums<N>) {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let (scale, min) = (halves::<SIDE>(&weights.scale), halves::<SIDE>(&weights.min));
        let (low, high) = split::<SIDE>(&weights.nibbles);
        for n in 0..N {
            // Eight pairs of at most 15 * 127 each stay below 32,768.
            let mut pairs = _mm256_setzero_si256();
            for k in 0..4 {
                let one = _mm256_maddubs_epi16(low[k], _mm256_set1_epi32(x[n].bytes[k]));
                let other = _mm256_maddubs_epi16(high[k], _mm256_set1_epi32(x[n].bytes[k + 4]));
                pairs = _mm256_add_epi16(pairs, _mm256_add_epi16(one, other));
            }
            let dots = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones));
            let worth = _mm256_mul_ps(scale, _mm256_set1_ps(x[n].scale));
            sums[n] = _mm256_fmadd_ps(dots, worth, sums[n]);
            sums[n] = _mm256_fmadd_ps(min, _mm256_set1_ps(x[n].scaled_sum), sums[n]);
        }
    }
    store::<N, SIDE>(sums, stored);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5<const N: usize>(tile: &[Q5Block], x: &[Group]) -> Sums<N> {
    let mut stored = [[0.0; ROWS]; N];
    q5_half::<N, 0>(tile, x, &mut stored);
    q5_half::<N, 1>(tile, x, &mut stored);
    stored
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q5_half<const N: usize, const SIDE: usize>(tile: &[Q5Block], x: &[Group], stored: &mut Sums<N>) {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let (scale, min) = (halves::<SIDE>(&weights.scale), halves::<SIDE>(&weights.min));
        let fifth = load::<SIDE>(&weights.fifth);
        let (mut low, mut high) = split::<SIDE>(&weights.nibbles);
        low[0] = with_bits::<16>(low[0], _mm256_slli_epi16::<4>(fifth));
        low[1] = with_bits::<16>(low[1], _mm256_slli_epi16::<3>(fifth));
        low[2] = with_bits::<16>(low[2], _mm256_slli_epi16::<2>(fifth));
        low[3] = with_bits::<16>(low[3], _mm256_slli_epi16::<1>(fifth));
        high[0] = with_bits::<16>(high[0], fifth);
        high[1] = with_bits::<16>(high[1], _mm256_srli_epi16::<1>(fifth));
        high[2] = with_bits::<16>(high[2], _mm256_srli_epi16::<2>(fifth));
        high[3] = with_bits::<16>(high[3], _mm256_srli_epi16::<3>(fifth));
        for n in 0..N {
            // Four pairs of at most 2 * 31 * 127 each stay below 32,768.
            let (mut one, mut other) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            for k in 0..4 {
                let near = _mm256_maddubs_epi16(low[k], _mm256_set1_epi32(x[n].bytes[k]));
                let far = _mm256_maddubs_epi16(high[k], _mm256_set1_epi32(x[n].bytes[k + 4]));
                (one, other) = (_mm256_add_epi16(one, near), _mm256_add_epi16(other, far));
            }
            let dots = _mm256_add_epi32(_mm256_madd_epi16(one, ones), _mm256_madd_epi16(other, ones));
            let worth = _mm256_mul_ps(scale, _mm256_set1_ps(x[n].scale));
            sums[n] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), worth, sums[n]);
            sums[n] = _mm256_fmadd_ps(min, _mm256_set1_ps(x[n].scaled_sum), sums[n]);
        }
    }
    store::<N, SIDE>(sums, stored);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q6<const N: usize>(tile: &[Q6Block], x: &[Group]) -> Sums<N> {
    let mut stored = [[0.0; ROWS]; N];
    q6_half::<N, 0>(tile, x, &mut stored);
    q6_half::<N, 1>(tile, x, &mut stored);
    stored
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q6_half<const N: usize, const SIDE: usize>(tile: &[Q6Block], x: &[Group], stored: &mut Sums<N>) {
    let mut sums = [_mm256_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let scales = [halves::<SIDE>(&weights.scales[0]), halves::<SIDE>(&weights.scales[1])];
        let (mut low, mut high) = split::<SIDE>(&weights.nibbles);
        for (side, upper) in [&mut low, &mut high].into_iter().zip(&weights.upper) {
            let upper = load::<SIDE>(upper);
            side[0] = with_bits::<48>(side[0], _mm256_slli_epi16::<4>(upper));
            side[1] = with_bits::<48>(side[1], _mm256_slli_epi16::<2>(upper));
            side[2] = with_bits::<48>(side[2], upper);
            side[3] = with_bits::<48>(side[3], _mm256_srli_epi16::<2>(upper));
        }
        for n in 0..N {
            // Each number is 32 too high, so 32 times the sum of the activations is subtracted.
            let (near, far) = x[n].bytes.split_at(4);
            let one = sixteen(&low, near, 32 * x[n].first_sum);
            let other = sixteen(&high, far, 32 * (x[n].sum - x[n].first_sum));
            let worth = _mm256_set1_ps(x[n].scale);
            sums[n] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(one), _mm256_mul_ps(scales[0], worth), sums[n]);
            sums[n] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(other), _mm256_mul_ps(scales[1], worth), sums[n]);
        }
    }
    store::<N, SIDE>(sums, stored);
}

/// Multiplies sixteen columns of six bits with their activations and subtracts an offset.
#[inline]
#[target_feature(enable = "avx2")]
fn sixteen(numbers: &[__m256i; 4], x: &[i32], off: i32) -> __m256i {
    let ones = _mm256_set1_epi16(1);
    let pairs = |k: usize| _mm256_maddubs_epi16(numbers[k], _mm256_set1_epi32(x[k]));
    // Two pairs of at most 2 * 63 * 127 each stay below 32,768.
    let (near, far) = (_mm256_add_epi16(pairs(0), pairs(1)), _mm256_add_epi16(pairs(2), pairs(3)));
    let dots = _mm256_add_epi32(_mm256_madd_epi16(near, ones), _mm256_madd_epi16(far, ones));
    _mm256_sub_epi32(dots, _mm256_set1_epi32(off))
}

/// Returns the low and the high halves of bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn split<const SIDE: usize>(nibbles: &[[u8; 64]; 4]) -> ([__m256i; 4], [__m256i; 4]) {
    let nibble = _mm256_set1_epi8(15);
    let mut low = [_mm256_setzero_si256(); 4];
    let mut high = low;
    for k in 0..4 {
        let bytes = load::<SIDE>(&nibbles[k]);
        low[k] = _mm256_and_si256(bytes, nibble);
        high[k] = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
    }
    (low, high)
}

/// Adds the bits selected by the mask to nibbles.
#[inline]
#[target_feature(enable = "avx2")]
fn with_bits<const MASK: i8>(nibbles: __m256i, bits: __m256i) -> __m256i {
    _mm256_or_si256(nibbles, _mm256_and_si256(bits, _mm256_set1_epi8(MASK)))
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q8<const N: usize>(tile: &[Q8Block], x: &[Group]) -> Sums<N> {
    let mut stored = [[0.0; ROWS]; N];
    q8_half::<N, 0>(tile, x, &mut stored);
    q8_half::<N, 1>(tile, x, &mut stored);
    stored
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q8_half<const N: usize, const SIDE: usize>(tile: &[Q8Block], x: &[Group], stored: &mut Sums<N>) {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = halves::<SIDE>(&weights.scale);
        for n in 0..N {
            let mut dots = _mm256_setzero_si256();
            for k in 0..8 {
                // One operand must be unsigned, so the sign moves to the other. Two products of 128 * 127 stay below
                // 32,768.
                let bytes = load::<SIDE>(&weights.bytes[k]);
                let x = _mm256_sign_epi8(_mm256_set1_epi32(x[n].bytes[k]), bytes);
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(bytes), x);
                dots = _mm256_add_epi32(dots, _mm256_madd_epi16(pairs, ones));
            }
            let worth = _mm256_mul_ps(scale, _mm256_set1_ps(x[n].scale));
            sums[n] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), worth, sums[n]);
        }
    }
    store::<N, SIDE>(sums, stored);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn blend<const R: usize>(
    sums: &mut [[f32; SIDE_BY_SIDE]; R],
    weights: [&[f32]; R],
    values: &[f32],
    stride: usize,
) {
    // Two registers per sum at a time: with all four there would not be enough registers.
    blend_half::<R, 0>(sums, weights, values, stride);
    blend_half::<R, 1>(sums, weights, values, stride);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn blend_half<const R: usize, const SIDE: usize>(
    sums: &mut [[f32; SIDE_BY_SIDE]; R],
    weights: [&[f32]; R],
    values: &[f32],
    stride: usize,
) {
    let mut both = [[_mm256_setzero_ps(); R]; 2];
    for r in 0..R {
        (both[0][r], both[1][r]) = floats::<SIDE>(&sums[r]);
    }
    for (k, values) in values.chunks(stride).take(weights[0].len()).enumerate() {
        let Some(values) = values.first_chunk() else { break };
        let values = floats::<SIDE>(values);
        for r in 0..R {
            let weight = _mm256_set1_ps(weights[r][k]);
            both[0][r] = _mm256_fmadd_ps(weight, values.0, both[0][r]);
            both[1][r] = _mm256_fmadd_ps(weight, values.1, both[1][r]);
        }
    }
    let mut stored = [[0.0; ROWS]; R];
    store::<R, 0>(both[0], &mut stored);
    store::<R, 1>(both[1], &mut stored);
    for r in 0..R {
        sums[r].as_chunks_mut().0[SIDE] = stored[r];
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn floats<const SIDE: usize>(values: &[f32; SIDE_BY_SIDE]) -> (__m256, __m256) {
    let values: &[f32; 16] = &values.as_chunks().0[SIDE];
    // SAFETY: the array has the 16 numbers that are read, and the instruction takes any alignment.
    unsafe { (_mm256_loadu_ps(values.as_ptr()), _mm256_loadu_ps(values.as_ptr().add(HALF))) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load<const SIDE: usize>(bytes: &[u8; 64]) -> __m256i {
    let bytes: &[u8; 32] = &bytes.as_chunks().0[SIDE];
    // SAFETY: the array has the 32 bytes that are read, and the instruction takes any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn halves<const SIDE: usize>(bits: &[u16; ROWS]) -> __m256 {
    let bits: &[u16; HALF] = &bits.as_chunks().0[SIDE];
    // SAFETY: the array has the 16 bytes that are read, and the instruction takes any alignment.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(bits.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn store<const N: usize, const SIDE: usize>(sums: [__m256; N], stored: &mut Sums<N>) {
    for (to, from) in stored.iter_mut().zip(sums) {
        let to: &mut [f32; HALF] = &mut to.as_chunks_mut().0[SIDE];
        // SAFETY: the array has room for the 8 numbers that are written, and the instruction takes any alignment.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), from) };
    }
}
