//! The exponential function, without branches, tables or calls, so that the compiler can vectorise it. The only one of
//! this crate.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of its kernel"
)]

use super::raw::{Kernel, Work, mul_add};

/// `e` to the power of `x`, to seven digits. Saturates below -87 and above 88, so it neither underflows nor overflows.
#[inline(always)]
pub(super) fn exp<const FUSED: bool>(x: f32) -> f32 {
    // Adding this leaves the nearest whole number in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_145_75;
    const LN2_LOW: f32 = 1.428_606_8e-6;
    let x = if x > -87.0 { x } else { -87.0 };
    let x = if x < 88.0 { x } else { 88.0 };
    let shifted = mul_add::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let rest = mul_add::<FUSED>(whole, -LN2_LOW, mul_add::<FUSED>(whole, -LN2_HIGH, x));
    // The series of the exponential function; the rest is at most ln(2) / 2.
    let mut sum = 1.0 / 5_040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = mul_add::<FUSED>(sum, rest, factor);
    }
    // The lowest bits of `shifted`, moved into the exponent, multiply by a power of two.
    f32::from_bits(sum.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// The number of parallel sums. It is the width of the widest vectors, on every processor, so that all add up in the
/// same order.
const SUMS: usize = 16;

/// The sum of `e` to the power of each number less `highest`, the largest of them. A NaN adds almost nothing.
#[must_use]
pub fn sum_of_powers(kernel: Kernel, numbers: &[f32], highest: f32) -> f32 {
    let mut sums = [0.0; SUMS];
    kernel.run(Powers { numbers, highest, sums: &mut sums });
    sums.iter().sum()
}

struct Powers<'a> {
    numbers: &'a [f32],
    highest: f32,
    sums: &'a mut [f32; SUMS],
}

impl Work for Powers<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let (whole, rest) = self.numbers.as_chunks::<SUMS>();
        for chunk in whole {
            for (sum, number) in self.sums.iter_mut().zip(chunk) {
                *sum += exp::<FUSED>(*number - self.highest);
            }
        }
        for (sum, number) in self.sums.iter_mut().zip(rest) {
            *sum += exp::<FUSED>(*number - self.highest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, exp, sum_of_powers};

    #[test]
    fn it_agrees_with_the_standard_library_over_its_range() {
        for step in -8_700..=8_800_i16 {
            let x = f32::from(step) / 100.0;
            for ours in [exp::<false>(x), exp::<true>(x)] {
                assert!((ours / x.exp() - 1.0).abs() < 4e-7, "{x}: {ours} {}", x.exp());
            }
        }
    }

    #[test]
    fn it_saturates_beyond_its_range() {
        assert!(exp::<false>(f32::NEG_INFINITY) < 2e-38);
        assert!(exp::<false>(f32::INFINITY).is_finite());
    }

    #[test]
    fn powers_are_summed_alike_by_every_kernel_and_nonsense_counts_for_nothing() {
        let mut numbers: Vec<f32> = (0..1_003_u16).map(|step| f32::from(step % 97) / -5.0).collect();
        let expected: f64 = numbers.iter().map(|number| f64::from(*number).exp()).sum();
        numbers.extend([f32::NAN, f32::NEG_INFINITY]);
        for kernel in Kernel::available() {
            let sum = f64::from(sum_of_powers(kernel, &numbers, 0.0));
            assert!((sum / expected - 1.0).abs() < 1e-5, "{}: {sum} {expected}", kernel.name());
        }
    }
}
