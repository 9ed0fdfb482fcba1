//! Weights in the layout of the kernels: tiles of 16 rows. One vector register holds one column group of 16 rows, so a
//! product needs no sum across a register. There are tiles of four, five, six and eight bits; `blocks` selects the tile
//! for each file type.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is below a constant length, or was checked on load"
)]

use std::sync::Arc;

use super::WeightsError;
use super::blocks;
use super::gguf::{Extent, Tensor};
use super::platform::MappedFile;
use super::raw::TileStore;

/// The number of rows in a tile.
pub(super) const ROWS: usize = 16;
/// The number of columns in a block.
pub(super) const COLUMNS: usize = 32;

/// 32 columns of 16 rows: `scale * nibble + min`.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Q4Block {
    /// Per row, as IEEE half.
    pub(super) scale: [u16; ROWS],
    /// Per row, as IEEE half.
    pub(super) min: [u16; ROWS],
    /// Byte `4 * row + c` of group `k` has column `4 * k + c` in its low half and column `16 + 4 * k + c` in its high.
    pub(super) nibbles: [[u8; 64]; 4],
}

/// 32 columns of 16 rows: `scale * number + min`, with 5-bit numbers.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Q5Block {
    /// Per row, as IEEE half.
    pub(super) scale: [u16; ROWS],
    /// Per row, as IEEE half.
    pub(super) min: [u16; ROWS],
    /// As in [`Q4Block`].
    pub(super) nibbles: [[u8; 64]; 4],
    /// Bit `k` of byte `4 * row + c` is the fifth bit of column `4 * k + c`.
    pub(super) fifth: [u8; 64],
}

/// 32 columns of 16 rows: `scale * (number - 32)`, with 6-bit numbers.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Q6Block {
    /// The scales of each row as IEEE halves: one for the first 16 columns, one for the others.
    pub(super) scales: [[u16; ROWS]; 2],
    /// As in [`Q4Block`].
    pub(super) nibbles: [[u8; 64]; 4],
    /// Bits `2 * k` and `2 * k + 1` of byte `4 * row + c` are the upper two bits of a column. In the first array it is
    /// column `4 * k + c`, in the second column `16 + 4 * k + c`.
    pub(super) upper: [[u8; 64]; 2],
}

/// 32 columns of 16 rows: `scale * byte`, with signed bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Q8Block {
    /// Per row, as IEEE half.
    pub(super) scale: [u16; ROWS],
    /// Byte `4 * row + c` of group `k` is column `4 * k + c`.
    pub(super) bytes: [[u8; 64]; 8],
}

/// A matrix of packed weights. The last tile is padded with zeros.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) tiles: Tiles,
}

/// `columns / 32` blocks for each 16 rows.
#[derive(Debug)]
pub(super) enum Tiles {
    Q4(TileStore<Q4Block>),
    Q5(TileStore<Q5Block>),
    Q6(TileStore<Q6Block>),
    Q8(TileStore<Q8Block>),
}

impl Matrix {
    /// Packs a tensor whose shape has been checked.
    pub(super) fn pack(tensor: &Tensor, name: &str) -> Result<Self, WeightsError> {
        Ok(Self { rows: tensor.rows, columns: tensor.columns, tiles: blocks::tiles(tensor, name)? })
    }

    /// Returns the matrix whose tiles start at this offset of a file.
    pub(super) fn in_file(extent: &Extent, file: &Arc<MappedFile>, at: usize) -> Result<Self, WeightsError> {
        let Extent { rows, columns, .. } = *extent;
        Ok(Self { rows, columns, tiles: blocks::tiles_in_file(extent, file, at)? })
    }

    /// Returns its tiles as stored in a file.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.tiles {
            Tiles::Q4(tiles) => tiles.bytes(),
            Tiles::Q5(tiles) => tiles.bytes(),
            Tiles::Q6(tiles) => tiles.bytes(),
            Tiles::Q8(tiles) => tiles.bytes(),
        }
    }

    /// The number of blocks in a row.
    pub(super) fn blocks(&self) -> usize {
        self.columns / COLUMNS
    }

    /// The number of tiles.
    pub(super) fn tile_count(&self) -> usize {
        self.rows.div_ceil(ROWS)
    }

    /// Writes the numbers of one row to `out`; zeros if the row does not exist.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        if row >= self.rows {
            out.fill(0.0);
            return;
        }
        let (start, lane) = (row / ROWS * self.blocks(), row % ROWS);
        for (at, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            match &self.tiles {
                Tiles::Q4(blocks) => blocks[start + at].row(lane, out),
                Tiles::Q5(blocks) => blocks[start + at].row(lane, out),
                Tiles::Q6(blocks) => blocks[start + at].row(lane, out),
                Tiles::Q8(blocks) => blocks[start + at].row(lane, out),
            }
        }
    }
}

