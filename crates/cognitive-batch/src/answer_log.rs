//! Writes the lines of answered rows and the journal about them. Lines are buffered and flushed in groups. A
//! line counts once its record is in the journal, which is written after the line. If the process dies in
//! between, the next process truncates the lines without a record.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::duplicates::Duplicates;
use crate::journal::{Journal, JournalRecord, RECORD_LENGTH, ShortHash};
use crate::plan::RowCounts;

/// The buffer size that triggers a flush, in bytes. A system call for every line would slow down fast batches.
const GROUP_LENGTH: usize = 128 * 1024;
/// The longest time that a line stays in the buffer. A killed process loses at most the lines of this time.
const GROUP_TIME: Duration = Duration::from_millis(50);
/// The number of last lines that are checked when a batch resumes. After a power loss, a file may have its
/// full length but not all of its bytes.
const CHECKED_LINES: usize = 64;

/// The paths of the lines and of the journal.
#[derive(Debug, Clone)]
pub(crate) struct LogPlaces {
    /// All answers, or the successful ones.
    pub(crate) answers: PathBuf,
    /// Failures, if they have a separate file.
    pub(crate) failed: Option<PathBuf>,
    pub(crate) journal: PathBuf,
}

/// One file of lines.
struct LineFile {
    file: File,
    /// The number of bytes written so far.
    written: u64,
    unwritten: Vec<u8>,
}

impl LineFile {
    fn open(path: &Path, length: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Self { file, written: length, unwritten: Vec::new() })
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.unwritten)?;
        self.written += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }
}

/// The line files and the journal of a batch.
pub(crate) struct AnswerLog {
    files: Vec<LineFile>,
    journal: Journal,
    /// Separate read handles on the line files, to copy answers.
    readers: Vec<File>,
    journal_reader: File,
    records: u64,
    /// The number of records already written to the journal.
    records_written: u64,
    done: Vec<u64>,
    duplicates: Option<Duplicates>,
    oldest: Option<Instant>,
    /// The counts so far, including those of earlier processes.
    pub(crate) counts: RowCounts,
    trouble: Option<io::Error>,
}

