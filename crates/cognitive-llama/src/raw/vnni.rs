//! The kernels for AVX-512 with VNNI: sixteen rows in a register, four columns in one instruction.

#![expect(clippy::indexing_slicing, reason = "every index is below a constant length")]

use std::arch::x86_64::{
    __m512, __m512i, _mm256_loadu_si256, _mm512_add_epi32, _mm512_and_si512, _mm512_cvtepi32_ps,
    _mm512_cvtph_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_mul_ps, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_slli_epi16, _mm512_srli_epi16, _mm512_storeu_ps, _mm512_ternarylogic_epi32,
    _mm512_xor_si512,
};

use super::super::activations::Group;
use super::super::tiles::{Q4Block, Q5Block, Q6Block, Q8Block, ROWS};
use super::{SIDE_BY_SIDE, Sums, Work};

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn run(work: impl Work) {
    work.run::<true>();
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn q4<const N: usize>(tile: &[Q4Block], x: &[Group]) -> Sums<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let (scale, min) = (halves(&weights.scale), halves(&weights.min));
        let (low, high) = split(&weights.nibbles);
        for n in 0..N {
            let mut one = _mm512_setzero_si512();
            let mut other = one;
            for k in 0..4 {
                one = _mm512_dpbusd_epi32(one, low[k], _mm512_set1_epi32(x[n].bytes[k]));
                other = _mm512_dpbusd_epi32(other, high[k], _mm512_set1_epi32(x[n].bytes[k + 4]));
            }
            let dots = _mm512_cvtepi32_ps(_mm512_add_epi32(one, other));
            let worth = _mm512_mul_ps(scale, _mm512_set1_ps(x[n].scale));
            sums[n] = _mm512_fmadd_ps(dots, worth, sums[n]);
            sums[n] = _mm512_fmadd_ps(min, _mm512_set1_ps(x[n].scaled_sum), sums[n]);
        }
    }
    store(sums)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn q5<const N: usize>(tile: &[Q5Block], x: &[Group]) -> Sums<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let (scale, min) = (halves(&weights.scale), halves(&weights.min));
        let fifth = load(&weights.fifth);
        let (mut low, mut high) = split(&weights.nibbles);
        low[0] = with_bits::<16>(low[0], _mm512_slli_epi16::<4>(fifth));
        low[1] = with_bits::<16>(low[1], _mm512_slli_epi16::<3>(fifth));
        low[2] = with_bits::<16>(low[2], _mm512_slli_epi16::<2>(fifth));
        low[3] = with_bits::<16>(low[3], _mm512_slli_epi16::<1>(fifth));
        high[0] = with_bits::<16>(high[0], fifth);
        high[1] = with_bits::<16>(high[1], _mm512_srli_epi16::<1>(fifth));
        high[2] = with_bits::<16>(high[2], _mm512_srli_epi16::<2>(fifth));
        high[3] = with_bits::<16>(high[3], _mm512_srli_epi16::<3>(fifth));
        for n in 0..N {
            let mut one = _mm512_setzero_si512();
            let mut other = one;
            for k in 0..4 {
                one = _mm512_dpbusd_epi32(one, low[k], _mm512_set1_epi32(x[n].bytes[k]));
                other = _mm512_dpbusd_epi32(other, high[k], _mm512_set1_epi32(x[n].bytes[k + 4]));
            }
            let dots = _mm512_cvtepi32_ps(_mm512_add_epi32(one, other));
            let worth = _mm512_mul_ps(scale, _mm512_set1_ps(x[n].scale));
            sums[n] = _mm512_fmadd_ps(dots, worth, sums[n]);
            sums[n] = _mm512_fmadd_ps(min, _mm512_set1_ps(x[n].scaled_sum), sums[n]);
        }
    }
    store(sums)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn q6<const N: usize>(tile: &[Q6Block], x: &[Group]) -> Sums<N> {
    let mut sums = [_mm512_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let scales = [halves(&weights.scales[0]), halves(&weights.scales[1])];
        let (mut low, mut high) = split(&weights.nibbles);
        for (side, upper) in [&mut low, &mut high].into_iter().zip(&weights.upper) {
            let upper = load(upper);
            side[0] = with_bits::<48>(side[0], _mm512_slli_epi16::<4>(upper));
            side[1] = with_bits::<48>(side[1], _mm512_slli_epi16::<2>(upper));
            side[2] = with_bits::<48>(side[2], upper);
            side[3] = with_bits::<48>(side[3], _mm512_srli_epi16::<2>(upper));
        }
        for n in 0..N {
            // Each number is 32 too high, so 32 times the sum of the activations is subtracted.
            let mut one = _mm512_set1_epi32(-32 * x[n].first_sum);
            let mut other = _mm512_set1_epi32(-32 * (x[n].sum - x[n].first_sum));
            for k in 0..4 {
                one = _mm512_dpbusd_epi32(one, low[k], _mm512_set1_epi32(x[n].bytes[k]));
                other = _mm512_dpbusd_epi32(other, high[k], _mm512_set1_epi32(x[n].bytes[k + 4]));
            }
            let worth = _mm512_set1_ps(x[n].scale);
            sums[n] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(one), _mm512_mul_ps(scales[0], worth), sums[n]);
            sums[n] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(other), _mm512_mul_ps(scales[1], worth), sums[n]);
        }
    }
    store(sums)
}

