//! `F16`: plain half-precision numbers. Rounded to eight bits, which halves the memory at almost no loss of quality.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q8Block, half};

pub(super) struct F16;

impl FileBlock for F16 {
    const BYTES: usize = 2 * COLUMNS;
    const NUMBERS: usize = COLUMNS;
    type Tile = Q8Block;
    const EMPTY: Q8Block = Q8Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q8Block], row: usize) {
        let mut numbers = [0.0; COLUMNS];
        for (number, bytes) in numbers.iter_mut().zip(from.as_chunks().0) {
            *number = half(u16::from_le_bytes(*bytes));
        }
        for tile in tiles {
            tile.put_rounded(row, &numbers);
        }
    }
}
