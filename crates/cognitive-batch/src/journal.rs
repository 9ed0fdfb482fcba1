//! The journal of answered rows and the positions of their lines: fixed-length records, append-only. A record
//! is written after its line, so a line without a record does not count. Does not know the content of lines.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use cognitive_contract::money::Money;

/// The length of a record, in bytes.
pub(crate) const RECORD_LENGTH: usize = 64;

const OK: u32 = 1;
const FAILED_FILE: u32 = 2;
const COPY: u32 = 4;
const UNPRICED: u32 = 8;

/// The first 16 bytes of an input hash: enough to distinguish inputs.
pub(crate) type ShortHash = [u8; 16];

/// The record of one answered row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JournalRecord {
    /// The row number, starting at 0.
    pub(crate) row: u64,
    /// The offset of its line.
    pub(crate) offset: u64,
    /// The length of its line, including the line end.
    pub(crate) length: u32,
    /// True if the run succeeded.
    pub(crate) ok: bool,
    /// True if the line is in the file of failures.
    pub(crate) in_failed_file: bool,
    /// True if the answer was copied from another row with the same input.
    pub(crate) is_copy: bool,
    /// The hash of the input.
    pub(crate) hash: ShortHash,
    /// The tokens that it used.
    pub(crate) tokens: u64,
    /// Its cost, if there is a price.
    pub(crate) cost: Option<Money>,
}

impl JournalRecord {
    fn to_bytes(self) -> [u8; RECORD_LENGTH] {
        let flag = |is: bool, bit: u32| if is { bit } else { 0 };
        let flags = flag(self.ok, OK)
            | flag(self.in_failed_file, FAILED_FILE)
            | flag(self.is_copy, COPY)
            | flag(self.cost.is_none(), UNPRICED);
        let mut bytes = Vec::with_capacity(RECORD_LENGTH);
        bytes.extend(self.row.to_le_bytes());
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(self.hash);
        bytes.extend(self.tokens.to_le_bytes());
        bytes.extend(self.cost.unwrap_or_default().pico().to_le_bytes());
        bytes.extend(check_sum(&bytes).to_le_bytes());
        let mut record = [0; RECORD_LENGTH];
        record.copy_from_slice(&bytes);
        record
    }

    /// Parses a record; `None` if it is incomplete.
    pub(crate) fn from_bytes(bytes: &[u8; RECORD_LENGTH]) -> Option<Self> {
        let mut rest: &[u8] = bytes;
        let body = bytes.get(..RECORD_LENGTH - 8)?;
        let (row, offset) = (number(&mut rest)?, number(&mut rest)?);
        let (length, flags) = (short_number(&mut rest)?, short_number(&mut rest)?);
        let hash = *rest.first_chunk::<16>()?;
        rest = rest.get(16..)?;
        let (tokens, cost, sum) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        (sum == check_sum(body)).then_some(Self {
            row,
            offset,
            length,
            ok: flags & OK != 0,
            in_failed_file: flags & FAILED_FILE != 0,
            is_copy: flags & COPY != 0,
            hash,
            tokens,
            cost: (flags & UNPRICED == 0).then(|| Money::from_pico(cost)),
        })
    }

    /// Returns the offset of the end of its line.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (first, others) = rest.split_first_chunk::<8>()?;
    *rest = others;
    Some(u64::from_le_bytes(*first))
}

fn short_number(rest: &mut &[u8]) -> Option<u32> {
    let (first, others) = rest.split_first_chunk::<4>()?;
    *rest = others;
    Some(u32::from_le_bytes(*first))
}

/// An FNV-1a hash, so that a record of zeros is invalid.
fn check_sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The journal file.
pub(crate) struct Journal {
    file: File,
    unwritten: Vec<u8>,
}

impl Journal {
    /// Opens a journal, passes every complete record to `each` in order, and truncates the rest. When `each`
    /// returns false, that record and all later ones are truncated as well.
    pub(crate) fn open(path: &Path, mut each: impl FnMut(JournalRecord) -> bool) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut reader = BufReader::with_capacity(1 << 20, &mut file);
        let (mut bytes, mut whole) = ([0; RECORD_LENGTH], 0_u64);
        while reader.read_exact(&mut bytes).is_ok() {
            match JournalRecord::from_bytes(&bytes) {
                Some(record) if each(record) => whole += 1,
                _ => break,
            }
        }
        drop(reader);
        let length = whole.saturating_mul(RECORD_LENGTH as u64);
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Self { file, unwritten: Vec::new() })
    }

    /// Adds a record to the buffer.
    pub(crate) fn push(&mut self, record: JournalRecord) {
        self.unwritten.extend(record.to_bytes());
    }

    /// Writes the buffered records.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.unwritten)?;
        self.unwritten.clear();
        Ok(())
    }

    /// Returns a second handle, for syncing to disk.
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Reads all records of a journal that is no longer written, in order.
pub(crate) fn records(path: &Path, mut each: impl FnMut(JournalRecord)) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut bytes = [0; RECORD_LENGTH];
    while reader.read_exact(&mut bytes).is_ok() {
        match JournalRecord::from_bytes(&bytes) {
            Some(record) => each(record),
            None => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(row: u64) -> JournalRecord {
        let cost = row.is_multiple_of(2).then(|| Money::from_pico(row * 3));
        JournalRecord {
            row,
            offset: row * 10,
            length: 10,
            ok: row != 3,
            tokens: 7,
            cost,
            ..JournalRecord::default()
        }
    }

    fn opened(path: &Path) -> Vec<JournalRecord> {
        let mut found = Vec::new();
        Journal::open(path, |record| {
            found.push(record);
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn what_was_written_comes_back_and_a_torn_record_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::open(&path, |_| true).unwrap();
        (0..4).for_each(|row| journal.push(record(row)));
        journal.write().unwrap();
        drop(journal);
        let whole: Vec<JournalRecord> = (0..4).map(record).collect();
        assert_eq!(opened(&path), whole);
        // A kill inside a record, at every byte of it.
        for cut in 1..RECORD_LENGTH as u64 {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(4 * RECORD_LENGTH as u64 - cut).unwrap();
            assert_eq!(opened(&path), whole[..3], "{cut}");
            let mut journal = Journal::open(&path, |_| true).unwrap();
            journal.push(record(3));
            journal.write().unwrap();
            assert_eq!(opened(&path), whole);
        }
    }

    #[test]
    fn zeros_are_no_record() {
        assert_eq!(JournalRecord::from_bytes(&[0; RECORD_LENGTH]), None);
    }
}
