//! `BF16`: plain numbers, the upper halves of floats. Rounded to eight bits like `F16`.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q8Block};

pub(super) struct Bf16;

impl FileBlock for Bf16 {
    const BYTES: usize = 2 * COLUMNS;
    const NUMBERS: usize = COLUMNS;
    type Tile = Q8Block;
    const EMPTY: Q8Block = Q8Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q8Block], row: usize) {
        let mut numbers = [0.0; COLUMNS];
        for (number, bytes) in numbers.iter_mut().zip(from.as_chunks().0) {
            *number = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
        }
        for tile in tiles {
            tile.put_rounded(row, &numbers);
        }
    }
}
