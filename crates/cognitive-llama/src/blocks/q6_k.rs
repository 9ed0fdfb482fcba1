//! `Q6_K`: 256 numbers of six bits, each less 32; for each 16 a scale in eight bits. Kept as it is.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q6Block};

pub(super) struct Q6K;

impl FileBlock for Q6K {
    const BYTES: usize = 210;
    const NUMBERS: usize = 256;
    const TILES: usize = 1;
    type Tile = Q6Block;
    const EMPTY: Q6Block = Q6Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q6Block], row: usize) {
        let Some((low, rest)) = from.split_first_chunk::<128>() else { return };
        let Some((high, rest)) = rest.split_first_chunk::<64>() else { return };
        let Some((scales, rest)) = rest.split_first_chunk::<16>() else { return };
        let Some(unit) = rest.first_chunk() else { return };
        let Some(tile) = tiles.first_mut() else { return };
        tile.unit.get_mut(row).into_iter().for_each(|to| *to = u16::from_le_bytes(*unit));
        for (part, scales) in scales.as_chunks::<2>().0.iter().enumerate() {
            // Each half of the block has four parts: two share low bits, all four share high bits.
            let (side, quarter) = (part / 4, part % 4);
            let low = low.as_chunks::<32>().0.get(2 * side + quarter % 2);
            let (Some(low), Some(high)) = (low, high.as_chunks::<32>().0.get(side)) else { return };
            let mut numbers = [0; COLUMNS];
            for ((number, low), high) in numbers.iter_mut().zip(low).zip(high) {
                *number = low >> (quarter / 2 * 4) & 15 | (high >> (2 * quarter) & 3) << 4;
            }
            tile.put(part, row, *scales, &numbers);
        }
    }
}
