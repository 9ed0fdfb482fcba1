//! `Q8_0`: 32 signed bytes and their scale. Kept exactly.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q8Block};

pub(super) struct Q8;

impl FileBlock for Q8 {
    const BYTES: usize = 34;
    const NUMBERS: usize = COLUMNS;
    type Tile = Q8Block;
    const EMPTY: Q8Block = Q8Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q8Block], row: usize) {
        let Some((scale, bytes)) = from.split_first_chunk() else { return };
        let (Some(tile), Some(bytes)) = (tiles.first_mut(), bytes.first_chunk()) else { return };
        tile.put(row, u16::from_le_bytes(*scale), bytes);
    }
}
