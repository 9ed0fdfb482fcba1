//! `Q3_K`: 256 numbers of three bits, each less four; one 6-bit scale per 16 numbers. Kept exactly, in 6-bit tiles:
//! files of this type are made to be small on disk, and no bundled module gains from one.

use super::FileBlock;
use crate::tiles::{COLUMNS, Q6Block, half, to_half};

pub(super) struct Q3K;

impl FileBlock for Q3K {
    const BYTES: usize = 110;
    const NUMBERS: usize = 256;
    type Tile = Q6Block;
    const EMPTY: Q6Block = Q6Block::EMPTY;

    fn put(from: &[u8], tiles: &mut [Q6Block], row: usize) {
        let Some((third, rest)) = from.split_first_chunk::<32>() else { return };
        let Some((low, rest)) = rest.split_first_chunk::<64>() else { return };
        let Some((packed, rest)) = rest.split_first_chunk::<12>() else { return };
        let Some(unit) = rest.first_chunk() else { return };
        let scales = scales(half(u16::from_le_bytes(*unit)), packed);
        for (at, (tile, scales)) in tiles.iter_mut().zip(scales.as_chunks().0).enumerate() {
            let Some(low) = low.as_chunks::<32>().0.get(at / 4) else { return };
            let mut numbers = [0; COLUMNS];
            for ((number, low), third) in numbers.iter_mut().zip(low).zip(third) {
                // Three bits less four, as six bits less 32.
                *number = 28 + (low >> (at % 4 * 2) & 3) + (third >> at & 1) * 4;
            }
            tile.put(row, *scales, &numbers);
        }
    }
}

/// The scales as halves. The four low bits of each are in the first eight bytes, the two high bits in the last four.
fn scales(unit: f32, packed: &[u8; 12]) -> [u16; 16] {
    let mut scales = [0; 16];
    let (low, high) = packed.split_at(8);
    for (at, scale) in scales.iter_mut().enumerate() {
        let low = low.get(at % 8).map_or(0, |byte| byte >> (at / 8 * 4) & 15);
        let high = high.get(at % 4).map_or(0, |byte| byte >> (at / 4 * 2) & 3);
        *scale = to_half(unit * (f32::from(low | high << 4) - 32.0));
    }
    scales
}
