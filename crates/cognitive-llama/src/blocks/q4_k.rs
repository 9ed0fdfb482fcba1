//! `Q4_K`: 256 nibbles; for each 32 a scale and a minimum in six bits, which count in units. Kept as it is, in a tile of its
//! own.

use super::{FileBlock, scales};
use crate::tiles::Q4KBlock;

pub(super) struct Q4K;

impl FileBlock for Q4K {
    const BYTES: usize = 144;
    const NUMBERS: usize = 256;
    const TILES: usize = 1;
    type Tile = Q4KBlock;
    const EMPTY: Q4KBlock = Q4KBlock::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q4KBlock], row: usize) {
        let Some(([a, b, c, d], rest)) = from.split_first_chunk() else { return };
        let Some((packed, bytes)) = rest.split_first_chunk() else { return };
        let Some(tile) = tiles.first_mut() else { return };
        // Minima are taken off, which the sign of their unit says once for all.
        let (unit, min_unit) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]) ^ 0x8000);
        if let (Some(to), Some(min_to)) = (tile.unit.get_mut(row), tile.min_unit.get_mut(row)) {
            (*to, *min_to) = (unit, min_unit);
        }
        let scales = scales::unpacked(packed);
        let pairs = scales.as_chunks::<2>().0.iter().zip(bytes.as_chunks().0);
        for (pair, ([near, far], bytes)) in pairs.enumerate() {
            tile.put(2 * pair, row, near.0, near.1, &scales::nibbles(bytes, false));
            tile.put(2 * pair + 1, row, far.0, far.1, &scales::nibbles(bytes, true));
        }
    }
}