/// Returns the low and the high halves of bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn split(nibbles: &[[u8; 64]; 4]) -> ([__m512i; 4], [__m512i; 4]) {
    let nibble = _mm512_set1_epi8(15);
    let mut low = [_mm512_setzero_si512(); 4];
    let mut high = low;
    for k in 0..4 {
        let bytes = load(&nibbles[k]);
        low[k] = _mm512_and_si512(bytes, nibble);
        high[k] = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), nibble);
    }
    (low, high)
}

/// Adds the bits selected by the mask to nibbles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn with_bits<const MASK: i8>(nibbles: __m512i, bits: __m512i) -> __m512i {
    // a | b & c
    _mm512_ternarylogic_epi32::<0xf8>(nibbles, bits, _mm512_set1_epi8(MASK))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn q8<const N: usize>(tile: &[Q8Block], x: &[Group]) -> Sums<N> {
    // The instruction needs unsigned weights: they are raised by 128, and 128 times the sum of the activations is
    // subtracted.
    let raise = _mm512_set1_epi8(-128);
    let mut sums = [_mm512_setzero_ps(); N];
    for (weights, x) in tile.iter().zip(x) {
        let scale = halves(&weights.scale);
        let mut bytes = [_mm512_setzero_si512(); 8];
        for (raised, bytes) in bytes.iter_mut().zip(&weights.bytes) {
            *raised = _mm512_xor_si512(load(bytes), raise);
        }
        for n in 0..N {
            let mut one = _mm512_set1_epi32(-128 * x[n].sum);
            let mut other = _mm512_setzero_si512();
            for k in 0..4 {
                one = _mm512_dpbusd_epi32(one, bytes[k], _mm512_set1_epi32(x[n].bytes[k]));
                other = _mm512_dpbusd_epi32(other, bytes[k + 4], _mm512_set1_epi32(x[n].bytes[k + 4]));
            }
            let dots = _mm512_cvtepi32_ps(_mm512_add_epi32(one, other));
            let worth = _mm512_mul_ps(scale, _mm512_set1_ps(x[n].scale));
            sums[n] = _mm512_fmadd_ps(dots, worth, sums[n]);
        }
    }
    store(sums)
}

#[target_feature(enable = "avx512f")]
pub(super) fn blend<const R: usize>(
    sums: &mut [[f32; SIDE_BY_SIDE]; R],
    weights: [&[f32]; R],
    values: &[f32],
    stride: usize,
) {
    let mut left = [_mm512_setzero_ps(); R];
    let mut right = left;
    for r in 0..R {
        (left[r], right[r]) = (floats::<0>(&sums[r]), floats::<1>(&sums[r]));
    }
    for (k, values) in values.chunks(stride).take(weights[0].len()).enumerate() {
        let Some(values) = values.first_chunk() else { break };
        let values = (floats::<0>(values), floats::<1>(values));
        for r in 0..R {
            let weight = _mm512_set1_ps(weights[r][k]);
            left[r] = _mm512_fmadd_ps(weight, values.0, left[r]);
            right[r] = _mm512_fmadd_ps(weight, values.1, right[r]);
        }
    }
    let (left, right) = (store(left), store(right));
    for r in 0..R {
        sums[r][..ROWS].copy_from_slice(&left[r]);
        sums[r][ROWS..].copy_from_slice(&right[r]);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn floats<const SIDE: usize>(values: &[f32; SIDE_BY_SIDE]) -> __m512 {
    let values: &[f32; 16] = &values.as_chunks().0[SIDE];
    // SAFETY: the array has the 16 numbers that are read, and the instruction takes any alignment.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has the 64 bytes that are read, and the instruction takes any alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn halves(bits: &[u16; ROWS]) -> __m512 {
    // SAFETY: the array has the 32 bytes that are read, and the instruction takes any alignment.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store<const N: usize>(sums: [__m512; N]) -> Sums<N> {
    let mut stored = [[0.0; ROWS]; N];
    for (to, from) in stored.iter_mut().zip(sums) {
        // SAFETY: the array has room for the 16 numbers that are written, and the instruction takes any alignment.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), from) };
    }
    stored
}
