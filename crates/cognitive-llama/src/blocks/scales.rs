//! The scales of `Q4_K` and `Q5_K`: a 6-bit scale and a 6-bit minimum per 32 of the 256 numbers. Their units are stored
//! in the block as halves.

use crate::tiles::{half, to_half};

/// Returns the scale and the minimum of each 32 numbers, as halves. The product with a 6-bit number needs up to six
/// bits more than a half has. It is rounded by 1/4,096 at most, while the weights themselves have 16 or 32 steps.
pub(super) fn unpack(units: [u8; 4], packed: &[u8; 12]) -> [(u16, u16); 8] {
    let [a, b, c, d] = units;
    let (unit, min_unit) = (half(u16::from_le_bytes([a, b])), half(u16::from_le_bytes([c, d])));
    let ([first, middle, last], _) = packed.as_chunks::<4>() else { return [(0, 0); 8] };
    let mut scales = [(0, 0); 8];
    let (near, far) = scales.split_at_mut(4);
    let bytes = first.iter().zip(middle).zip(last);
    for ((near, far), ((first, middle), last)) in near.iter_mut().zip(far).zip(bytes) {
        let halves =
            |scale: u8, min: u8| (to_half(unit * f32::from(scale)), to_half(-(min_unit * f32::from(min))));
        *near = halves(first & 63, middle & 63);
        *far = halves(last & 15 | first >> 6 << 4, last >> 4 | middle >> 6 << 4);
    }
    scales
}

/// Returns nibbles in the order of tiles: the low halves are the first 16 columns, the high halves the others. In a
/// file, the low halves of these 32 bytes are 32 columns and the high halves the next 32.
pub(super) fn nibbles(bytes: &[u8; 32], high: bool) -> [u8; 16] {
    let shift = if high { 4 } else { 0 };
    let (near, far) = bytes.split_at(16);
    let mut nibbles = [0; 16];
    for ((nibble, near), far) in nibbles.iter_mut().zip(near).zip(far) {
        *nibble = near >> shift & 15 | (far >> shift & 15) << 4;
    }
    nibbles
}
