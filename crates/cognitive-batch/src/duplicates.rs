//! Which inputs were answered already, and by which record of the journal: eight bytes for each slot, so that a million inputs
//! take some sixteen megabytes. Two inputs are the same only if the journal says so; a slot alone proves nothing.

use crate::journal::ShortHash;

/// A table with open addressing: the upper half of a slot is a part of the hash, the lower half the place of the answer and one.
#[derive(Debug)]
pub(crate) struct Duplicates {
    slots: Vec<u64>,
    used: usize,
}

impl Duplicates {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { slots: vec![0; 1024], used: 0 }
    }

    /// Notes that an input was answered at this place. Places beyond what a slot holds are not noted: such an input is asked
    /// again, which is dear but right.
    pub(crate) fn insert(&mut self, hash: &ShortHash, place: u64) {
        let Some(lower) = place.checked_add(1).and_then(|place| u32::try_from(place).ok()) else { return };
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let slot = (upper(hash) << 32) | u64::from(lower);
        put(&mut self.slots, start(hash), slot);
        self.used += 1;
    }

    /// The places where an answer to this input may be.
    pub(crate) fn candidates(&self, hash: &ShortHash) -> impl Iterator<Item = u64> + use<'_> {
        let (wanted, first, length) = (upper(hash), start(hash), self.slots.len());
        (0..length)
            .map_while(move |step| {
                let slot = *self.slots.get(first.wrapping_add(step) & (length - 1))?;
                (slot != 0).then_some(slot)
            })
            .filter(move |slot| slot >> 32 == wanted)
            .map(|slot| (slot & 0xffff_ffff) - 1)
    }

    /// Slots know only the upper half of their hash, which is what their place is computed from.
    fn grow(&mut self) {
        let mut larger = vec![0; self.slots.len() * 2];
        for slot in self.slots.iter().copied().filter(|slot| *slot != 0) {
            put(&mut larger, spread(slot >> 32), slot);
        }
        self.slots = larger;
    }
}

fn upper(hash: &ShortHash) -> u64 {
    let [a, b, c, d, ..] = *hash;
    u64::from(u32::from_le_bytes([a, b, c, d]))
}

fn start(hash: &ShortHash) -> usize {
    spread(upper(hash))
}

/// A place that uses all bits of the half.
fn spread(upper: u64) -> usize {
    (upper.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) as usize
}

fn put(slots: &mut [u64], first: usize, slot: u64) {
    let length = slots.len();
    for step in 0..length {
        if let Some(free) = slots.get_mut(first.wrapping_add(step) & (length - 1)).filter(|free| **free == 0)
        {
            *free = slot;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> ShortHash {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        hash
    }

    #[test]
    fn every_input_is_found_again_also_after_the_table_has_grown() {
        let mut table = Duplicates::new();
        for number in 0..5000 {
            assert_eq!(table.candidates(&hash(number)).count(), 0, "{number}");
            table.insert(&hash(number), number);
        }
        for number in 0..5000 {
            assert!(table.candidates(&hash(number)).any(|place| place == number), "{number}");
        }
    }
}