impl AnswerLog {
    /// Opens the files of an earlier process, or creates them, for this many rows.
    pub(crate) fn open(places: &LogPlaces, rows: u64, dedupe: bool) -> io::Result<Self> {
        let paths: Vec<&Path> = [Some(&places.answers), places.failed.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect();
        let mut lengths = Vec::new();
        for path in &paths {
            lengths.push(std::fs::metadata(path).map_or(0, |file| file.len()));
        }
        let sound = sound_records(places, &paths, &lengths)?;
        let mut ends = vec![0; paths.len()];
        let (mut done, mut counts, mut records) = (Vec::new(), RowCounts::default(), 0);
        let table = places.journal.with_file_name("duplicates");
        let mut duplicates = if dedupe { Some(Duplicates::open(&table, rows)?) } else { None };
        let journal = Journal::open(&places.journal, |record| {
            if records >= sound {
                return false;
            }
            if let Some(end) = ends.get_mut(usize::from(record.in_failed_file)) {
                *end = record.end();
            }
            mark(&mut done, record.row);
            counts.add(&record);
            if let Some(duplicates) = duplicates.as_mut().filter(|_| !record.is_copy) {
                duplicates.recall(&record.hash, records);
            }
            records += 1;
            true
        })?;
        let files = paths
            .iter()
            .zip(&ends)
            .map(|(path, end)| LineFile::open(path, *end))
            .collect::<io::Result<Vec<_>>>()?;
        let readers = paths.iter().map(File::open).collect::<io::Result<Vec<_>>>()?;
        let journal_reader = File::open(&places.journal)?;
        let (oldest, trouble) = (None, None);
        Ok(Self {
            files,
            journal,
            readers,
            journal_reader,
            records,
            records_written: records,
            done,
            duplicates,
            oldest,
            counts,
            trouble,
        })
    }

    /// Returns whether a row is answered.
    pub(crate) fn is_done(&self, row: u64) -> bool {
        let word = usize::try_from(row / 64).ok().and_then(|word| self.done.get(word));
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Adds the line of a row, including its line end. Sets offset and length of the record.
    pub(crate) fn push(&mut self, line: &[u8], mut record: JournalRecord) {
        record.in_failed_file &= self.files.len() > 1;
        let Some(file) = self.files.get_mut(usize::from(record.in_failed_file)) else { return };
        record.offset = file.written + file.unwritten.len() as u64;
        record.length = u32::try_from(line.len()).unwrap_or(u32::MAX);
        file.unwritten.extend_from_slice(line);
        self.journal.push(record);
        mark(&mut self.done, record.row);
        self.counts.add(&record);
        if let Some(duplicates) = self.duplicates.as_mut().filter(|_| !record.is_copy) {
            duplicates.insert(&record.hash, self.records);
        }
        self.records += 1;
        let begun = *self.oldest.get_or_insert_with(Instant::now);
        let waiting: usize = self.files.iter().map(|file| file.unwritten.len()).sum();
        if waiting >= GROUP_LENGTH || begun.elapsed() >= GROUP_TIME {
            self.write();
        }
    }

    /// Flushes the buffers: lines first, then their records. An error is stored and ends the batch.
    pub(crate) fn write(&mut self) {
        self.oldest = None;
        if self.trouble.is_some() {
            return;
        }
        let written = self.files.iter_mut().try_for_each(LineFile::write).and_then(|()| self.journal.write());
        self.records_written = self.records;
        self.trouble = written.err();
    }

    /// Flushes the buffers if they are due.
    pub(crate) fn write_if_due(&mut self) {
        if self.oldest.is_some_and(|begun| begun.elapsed() >= GROUP_TIME) {
            self.write();
        }
    }

    /// Returns the error that prevents further writes.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.as_ref().map(ToString::to_string)
    }

    /// Returns the files, in the order in which they must be synced to disk.
    pub(crate) fn handles(&self) -> io::Result<Vec<File>> {
        let lines = self.files.iter().map(|file| file.file.try_clone());
        lines.chain([self.journal.handle()]).collect()
    }

    /// Returns the line that answered the same input, with its record.
    pub(crate) fn recorded_answer(&mut self, hash: &ShortHash) -> Option<(JournalRecord, Vec<u8>)> {
        let places = self.duplicates.as_mut()?.candidates(hash);
        if places.is_empty() {
            return None;
        }
        if places.iter().any(|place| *place >= self.records_written) {
            self.write();
        }
        places.into_iter().find_map(|place| {
            let record = record_at(&mut self.journal_reader, place)?;
            let reader = self.readers.get_mut(usize::from(record.in_failed_file))?;
            let mut line = vec![0; usize::try_from(record.length).ok()?];
            reader.seek(SeekFrom::Start(record.offset)).ok()?;
            reader.read_exact(&mut line).ok()?;
            (record.hash == *hash).then_some((record, line))
        })
    }
}

fn mark(done: &mut Vec<u64>, row: u64) {
    let Ok(word) = usize::try_from(row / 64) else { return };
    if done.len() <= word {
        done.resize(word + 1, 0);
    }
    if let Some(word) = done.get_mut(word) {
        *word |= 1 << (row % 64);
    }
}

fn record_at(reader: &mut File, place: u64) -> Option<JournalRecord> {
    reader.seek(SeekFrom::Start(place.checked_mul(RECORD_LENGTH as u64)?)).ok()?;
    let mut bytes = [0; RECORD_LENGTH];
    reader.read_exact(&mut bytes).ok()?;
    JournalRecord::from_bytes(&bytes)
}

/// Counts the leading records whose lines are complete.
fn sound_records(places: &LogPlaces, paths: &[&Path], lengths: &[u64]) -> io::Result<u64> {
    let (mut count, mut last) = (0_u64, std::collections::VecDeque::new());
    let mut is_sound = true;
    if !places.journal.exists() {
        return Ok(0);
    }
    crate::journal::records(&places.journal, |record| {
        let length = lengths.get(usize::from(record.in_failed_file)).copied().unwrap_or(0);
        is_sound &= record.end() <= length;
        if is_sound {
            count += 1;
            last.push_back(record);
            if last.len() > CHECKED_LINES {
                last.pop_front();
            }
        }
    })?;
    // The first broken line and everything written after it do not count.
    let checked = last.len() as u64;
    for (at, record) in last.iter().enumerate() {
        let Some(path) = paths.get(usize::from(record.in_failed_file)) else { continue };
        if !is_whole(path, record) {
            return Ok(count - checked + at as u64);
        }
    }
    Ok(count)
}

fn is_whole(path: &Path, record: &JournalRecord) -> bool {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(record.offset))?;
        let mut line = vec![0; usize::try_from(record.length).unwrap_or(0)];
        file.read_exact(&mut line)?;
        Ok(line)
    };
    let begins = format!("{{\"row\":{},", record.row);
    read().is_ok_and(|line| line.starts_with(begins.as_bytes()) && line.ends_with(b"}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dir: &Path) -> LogPlaces {
        LogPlaces { answers: dir.join("a"), failed: None, journal: dir.join("j") }
    }

    fn push(log: &mut AnswerLog, row: u64) {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&(row / 2).to_le_bytes());
        let record = JournalRecord { row, ok: true, hash, is_copy: row % 2 == 1, ..JournalRecord::default() };
        log.push(format!("{{\"row\":{row},\"x\":1}}\n").as_bytes(), record);
    }

    #[test]
    fn what_has_no_record_is_cut_off_and_what_has_one_stays_wherever_the_process_ended() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let mut log = AnswerLog::open(&places, 100, true).unwrap();
        (0..10).for_each(|row| push(&mut log, row));
        log.write();
        drop(log);
        let (lines, journal) =
            (std::fs::read(&places.answers).unwrap(), std::fs::read(&places.journal).unwrap());
        for cut in 0..=lines.len() {
            for lost in [0, 1, 64, 100] {
                std::fs::write(&places.answers, &lines[..cut]).unwrap();
                std::fs::write(&places.journal, &journal[..journal.len() - lost]).unwrap();
                let mut log = AnswerLog::open(&places, 100, true).unwrap();
                let done: Vec<u64> = (0..10).filter(|row| log.is_done(*row)).collect();
                let left = (0..10).filter(|row| !done.contains(row));
                left.for_each(|row| push(&mut log, row));
                log.write();
                assert_eq!(log.counts.answered, 10);
                drop(log);
                let text = std::fs::read_to_string(&places.answers).unwrap();
                let mut rows: Vec<&str> = text.lines().collect();
                rows.sort_unstable();
                rows.dedup();
                assert_eq!((text.lines().count(), rows.len()), (10, 10), "{cut} {lost}\n{text}");
            }
        }
    }

    #[test]
    fn lines_of_zeros_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let mut log = AnswerLog::open(&places, 100, false).unwrap();
        (0..4).for_each(|row| push(&mut log, row));
        log.write();
        let mut lines = std::fs::read(&places.answers).unwrap();
        let last = lines.len() - 16;
        lines[last..].fill(0);
        std::fs::write(&places.answers, lines).unwrap();
        let log = AnswerLog::open(&places, 100, false).unwrap();
        assert_eq!((log.is_done(2), log.is_done(3)), (true, false));
    }

    #[test]
    fn an_answer_is_found_by_its_input() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = AnswerLog::open(&places(dir.path()), 100, true).unwrap();
        (0..6).for_each(|row| push(&mut log, row));
        let mut hash = [0; 16];
        hash[0] = 2;
        let (record, line) = log.recorded_answer(&hash).unwrap();
        assert_eq!((record.row, line.as_slice()), (4, b"{\"row\":4,\"x\":1}\n".as_slice()));
        hash[0] = 9;
        assert_eq!(log.recorded_answer(&hash), None);
    }
}
