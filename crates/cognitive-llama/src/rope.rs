//! Rotary position embedding: rotates pairs of columns of queries and keys by an angle that grows with the position.
//! Pairs further to the right rotate more slowly.

use super::architectures::RopePairs;
use super::shape::ModelShape;

/// Cosine and sine per token and pair of columns.
#[derive(Debug, Default)]
pub(super) struct TurnTable(Vec<(f32, f32)>);

/// The parameters of the angles of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Angles<'a> {
    pub(super) base: f32,
    /// The factor for positions.
    pub(super) scale: f32,
    /// The divisor for the angle of each pair, if the model has these.
    pub(super) factors: Option<&'a [f32]>,
}

impl TurnTable {
    /// Computes the angles of tokens at these positions.
    #[expect(clippy::cast_precision_loss, reason = "positions and columns are far below 2^24")]
    pub(super) fn fill(&mut self, positions: impl Iterator<Item = usize>, head: usize, angles: Angles) {
        let step = angles.base.powf(-2.0 / head as f32);
        self.0.clear();
        for position in positions {
            let mut angle = position as f32 * angles.scale;
            for pair in 0..head / 2 {
                let factor = angles.factors.and_then(|factors| factors.get(pair)).copied().unwrap_or(1.0);
                let (sin, cos) = (angle / factor).sin_cos();
                self.0.push((cos, sin));
                angle *= step;
            }
        }
    }

    /// Rotates the heads of rows of `row` numbers, and scales them.
    pub(super) fn turn(&self, x: &mut [f32], row: usize, shape: &ModelShape, scale: f32) {
        let head = shape.heads.width;
        for (row, turns) in x.chunks_exact_mut(row).zip(self.0.chunks_exact(head / 2)) {
            for head in row.chunks_exact_mut(head) {
                match shape.architecture.pairs {
                    RopePairs::Neighbours => {
                        for ([one, other], turn) in head.as_chunks_mut::<2>().0.iter_mut().zip(turns) {
                            turn_pair(one, other, *turn, scale);
                        }
                    }
                    RopePairs::Halves => {
                        let (near, far) = head.split_at_mut(head.len() / 2);
                        for ((one, other), turn) in near.iter_mut().zip(far).zip(turns) {
                            turn_pair(one, other, *turn, scale);
                        }
                    }
                }
            }
        }
    }
}

fn turn_pair(one: &mut f32, other: &mut f32, (cos, sin): (f32, f32), scale: f32) {
    (*one, *other) = ((*one * cos - *other * sin) * scale, (*one * sin + *other * cos) * scale);
}
