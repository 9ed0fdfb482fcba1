//! Reads rows from JSON lines. Empty lines are skipped. A line with invalid JSON is a row, and its run
//! reports the error.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::{MAX_ROW_LENGTH, RawRow, RowReader};

/// A reader that returns one line at a time.
pub(crate) struct JsonLineReader {
    file: BufReader<File>,
    is_first: bool,
    line: Vec<u8>,
}

impl JsonLineReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = BufReader::with_capacity(256 * 1024, File::open(path)?);
        Ok(Self { file, is_first: true, line: Vec::new() })
    }

    /// Reads the next line, without its end, into `line`. Returns true if it was too long; the rest is
    /// skipped then.
    fn read_line(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let mut bounded = Read::by_ref(&mut self.file).take(MAX_ROW_LENGTH as u64 + 1);
        if bounded.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        let is_too_long = self.line.len() > MAX_ROW_LENGTH && self.line.last() != Some(&b'\n');
        if is_too_long {
            self.line.truncate(1024);
            self.file.skip_until(b'\n')?;
        }
        if std::mem::take(&mut self.is_first) && self.line.starts_with("\u{feff}".as_bytes()) {
            self.line.drain(..3);
        }
        while self.line.last().is_some_and(u8::is_ascii_whitespace) {
            self.line.pop();
        }
        Ok(Some(is_too_long))
    }
}

impl RowReader for JsonLineReader {
    fn columns(&self) -> Option<&[String]> {
        None
    }

    fn next_row(&mut self, is_wanted: bool) -> io::Result<Option<RawRow>> {
        loop {
            let Some(is_too_long) = self.read_line()? else { return Ok(None) };
            if is_too_long {
                let why = format!("the row is longer than {} MiB", MAX_ROW_LENGTH >> 20);
                return Ok(Some(RawRow::Unreadable(why)));
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                let line = if is_wanted { self.line.clone() } else { Vec::new() };
                return Ok(Some(RawRow::Line(line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_are_no_rows_and_the_last_line_needs_no_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        std::fs::write(&path, "\u{feff}{\"a\":1}\r\n\n  \nnonsense\n{\"a\":2}").unwrap();
        let mut reader = JsonLineReader::open(&path).unwrap();
        let mut rows = Vec::new();
        while let Some(RawRow::Line(line)) = reader.next_row(true).unwrap() {
            rows.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(rows, ["{\"a\":1}", "nonsense", "{\"a\":2}"]);
    }
}
