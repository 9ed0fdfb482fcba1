//! `Q5_1`: 32 numbers of five bits, their scale and their minimum. Kept exactly.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q5Block};

pub(super) struct Q5WithMin;

impl FileBlock for Q5WithMin {
    const BYTES: usize = 24;
    const NUMBERS: usize = COLUMNS;
    type Tile = Q5Block;
    const EMPTY: Q5Block = Q5Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q5Block], row: usize) {
        let Some(([a, b, c, d], rest)) = from.split_first_chunk() else { return };
        let Some((fifth, nibbles)) = rest.split_first_chunk() else { return };
        let (Some(tile), Some(nibbles)) = (tiles.first_mut(), nibbles.first_chunk()) else { return };
        let (scale, min) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
        tile.put(row, scale, min, nibbles, u32::from_le_bytes(*fifth));
    }
}
