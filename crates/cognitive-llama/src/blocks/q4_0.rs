//! `Q4_0`: 32 nibbles, each less eight, and their scale. Kept exactly; the minimum is -8 times the scale.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q4Block, half, to_half};

pub(super) struct Q4;

impl FileBlock for Q4 {
    const BYTES: usize = 18;
    const NUMBERS: usize = COLUMNS;
    type Tile = Q4Block;
    const EMPTY: Q4Block = Q4Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q4Block], row: usize) {
        let Some((scale, nibbles)) = from.split_first_chunk() else { return };
        let (Some(tile), Some(nibbles)) = (tiles.first_mut(), nibbles.first_chunk()) else { return };
        let scale = u16::from_le_bytes(*scale);
        // Eight times a half is exactly representable as a half.
        tile.put(row, scale, to_half(-8.0 * half(scale)), nibbles);
    }
}
