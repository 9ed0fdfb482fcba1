//! Which rows are answered, and where their lines are: records of a fixed length, only ever appended. A record is written
//! after the line that it is about, so a line without a record does not count. Knows nothing of what lines say.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use cognitive_contract::money::Money;

/// How long a record is, in bytes.
pub(crate) const RECORD_LENGTH: usize = 64;

const OK: u32 = 1;
const FAILED_FILE: u32 = 2;
const COPY: u32 = 4;
const UNPRICED: u32 = 8;

/// The first 16 bytes of the hash of an input: enough to tell inputs apart.
pub(crate) type ShortHash = [u8; 16];

/// One row that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JournalRecord {
    /// The row, from 0 on.
    pub(crate) row: u64,
    /// Where its line begins.
    pub(crate) offset: u64,
    /// How long its line is, with its end.
    pub(crate) length: u32,
    /// Whether the run succeeded.
    pub(crate) ok: bool,
    /// Whether the line is in the file of failures.
    pub(crate) in_failed_file: bool,
    /// Whether the answer is that of another row with the same input.
    pub(crate) is_copy: bool,
    /// The input.
    pub(crate) hash: ShortHash,
    /// Tokens that it cost.
    pub(crate) tokens: u64,
    /// What it cost, if there is a price.
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

    /// Reads a record; `None` if it was never written to its end.
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

    /// Where the line after it begins.
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

/// FNV-1a, so that a record of zeros is none.
fn check_sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The file of records.
pub(crate) struct Journal {
    file: File,
    unwritten: Vec<u8>,
}

impl Journal {
    /// Opens a journal and hands every whole record to `each`, in order; what follows the last whole one is cut off. `each`
    /// says whether it takes the record: the first that it does not take is cut off with all that follow.
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

    /// Takes a record; it is not in the file yet.
    pub(crate) fn push(&mut self, record: JournalRecord) {
        self.unwritten.extend(record.to_bytes());
    }

    /// Writes what was taken.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.unwritten)?;
        self.unwritten.clear();
        Ok(())
    }

    /// The file, for whoever makes it outlast a loss of power.
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// All records of a journal that is not written to any more, in order.
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
        // A kill in the midst of a record, at every byte of it.
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