/// Returns the low four bits of a column.
fn nibble(nibbles: &[[u8; 64]; 4], lane: usize, column: usize) -> u8 {
    nibbles[column % 16 / 4][4 * lane + column % 4] >> (column / 16 * 4) & 15
}

fn put_nibbles(to: &mut [[u8; 64]; 4], row: usize, nibbles: &[u8; 16]) {
    for (group, four) in to.iter_mut().zip(nibbles.as_chunks().0) {
        group.as_chunks_mut::<4>().0[row] = *four;
    }
}

impl Q4Block {
    pub(super) const EMPTY: Self = Self { scale: [0; ROWS], min: [0; ROWS], nibbles: [[0; 64]; 4] };

    /// Sets a row. Byte `c` has column `c` in its low half and column `16 + c` in its high.
    pub(super) fn put(&mut self, row: usize, scale: u16, min: u16, nibbles: &[u8; 16]) {
        self.scale[row] = scale;
        self.min[row] = min;
        put_nibbles(&mut self.nibbles, row, nibbles);
    }

    fn row(&self, lane: usize, out: &mut [f32; COLUMNS]) {
        let (scale, min) = (half(self.scale[lane]), half(self.min[lane]));
        for (column, out) in out.iter_mut().enumerate() {
            *out = scale * f32::from(nibble(&self.nibbles, lane, column)) + min;
        }
    }
}

impl Q5Block {
    pub(super) const EMPTY: Self =
        Self { scale: [0; ROWS], min: [0; ROWS], nibbles: [[0; 64]; 4], fifth: [0; 64] };

    /// Sets a row. The nibbles are ordered as in [`Q4Block::put`]; bit `c` of `fifth` belongs to column `c`.
    pub(super) fn put(&mut self, row: usize, scale: u16, min: u16, nibbles: &[u8; 16], fifth: u32) {
        self.scale[row] = scale;
        self.min[row] = min;
        put_nibbles(&mut self.nibbles, row, nibbles);
        for (c, byte) in self.fifth.as_chunks_mut::<4>().0[row].iter_mut().enumerate() {
            *byte = (0..8).rev().fold(0, |bits, k| bits << 1 | u8::from(fifth >> (4 * k + c) & 1 == 1));
        }
    }

    fn row(&self, lane: usize, out: &mut [f32; COLUMNS]) {
        let (scale, min) = (half(self.scale[lane]), half(self.min[lane]));
        for (column, out) in out.iter_mut().enumerate() {
            let fifth = self.fifth[4 * lane + column % 4] >> (column / 4) & 1;
            *out = scale * f32::from(nibble(&self.nibbles, lane, column) | fifth << 4) + min;
        }
    }
}

impl Q6Block {
    pub(super) const EMPTY: Self =
        Self { scales: [[0; ROWS]; 2], nibbles: [[0; 64]; 4], upper: [[0; 64]; 2] };

    /// Sets a row to 6-bit numbers.
    pub(super) fn put(&mut self, row: usize, scales: [u16; 2], numbers: &[u8; COLUMNS]) {
        let (near, far) = numbers.split_at(16);
        let mut nibbles = [0; 16];
        for ((nibble, near), far) in nibbles.iter_mut().zip(near).zip(far) {
            *nibble = near & 15 | far << 4;
        }
        put_nibbles(&mut self.nibbles, row, &nibbles);
        for ((upper, side), (all, scale)) in
            self.upper.iter_mut().zip([near, far]).zip(self.scales.iter_mut().zip(scales))
        {
            all[row] = scale;
            for (c, byte) in upper.as_chunks_mut::<4>().0[row].iter_mut().enumerate() {
                *byte = (0..4).rev().fold(0, |bits, k| bits << 2 | side[4 * k + c] >> 4 & 3);
            }
        }
    }

    fn row(&self, lane: usize, out: &mut [f32; COLUMNS]) {
        for (column, out) in out.iter_mut().enumerate() {
            let side = column / 16;
            let upper = self.upper[side][4 * lane + column % 4] >> (column % 16 / 4 * 2) & 3;
            let number = f32::from(nibble(&self.nibbles, lane, column) | upper << 4) - 32.0;
            *out = half(self.scales[side][lane]) * number;
        }
    }
}

impl Q8Block {
    pub(super) const EMPTY: Self = Self { scale: [0; ROWS], bytes: [[0; 64]; 8] };

