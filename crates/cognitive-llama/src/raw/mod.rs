//! Vector instructions that a processor may not have, and blocks in mapped files. This is all `unsafe` code of the
//! engine, except for mapping files (`platform`). Other code calls the safe functions of this module; a [`Kernel`]
//! proves that the processor supports its instructions. Tests compare every kernel with the portable version in
//! [`portable`].

#![expect(unsafe_code, reason = "vector instructions and bytes of files have no safe interface")]
#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of its kernel"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;
mod tile_store;
#[cfg(target_arch = "x86_64")]
mod vnni;

use super::activations::Group;
use super::tiles::{Q4Block, Q5Block, Q6Block, Q8Block, ROWS};

pub(super) use tile_store::{PlainBlock, TileStore};

/// Sixteen rows of a product, for each of a few tokens.
pub(super) type Sums<const N: usize> = [[f32; ROWS]; N];

/// Arithmetic on plain arrays that the compiler turns into the vector instructions of the current kernel.
pub(super) trait Work {
    /// Does the work. It and all functions that it calls must be `#[inline(always)]`. Closures are inlined only where
    /// they are called directly: passed to `map` or `from_fn`, they would be compiled without the instructions. `FUSED`
    /// is true if a product and a sum may be rounded once.
    fn run<const FUSED: bool>(self);
}

/// `a * b + c`, rounded once if the processor can.
#[inline(always)]
pub(super) fn mul_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The vector instructions of a computation. A value exists only for instructions that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(InstructionSet);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstructionSet {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// Returns all kernels that this processor can run, the fastest first; the portable one is always the last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                kernels.push(Self(InstructionSet::Vnni));
            }
            if avx2 {
                kernels.push(Self(InstructionSet::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            kernels.push(Self(InstructionSet::Neon));
        }
        kernels.push(Self(InstructionSet::Portable));
        kernels
    }

    /// Returns the fastest kernel that this processor can run.
    #[must_use]
    pub fn fastest() -> Self {
        Self::available().first().copied().unwrap_or(Self(InstructionSet::Portable))
    }

    /// The display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            InstructionSet::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Vnni => "AVX-512 VNNI",
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => "NEON",
        }
    }

    /// Runs work under these instructions.
    #[inline]
    pub(super) fn run(self, work: impl Work) {
        match self.0 {
            InstructionSet::Portable => work.run::<false>(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX2, FMA and F16C.
            InstructionSet::Avx2 => unsafe { avx2::run(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX-512 F, BW and VNNI, and the features of AVX2.
            InstructionSet::Vnni => unsafe { vnni::run(work) },
            // Every aarch64 processor has fused instructions; the compiler needs no target feature.
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => work.run::<true>(),
        }
    }

    /// Multiplies a tile of 4-bit weights with the first `N` tokens of a group.
    #[inline]
    pub(super) fn q4<const N: usize>(self, tile: &[Q4Block], x: &[Group]) -> Sums<N> {
        match self.0 {
            InstructionSet::Portable => portable::q4(tile, x),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX2, FMA and F16C.
            InstructionSet::Avx2 => unsafe { avx2::q4(tile, x) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX-512 F, BW and VNNI, and the features of AVX2.
            InstructionSet::Vnni => unsafe { vnni::q4(tile, x) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: this value exists, so `available` found NEON.
            InstructionSet::Neon => unsafe { neon::q4(tile, x) },
        }
    }

    /// Multiplies a tile of 5-bit weights with the first `N` tokens of a group.
    #[inline]
    pub(super) fn q5<const N: usize>(self, tile: &[Q5Block], x: &[Group]) -> Sums<N> {
        match self.0 {
            InstructionSet::Portable => portable::q5(tile, x),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX2, FMA and F16C.
            InstructionSet::Avx2 => unsafe { avx2::q5(tile, x) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX-512 F, BW and VNNI, and the features of AVX2.
            InstructionSet::Vnni => unsafe { vnni::q5(tile, x) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: this value exists, so `available` found NEON.
            InstructionSet::Neon => unsafe { neon::q5(tile, x) },
        }
    }

    /// Multiplies a tile of 6-bit weights with the first `N` tokens of a group.
    #[inline]
    pub(super) fn q6<const N: usize>(self, tile: &[Q6Block], x: &[Group]) -> Sums<N> {
        match self.0 {
            InstructionSet::Portable => portable::q6(tile, x),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX2, FMA and F16C.
            InstructionSet::Avx2 => unsafe { avx2::q6(tile, x) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX-512 F, BW and VNNI, and the features of AVX2.
            InstructionSet::Vnni => unsafe { vnni::q6(tile, x) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: this value exists, so `available` found NEON.
            InstructionSet::Neon => unsafe { neon::q6(tile, x) },
        }
    }

    /// Multiplies a tile of 8-bit weights with the first `N` tokens of a group.
    #[inline]
    pub(super) fn q8<const N: usize>(self, tile: &[Q8Block], x: &[Group]) -> Sums<N> {
        match self.0 {
            InstructionSet::Portable => portable::q8(tile, x),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX2, FMA and F16C.
            InstructionSet::Avx2 => unsafe { avx2::q8(tile, x) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX-512 F, BW and VNNI, and the features of AVX2.
            InstructionSet::Vnni => unsafe { vnni::q8(tile, x) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: this value exists, so `available` found NEON.
            InstructionSet::Neon => unsafe { neon::q8(tile, x) },
        }
    }
}

/// The number of columns of a blend that are computed in parallel.
pub(super) const SIDE_BY_SIDE: usize = 32;

impl Kernel {
    /// Adds rows of `values`, which are `stride` apart, to each of the sums: row `k` times `weights[r][k]` to sum `r`.
    /// All `R` lists of weights have one length; missing values are skipped.
    #[inline]
    pub(super) fn blend<const R: usize>(
        self,
        sums: &mut [[f32; SIDE_BY_SIDE]; R],
        weights: [&[f32]; R],
        values: &[f32],
        stride: usize,
    ) {
        match self.0 {
            InstructionSet::Portable => portable::blend::<R, false>(sums, weights, values, stride),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX2, FMA and F16C.
            InstructionSet::Avx2 => unsafe { avx2::blend(sums, weights, values, stride) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value exists, so `available` found AVX-512 F, BW and VNNI, and the features of AVX2.
            InstructionSet::Vnni => unsafe { vnni::blend(sums, weights, values, stride) },
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => portable::blend::<R, true>(sums, weights, values, stride),
        }
    }
}
