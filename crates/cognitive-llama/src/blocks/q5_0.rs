//! `Q5_0`: 32 numbers of five bits, each less sixteen, and their scale. The tiles keep all
//! values; the minimum is -16 times the scale.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q5Block, half, to_half};

pub(super) struct Q5;

impl FileBlock for Q5 {
    const BYTES: usize = 22;
    const NUMBERS: usize = COLUMNS;
    type Tile = Q5Block;
    const EMPTY: Q5Block = Q5Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q5Block], row: usize) {
        let Some((scale, rest)) = from.split_first_chunk() else { return };
        let Some((fifth, nibbles)) = rest.split_first_chunk() else { return };
        let (Some(tile), Some(nibbles)) = (tiles.first_mut(), nibbles.first_chunk()) else { return };
        let scale = u16::from_le_bytes(*scale);
        // Sixteen times a half is exactly representable as a half.
        tile.put(row, scale, to_half(-16.0 * half(scale)), nibbles, u32::from_le_bytes(*fifth));
    }
}
