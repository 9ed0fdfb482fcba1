//! `Q5_K`: `Q4_K` with a fifth bit for each number. The numbers are kept, scales become halves.

use super::{FileBlock, scales};
use crate::tiles::Q5Block;

pub(super) struct Q5K;

impl FileBlock for Q5K {
    const BYTES: usize = 176;
    const NUMBERS: usize = 256;
    type Tile = Q5Block;
    const EMPTY: Q5Block = Q5Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q5Block], row: usize) {
        let Some((units, rest)) = from.split_first_chunk() else { return };
        let Some((packed, rest)) = rest.split_first_chunk() else { return };
        let Some((fifth, bytes)) = rest.split_first_chunk::<32>() else { return };
        let scales = scales::unpack(*units, packed);
        let pairs = tiles.as_chunks_mut::<2>().0.iter_mut().zip(scales.as_chunks::<2>().0);
        for (at, (([near, far], [one, other]), bytes)) in pairs.zip(bytes.as_chunks().0).enumerate() {
            near.put(row, one.0, one.1, &scales::nibbles(bytes, false), bits(fifth, 2 * at));
            far.put(row, other.0, other.1, &scales::nibbles(bytes, true), bits(fifth, 2 * at + 1));
        }
    }
}

/// One bit of each byte, the first byte in the lowest bit.
fn bits(bytes: &[u8; 32], bit: usize) -> u32 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 1 | u32::from(byte >> bit & 1))
}
