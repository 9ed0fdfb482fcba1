//! The gates of the feed-forward part.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of its kernel"
)]

use super::architectures::GateCurve;
use super::exp::exp;
use super::raw::{Kernel, Work, mul_add};

/// `gate = curve(gate) * up`, number by number.
pub(super) fn open(kernel: Kernel, curve: GateCurve, gate: &mut [f32], up: &[f32]) {
    match curve {
        GateCurve::Silu => kernel.run(SiluGate { gate, up }),
        GateCurve::Gelu => kernel.run(GeluGate { gate, up }),
    }
}

struct SiluGate<'a> {
    gate: &'a mut [f32],
    up: &'a [f32],
}

impl Work for SiluGate<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (gate, up) in self.gate.iter_mut().zip(self.up) {
            *gate = *gate / (1.0 + exp::<FUSED>(-*gate)) * up;
        }
    }
}

struct GeluGate<'a> {
    gate: &'a mut [f32],
    up: &'a [f32],
}

impl Work for GeluGate<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        // The tanh approximation that models are trained with; a tanh is a sigmoid of twice its argument.
        const TWICE_ROOT: f32 = 1.595_769_2;
        for (gate, up) in self.gate.iter_mut().zip(self.up) {
            let x = *gate;
            let bent = TWICE_ROOT * mul_add::<FUSED>(0.044_715 * x * x, x, x);
            *gate = x / (1.0 + exp::<FUSED>(-bent)) * up;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GateCurve, open};
    use crate::Kernel;

    #[test]
    fn gates_follow_their_curves_on_every_kernel() {
        let numbers: Vec<f32> = (-100..=100_i8).map(|step| f32::from(step) / 10.0).collect();
        let ups = vec![2.0; numbers.len()];
        for kernel in Kernel::available() {
            for curve in [GateCurve::Silu, GateCurve::Gelu] {
                let mut gates = numbers.clone();
                open(kernel, curve, &mut gates, &ups);
                for (gate, x) in gates.iter().zip(&numbers).map(|(gate, x)| (f64::from(*gate), f64::from(*x)))
                {
                    let expected = match curve {
                        GateCurve::Silu => 2.0 * x / (1.0 + (-x).exp()),
                        GateCurve::Gelu => {
                            x * (1.0
                                + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
                        }
                    };
                    assert!((gate - expected).abs() < 1e-5, "{curve:?} {x}: {gate} {expected}");
                }
            }
        }
    }
}
