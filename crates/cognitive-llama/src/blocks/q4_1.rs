//! `Q4_1`: 32 nibbles, their scale and their minimum. Kept exactly.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q4Block};

pub(super) struct Q4WithMin;

impl FileBlock for Q4WithMin {
    const BYTES: usize = 20;
    const NUMBERS: usize = COLUMNS;
    type Tile = Q4Block;
    const EMPTY: Q4Block = Q4Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q4Block], row: usize) {
        let Some(([a, b, c, d], nibbles)) = from.split_first_chunk() else { return };
        let (Some(tile), Some(nibbles)) = (tiles.first_mut(), nibbles.first_chunk()) else { return };
        tile.put(row, u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]), nibbles);
    }
}
