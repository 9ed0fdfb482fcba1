//! `Q4_K`: 256 nibbles; a 6-bit scale and a 6-bit minimum per 32 nibbles. Nibbles are kept, scales become halves.

use super::{FileBlock, scales};
use crate::tiles::Q4Block;

pub(super) struct Q4K;

impl FileBlock for Q4K {
    const BYTES: usize = 144;
    const NUMBERS: usize = 256;
    type Tile = Q4Block;
    const EMPTY: Q4Block = Q4Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q4Block], row: usize) {
        let Some((units, rest)) = from.split_first_chunk() else { return };
        let Some((packed, bytes)) = rest.split_first_chunk() else { return };
        let scales = scales::unpack(*units, packed);
        let pairs = tiles.as_chunks_mut::<2>().0.iter_mut().zip(scales.as_chunks::<2>().0);
        for (([near, far], [one, other]), bytes) in pairs.zip(bytes.as_chunks().0) {
            near.put(row, one.0, one.1, &scales::nibbles(bytes, false));
            far.put(row, other.0, other.1, &scales::nibbles(bytes, true));
        }
    }
}
