//! Maps answered inputs to their records in the journal, with eight bytes per slot. A small table is stored
//! in memory. A larger one is a file next to the journal, so that memory use does not grow with the rows. The
//! file remains when a process ends, because rebuilding it would delay a resumed batch. It is never trusted:
//! two inputs are only equal if the journal confirms it, and a lost input is asked again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::journal::ShortHash;

/// Tables with at least this many slots are files. Sizes are powers of two.
const LENGTH_ON_DISK: u64 = 1 << 17;
const SLOT_LENGTH: usize = size_of::<u64>();
/// The number of slots read together: most searches end within them.
const WINDOW: usize = 8;

/// A hash table with open addressing. The upper half of a slot is a part of the hash, the lower half the
/// record index plus one.
#[derive(Debug)]
pub(crate) struct Duplicates {
    slots: Slots,
    /// True if it must be filled from the journal.
    is_new: bool,
    used: u64,
}

#[derive(Debug)]
enum Slots {
    InMemory(Vec<u64>),
    OnDisk { file: File, length: u64 },
}

impl Duplicates {
    /// Opens the table that an earlier process left at this path, or an empty one, for this many inputs. It
    /// never grows.
    pub(crate) fn open(path: &Path, inputs: u64) -> io::Result<Self> {
        let length = (inputs / 3).saturating_mul(4).max(WINDOW as u64).saturating_add(1).next_power_of_two();
        let (slots, is_new) = match usize::try_from(length) {
            Ok(small) if length < LENGTH_ON_DISK => (Slots::InMemory(vec![0; small]), true),
            _ => Slots::on_disk(path, length)?,
        };
        Ok(Self { slots, is_new, used: 0 })
    }

    /// Registers an answer of an earlier process. If its slot already exists, it is only counted.
    pub(crate) fn recall(&mut self, hash: &ShortHash, place: u64) {
        if self.is_new {
            self.insert(hash, place);
        } else {
            self.used += 1;
        }
    }

    /// Records the answer to an input. If the disk is full or the index exceeds a slot, the input is asked
    /// again: that costs money but is correct.
    pub(crate) fn insert(&mut self, hash: &ShortHash, place: u64) {
        let Some(lower) = place.checked_add(1).and_then(|place| u32::try_from(place).ok()) else { return };
        // One slot stays free, so that every search ends.
        let is_full = self.used.saturating_add(1) >= self.slots.length();
        if !is_full && self.slots.put((upper(hash) << 32) | u64::from(lower)).is_ok() {
            self.used += 1;
        }
    }

    /// Returns the indices of records that may answer this input.
    pub(crate) fn candidates(&mut self, hash: &ShortHash) -> Vec<u64> {
        let (wanted, mut found) = (upper(hash), Vec::new());
        let looked = self.slots.walk(wanted, |_, slot| {
            if slot >> 32 == wanted && slot != 0 {
                found.push((slot & 0xffff_ffff) - 1);
            }
            slot == 0
        });
        if looked.is_ok() { found } else { Vec::new() }
    }
}

impl Slots {
    /// Opens the file with this many slots. Also returns whether it was created.
    fn on_disk(path: &Path, length: u64) -> io::Result<(Self, bool)> {
        let bytes = length.saturating_mul(SLOT_LENGTH as u64);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let is_new = file.metadata()?.len() != bytes;
        if is_new {
            file.set_len(0)?;
            // The file is sparse: unwritten bytes read as zeros and use no disk space.
            file.set_len(bytes)?;
        }
        Ok((Self::OnDisk { file, length }, is_new))
    }

    fn length(&self) -> u64 {
        match self {
            Self::InMemory(slots) => slots.len() as u64,
            Self::OnDisk { length, .. } => *length,
        }
    }

    /// Stores a slot in the first free place of its probe sequence.
    fn put(&mut self, slot: u64) -> io::Result<()> {
        let mut free = None;
        self.walk(slot >> 32, |at, there| {
            free = (there == 0).then_some(at);
            there == 0
        })?;
        match (self, free) {
            (_, None) => Err(io::Error::other("the table is full")),
            (Self::InMemory(slots), Some(at)) => {
                let place = usize::try_from(at).ok().and_then(|at| slots.get_mut(at));
                place.map(|place| *place = slot).ok_or_else(|| io::Error::other("no such slot"))
            }
            (Self::OnDisk { file, .. }, Some(at)) => {
                file.seek(SeekFrom::Start(at * SLOT_LENGTH as u64))?;
                file.write_all(&slot.to_le_bytes())
            }
        }
    }

