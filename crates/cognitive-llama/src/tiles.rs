//! Weights as the kernels want them: tiles of 16 rows, so that one vector register holds one column group of 16 rows and
//! a product needs no sum across a register. Takes `Q4_0`, `Q4_1` and `Q8_0` apart as they are; `F16` is rounded to eight bits
//! as it is read, which costs next to no quality and half the memory. Other encodings are refused.

#![expect(
    clippy::indexing_slicing,
    reason = "blocks have a fixed length, and tensors were cut to their rows before"
)]

use super::WeightsError;
use super::gguf::{Encoding, Tensor, unsupported};

/// How many rows a tile has.
pub(super) const ROWS: usize = 16;
/// How many columns a block has.
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

/// 32 columns of 16 rows: `scale * byte`, the bytes being signed.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Q8Block {
    /// Per row, as IEEE half.
    pub(super) scale: [u16; ROWS],
    /// Byte `4 * row + c` of group `k` is column `4 * k + c`.
    pub(super) bytes: [[u8; 64]; 8],
}

/// A matrix of packed weights. The last tile is filled up with zeros.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) tiles: Tiles,
}

/// `columns / 32` blocks for each 16 rows.
#[derive(Debug)]
pub(super) enum Tiles {
    Q4(Vec<Q4Block>),
    Q8(Vec<Q8Block>),
}

impl Matrix {
    /// Packs a tensor whose shape has been checked.
    pub(super) fn pack(tensor: &Tensor, name: &str) -> Result<Self, WeightsError> {
        let tiles = match tensor.encoding {
            Encoding::Q4_0 => Tiles::Q4(pack(tensor, EMPTY_Q4, |block: &mut Q4Block, row, from| {
                // `scale * (nibble - 8)`; eight times a half is a half again.
                let scale = u16::from_le_bytes([from[0], from[1]]);
                put_q4(block, row, scale, to_half(-8.0 * half(scale)), &from[2..18]);
            })),
            Encoding::Q4_1 => Tiles::Q4(pack(tensor, EMPTY_Q4, |block: &mut Q4Block, row, from| {
                let scale = u16::from_le_bytes([from[0], from[1]]);
                put_q4(block, row, scale, u16::from_le_bytes([from[2], from[3]]), &from[4..20]);
            })),
            Encoding::Q8_0 => Tiles::Q8(pack(tensor, EMPTY_Q8, |block: &mut Q8Block, row, from| {
                block.scale[row] = u16::from_le_bytes([from[0], from[1]]);
                for (group, four) in block.bytes.iter_mut().zip(from[2..34].chunks_exact(4)) {
                    group[4 * row..4 * row + 4].copy_from_slice(four);
                }
            })),
            Encoding::F16 => Tiles::Q8(pack(tensor, EMPTY_Q8, |block: &mut Q8Block, row, from| {
                let mut numbers = [0.0; COLUMNS];
                for (number, bytes) in numbers.iter_mut().zip(from.as_chunks().0) {
                    *number = half(u16::from_le_bytes(*bytes));
                }
                put_rounded(block, row, &numbers);
            })),
            Encoding::F32 => return Err(unsupported(&format!("tensor `{name}` is a matrix of type F32"))),
        };
        Ok(Self { rows: tensor.rows, columns: tensor.columns, tiles })
    }

    /// How many blocks a row crosses.
    pub(super) fn blocks(&self) -> usize {
        self.columns / COLUMNS
    }

    /// How many tiles there are.
    pub(super) fn tile_count(&self) -> usize {
        self.rows.div_ceil(ROWS)
    }

    /// Writes out the numbers of one row; zeros for a row that is not there.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        if row >= self.rows {
            out.fill(0.0);
            return;
        }
        let (start, lane) = (row / ROWS * self.blocks(), row % ROWS);
        for (at, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
            match &self.tiles {
                Tiles::Q4(blocks) => {
                    let block = &blocks[start + at];
                    let (scale, min) = (half(block.scale[lane]), half(block.min[lane]));
                    for (column, out) in out.iter_mut().enumerate() {
                        let byte = block.nibbles[column % 16 / 4][4 * lane + column % 4];
                        *out = scale * f32::from(if column < 16 { byte & 15 } else { byte >> 4 }) + min;
                    }
                }
                Tiles::Q8(blocks) => {
                    let block = &blocks[start + at];
                    let scale = half(block.scale[lane]);
                    for (column, out) in out.iter_mut().enumerate() {
                        let byte = block.bytes[column / 4][4 * lane + column % 4];
                        *out = scale * f32::from(byte.cast_signed());
                    }
                }
            }
        }
    }
}

const EMPTY_Q4: Q4Block = Q4Block { scale: [0; ROWS], min: [0; ROWS], nibbles: [[0; 64]; 4] };
const EMPTY_Q8: Q8Block = Q8Block { scale: [0; ROWS], bytes: [[0; 64]; 8] };

fn put_q4(block: &mut Q4Block, row: usize, scale: u16, min: u16, nibbles: &[u8]) {
    block.scale[row] = scale;
    block.min[row] = min;
    for (group, four) in block.nibbles.iter_mut().zip(nibbles.chunks_exact(4)) {
        group[4 * row..4 * row + 4].copy_from_slice(four);
    }
}

/// Rounds 32 numbers to eight bits each, of which the largest uses all.
fn put_rounded(block: &mut Q8Block, row: usize, numbers: &[f32; COLUMNS]) {
    let largest = numbers.iter().fold(0.0, |largest: f32, number| largest.max(number.abs()));
    let exact = largest / 127.0;
    let mut scale = to_half(exact);
    if half(scale) < exact {
        // Halves are cut off, and with a smaller scale the largest number would not fit.
        scale += 1;
    }
    block.scale[row] = scale;
    let step = half(scale);
    for (column, number) in numbers.iter().enumerate() {
        let steps = if step > 0.0 { (number / step).round().clamp(-127.0, 127.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "within a byte")]
        let byte = (steps as i8).cast_unsigned();
        block.bytes[column / 4][4 * row + column % 4] = byte;
    }
}

/// Goes through the blocks of a tensor in the order of the tiles.
fn pack<B: Copy>(tensor: &Tensor, empty: B, put: impl Fn(&mut B, usize, &[u8])) -> Vec<B> {
    let (numbers, size) = tensor.encoding.block();
    let size = size * COLUMNS / numbers;
    let blocks = tensor.columns / COLUMNS;
    let mut packed = Vec::with_capacity(tensor.rows.div_ceil(ROWS) * blocks);
    for rows in tensor.bytes.chunks(ROWS * blocks * size) {
        for at in 0..blocks {
            let mut block = empty;
            for (row, bytes) in rows.chunks_exact(blocks * size).enumerate() {
                put(&mut block, row, &bytes[at * size..(at + 1) * size]);
            }
            packed.push(block);
        }
    }
    packed
}

/// An IEEE half as a number. Exact.
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

/// A number as an IEEE half; exact for what came from [`half`] times a power of two, infinite beyond its range.
fn to_half(value: f32) -> u16 {
    const REBIAS: f32 = f32::from_bits(0x0780_0000); // 2^-112
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = (value.abs() * REBIAS).to_bits() >> 13;
    sign | u16::try_from(magnitude).unwrap_or(u16::MAX).min(0x7c00)
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Matrix, Tensor, half, to_half};

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
    fn every_finite_half_comes_back() {
        for bits in (0..0x7c00).chain(0x8000..0xfc00) {
            assert_eq!(to_half(half(bits)), bits);
        }
    }
}
