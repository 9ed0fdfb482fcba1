//! `Q6_K`: 256 numbers of six bits, each less 32; one 8-bit scale per 16 numbers. The numbers are kept, scales become
//! halves.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q6Block, half, to_half};

pub(super) struct Q6K;

impl FileBlock for Q6K {
    const BYTES: usize = 210;
    const NUMBERS: usize = 256;
    type Tile = Q6Block;
    const EMPTY: Q6Block = Q6Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q6Block], row: usize) {
        let Some((low, rest)) = from.split_first_chunk::<128>() else { return };
        let Some((high, rest)) = rest.split_first_chunk::<64>() else { return };
        let Some((scales, rest)) = rest.split_first_chunk::<16>() else { return };
        let Some(unit) = rest.first_chunk() else { return };
        let unit = half(u16::from_le_bytes(*unit));
        let scales = scales.as_chunks::<2>().0.iter();
        for (at, (tile, scales)) in tiles.iter_mut().zip(scales).enumerate() {
            // Each half of the block has four tiles: two share low bits, all four share high bits.
            let (side, quarter) = (at / 4, at % 4);
            let low = low.as_chunks::<32>().0.get(2 * side + quarter % 2);
            let (Some(low), Some(high)) = (low, high.as_chunks::<32>().0.get(side)) else { return };
            let mut numbers = [0; COLUMNS];
            for ((number, low), high) in numbers.iter_mut().zip(low).zip(high) {
                *number = low >> (quarter / 2 * 4) & 15 | (high >> (2 * quarter) & 3) << 4;
            }
            tile.put(row, scales.map(|scale| to_half(unit * f32::from(scale.cast_signed()))), &numbers);
        }
    }
}
