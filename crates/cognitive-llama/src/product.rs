//! Multiplies weights with activations. Each number of the result is computed in one fixed order, regardless of the
//! rest of the batch. So neither the block size of a prompt nor the number of threads can change an answer.

#![expect(
    clippy::indexing_slicing,
    reason = "the lengths follow from the shape of the model, which was checked on load"
)]

use std::ops::Range;

use super::activations::{Activations, Group};
use super::raw::{Kernel, Sums};
use super::tiles::{Matrix, ROWS, Tiles};

/// Multiplies all rows of a matrix with each token; `out` gets one row of `matrix.rows` numbers per token.
pub(super) fn multiply(kernel: Kernel, matrix: &Matrix, x: &Activations, out: &mut [f32]) {
    let rows = matrix.rows;
    multiply_tiles(kernel, matrix, 0..matrix.tile_count(), x, &mut out[..x.tokens() * rows], rows);
}

/// Multiplies the rows of some tiles only. `out` starts with the first of them, and the numbers of two tokens are
/// `stride` apart.
pub(super) fn multiply_tiles(
    kernel: Kernel,
    matrix: &Matrix,
    tiles: Range<usize>,
    x: &Activations,
    out: &mut [f32],
    stride: usize,
) {
    multiply_tiles_to(kernel, matrix, tiles, x, &mut |token, row, numbers| {
        let to = token * stride + row;
        out[to..to + numbers.len()].copy_from_slice(numbers);
    });
}

/// Like [`multiply_tiles`], with a callback. `put` gets a token, a row counted from the first tile on, and the numbers
/// of that row and the rows after it.
pub(super) fn multiply_tiles_to(
    kernel: Kernel,
    matrix: &Matrix,
    tiles: Range<usize>,
    x: &Activations,
    put: &mut impl FnMut(usize, usize, &[f32]),
) {
    let rows = matrix.rows - tiles.start * ROWS;
    let part = ProductPart { kernel, matrix, x };
    for (at, tile) in tiles.enumerate() {
        let from = at * ROWS;
        let rows = ROWS.min(rows - from);
        part.tile(tile, &mut |token, numbers| put(token, from, &numbers[..rows]));
    }
}

struct ProductPart<'a> {
    kernel: Kernel,
    matrix: &'a Matrix,
    x: &'a Activations,
}

impl ProductPart<'_> {
    /// Multiplies one tile with all tokens, so that its weights stay in the first-level cache.
    fn tile(&self, tile: usize, put: &mut impl FnMut(usize, &[f32; ROWS])) {
        let mut token = 0;
        for (count, group) in self.x.groups() {
            let put = &mut |at: usize, numbers: &[f32; ROWS]| put(token + at, numbers);
            match count {
                1 => self.group::<1>(tile, group, put),
                2 => self.group::<2>(tile, group, put),
                3 => self.group::<3>(tile, group, put),
                4 => self.group::<4>(tile, group, put),
                5 => self.group::<5>(tile, group, put),
                6 => self.group::<6>(tile, group, put),
                7 => self.group::<7>(tile, group, put),
                _ => self.group::<8>(tile, group, put),
            }
            token += count;
        }
    }

    #[inline]
    fn group<const N: usize>(&self, tile: usize, x: &[Group], put: &mut impl FnMut(usize, &[f32; ROWS])) {
        let blocks = tile * x.len()..(tile + 1) * x.len();
        let sums: Sums<N> = match &self.matrix.tiles {
            Tiles::Q4(tiles) => self.kernel.q4(&tiles[blocks], x),
            Tiles::Q5(tiles) => self.kernel.q5(&tiles[blocks], x),
            Tiles::Q6(tiles) => self.kernel.q6(&tiles[blocks], x),
            Tiles::Q8(tiles) => self.kernel.q8(&tiles[blocks], x),
        };
        for (token, sums) in sums.iter().enumerate() {
            put(token, sums);
        }
    }
}