    /// Calls `is_end` with each slot of a probe sequence, until it returns true.
    fn walk(&mut self, upper: u64, mut is_end: impl FnMut(u64, u64) -> bool) -> io::Result<()> {
        let length = self.length();
        let mut at = spread_bits(upper) & (length - 1);
        let mut left = length;
        while left > 0 {
            let count = (WINDOW as u64).min(length - at).min(left);
            let mut window = [0; WINDOW];
            let window = window.get_mut(..usize::try_from(count).unwrap_or_default()).unwrap_or_default();
            self.read(at, window)?;
            for (place, slot) in (at..).zip(window.iter()) {
                if is_end(place, *slot) {
                    return Ok(());
                }
            }
            left -= count;
            at = (at + count) & (length - 1);
        }
        Ok(())
    }

    fn read(&mut self, at: u64, window: &mut [u64]) -> io::Result<()> {
        match self {
            Self::InMemory(slots) => {
                let from = usize::try_from(at).ok().and_then(|at| slots.get(at..));
                window.iter_mut().zip(from.into_iter().flatten()).for_each(|(to, from)| *to = *from);
            }
            Self::OnDisk { file, .. } => {
                let mut bytes = [0; WINDOW * SLOT_LENGTH];
                let bytes = bytes.get_mut(..window.len() * SLOT_LENGTH).unwrap_or_default();
                file.seek(SeekFrom::Start(at * SLOT_LENGTH as u64))?;
                file.read_exact(bytes)?;
                for (slot, bytes) in window.iter_mut().zip(bytes.as_chunks::<SLOT_LENGTH>().0) {
                    *slot = u64::from_le_bytes(*bytes);
                }
            }
        }
        Ok(())
    }
}

fn upper(hash: &ShortHash) -> u64 {
    let [a, b, c, d, ..] = *hash;
    u64::from(u32::from_le_bytes([a, b, c, d]))
}

/// Spreads the half over all bits of a place.
fn spread_bits(upper: u64) -> u64 {
    upper.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
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
    fn every_input_is_found_again_in_memory_on_disk_and_by_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("duplicates");
        for (count, on_disk) in [(5_000, false), (LENGTH_ON_DISK, true)] {
            let mut table = Duplicates::open(&path, 2 * count).unwrap();
            assert_eq!(path.exists(), on_disk);
            for number in 0..count {
                assert!(!table.candidates(&hash(number)).contains(&number), "{number}");
                table.insert(&hash(number), number);
            }
            assert!((0..count).all(|number| table.candidates(&hash(number)).contains(&number)));
            assert!(table.candidates(&hash(count)).len() < 3, "a slot says little, and yet not nothing");

            // The next process fills the table from the journal, and continues.
            let mut table = Duplicates::open(&path, 2 * count).unwrap();
            (0..count).for_each(|number| table.recall(&hash(number), number));
            (count..2 * count).for_each(|number| table.insert(&hash(number), number));
            assert!((0..2 * count).all(|number| table.candidates(&hash(number)).contains(&number)));
            assert_eq!((0..2 * count).filter(|number| table.candidates(&hash(*number)).len() > 2).count(), 0);
        }
        // A truncated file is recreated.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(100).unwrap();
        assert!(Duplicates::open(&path, 2 * LENGTH_ON_DISK).unwrap().candidates(&hash(1)).is_empty());
    }

    #[test]
    fn a_full_table_takes_no_more_and_every_search_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = Duplicates::open(&dir.path().join("duplicates"), 1).unwrap();
        (0..100).for_each(|number| table.insert(&hash(number), number));
        assert!((0..100).filter(|number| !table.candidates(&hash(*number)).is_empty()).count() < 16);
    }

    // Indices use four bytes; inputs with a larger index are asked again.
    #[test]
    fn a_place_that_no_slot_can_hold_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = Duplicates::open(&dir.path().join("duplicates"), 10).unwrap();
        table.insert(&hash(1), u64::from(u32::MAX));
        table.insert(&hash(2), u64::MAX);
        table.insert(&hash(3), u64::from(u32::MAX) - 1);
        assert_eq!([1, 2, 3].map(|number| table.candidates(&hash(number)).len()), [0, 0, 1]);
    }
}