    /// Sets a row.
    pub(super) fn put(&mut self, row: usize, scale: u16, bytes: &[u8; COLUMNS]) {
        self.scale[row] = scale;
        for (group, four) in self.bytes.iter_mut().zip(bytes.as_chunks().0) {
            group.as_chunks_mut::<4>().0[row] = *four;
        }
    }

    /// Rounds 32 numbers to eight bits each, scaled so that the largest uses the full range.
    pub(super) fn put_rounded(&mut self, row: usize, numbers: &[f32; COLUMNS]) {
        let largest = numbers.iter().fold(0.0, |largest: f32, number| largest.max(number.abs()));
        let exact = largest / 127.0;
        let mut scale = to_half(exact);
        if half(scale) < exact {
            // With a smaller scale the largest number would not fit.
            scale += 1;
        }
        let step = half(scale);
        let mut bytes = [0; COLUMNS];
        for (byte, number) in bytes.iter_mut().zip(numbers) {
            let steps = if step > 0.0 { (number / step).round().clamp(-127.0, 127.0) } else { 0.0 };
            #[expect(clippy::cast_possible_truncation, reason = "within a byte")]
            let rounded = (steps as i8).cast_unsigned();
            *byte = rounded;
        }
        self.put(row, scale, &bytes);
    }

    fn row(&self, lane: usize, out: &mut [f32; COLUMNS]) {
        let scale = half(self.scale[lane]);
        for (column, out) in out.iter_mut().enumerate() {
            *out = scale * f32::from(self.bytes[column / 4][4 * lane + column % 4].cast_signed());
        }
    }
}

/// Converts an IEEE half to a float, exactly.
pub(super) fn half(bits: u16) -> f32 {
    const REBIAS: f32 = f32::from_bits(0x7780_0000); // 2^112
    const INFINITE: u32 = 0x0f80_0000;
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let value = if magnitude >= INFINITE {
        f32::from_bits(magnitude | 0x7f80_0000)
    } else {
        f32::from_bits(magnitude) * REBIAS
    };
    f32::from_bits(value.to_bits() | sign)
}

/// Returns the nearest IEEE half; infinity beyond its range.
pub(super) fn to_half(value: f32) -> u16 {
    const REBIAS: f32 = f32::from_bits(0x0780_0000); // 2^-112
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let bits = (value.abs() * REBIAS).to_bits();
    // Adds half of the last kept place; ties round to even.
    let rounded = bits.saturating_add(0xfff + (bits >> 13 & 1)) >> 13;
    sign | u16::try_from(rounded).unwrap_or(u16::MAX).min(0x7c00)
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Encoding;
    use super::{Matrix, Tensor, half, to_half};

    #[test]
    fn halves_are_read_exactly() {
        assert_eq!(half(0x3c00).to_bits(), 1.0_f32.to_bits());
        assert_eq!(half(0xc580).to_bits(), (-5.5_f32).to_bits());
        assert_eq!(half(0x0001).to_bits(), (2.0_f32).powi(-24).to_bits());
        assert_eq!(half(0x7bff).to_bits(), 65504.0_f32.to_bits());
        assert_eq!(half(0xfc00).to_bits(), f32::NEG_INFINITY.to_bits());
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn halves_are_rounded_to_a_part_of_the_largest_beside_them() {
        let numbers: Vec<f32> = (0..128_u16).map(|step| f32::from(step * 37 % 101) / 16.0 - 3.0).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| to_half(*number).to_le_bytes()).collect();
        let tensor = Tensor { encoding: Encoding::F16, columns: 64, rows: 2, bytes: &bytes };
        let matrix = Matrix::pack(&tensor, "halves").unwrap();
        for (row, numbers) in numbers.chunks(64).enumerate() {
            let mut out = [0.0; 64];
            matrix.row(row, &mut out);
            for (out, number) in out.iter().zip(numbers) {
                assert!((out - number).abs() < 3.4 / 127.0 / 2.0, "{out} {number}");
            }
        }
    }

    #[test]
    fn every_finite_half_comes_back_and_what_lies_between_goes_to_the_nearer() {
        for bits in (0..0x7c00).chain(0x8000..0xfc00) {
            assert_eq!(to_half(half(bits)), bits);
        }
        for bits in 0..0x7bff_u16 {
            let (one, next) = (half(bits), half(bits + 1));
            assert_eq!(to_half(one + (next - one) * 0.375), bits);
            assert_eq!(to_half(one + (next - one) * 0.625), bits + 1);
            assert_eq!(to_half(one + (next - one) * 0.5), bits + bits % 2);
        }
        assert_eq!(to_half(-1e9), 0xfc00);
    }
}
