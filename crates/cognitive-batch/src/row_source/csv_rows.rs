//! Reads the rows of a CSV file. The first line contains the column names; a `.tsv` file is separated by
//! tabs. A line with more or fewer cells than names becomes an unreadable row.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{MAX_ROW_LENGTH, RawRow, RowReader};

/// The most columns. No table for people or models has a tenth of them, and each row has a value for each.
const MAX_COLUMNS: usize = 100_000;

/// A reader that returns one record at a time.
pub(crate) struct CsvReader {
    reader: csv::Reader<File>,
    names: Arc<[String]>,
    record: csv::ByteRecord,
}

impl CsvReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let has_tabs = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tsv"));
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(if has_tabs { b'\t' } else { b',' })
            .flexible(true)
            .buffer_capacity(256 * 1024)
            .from_path(path)
            .map_err(io::Error::other)?;
        let names = reader.byte_headers().map_err(io::Error::other)?;
        let names: Option<Vec<String>> =
            names.iter().map(|name| String::from_utf8(name.to_vec()).ok()).collect();
        let names = names.ok_or_else(|| io::Error::other("the column names are not UTF-8"))?;
        if names.len() > MAX_COLUMNS {
            let (found, most) = (names.len(), MAX_COLUMNS);
            return Err(io::Error::other(format!("the file has {found} columns, the limit is: {most}")));
        }
        let mut seen = HashSet::with_capacity(names.len());
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(io::Error::other(format!("two columns have the same name: `{twice}`")));
        }
        Ok(Self { reader, names: names.into(), record: csv::ByteRecord::new() })
    }

    fn row(&self) -> RawRow {
        if self.record.len() != self.names.len() {
            let (cells, names) = (self.record.len(), self.names.len());
            return RawRow::Unreadable(format!("the row has {cells} cells, the file has {names} columns"));
        }
        if self.record.as_slice().len() > MAX_ROW_LENGTH {
            return RawRow::Unreadable(format!("the row is longer than {} MiB", MAX_ROW_LENGTH >> 20));
        }
        let cells: Option<Vec<String>> =
            self.record.iter().map(|cell| std::str::from_utf8(cell).ok().map(str::to_owned)).collect();
        match cells {
            Some(cells) => RawRow::Cells(Arc::clone(&self.names), cells),
            None => RawRow::Unreadable("the row is not UTF-8".to_owned()),
        }
    }
}

impl RowReader for CsvReader {
    fn columns(&self) -> Option<&[String]> {
        Some(&self.names)
    }

    fn next_row(&mut self, is_wanted: bool) -> io::Result<Option<RawRow>> {
        if !self.reader.read_byte_record(&mut self.record).map_err(io::Error::other)? {
            return Ok(None);
        }
        Ok(Some(if is_wanted { self.row() } else { RawRow::Line(Vec::new()) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names_and_a_line_of_another_length_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        std::fs::write(&path, "id,text\n1,\"a, \"\"b\"\"\nc\"\n2\n3,d\n").unwrap();
        let mut reader = CsvReader::open(&path).unwrap();
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row(true).unwrap() {
            rows.push(match row {
                RawRow::Cells(names, cells) => format!("{}={}", names[1], cells[1]),
                RawRow::Unreadable(why) => why,
                other => format!("{other:?}"),
            });
        }
        assert_eq!(rows, ["text=a, \"b\"\nc", "the row has 1 cells, the file has 2 columns", "text=d"]);
        std::fs::write(&path, "a,a\n").unwrap();
        assert!(CsvReader::open(&path).is_err());
        // A comparison of each name with each other would take minutes.
        let names: Vec<String> = (0..=MAX_COLUMNS).map(|number| format!("c{number}")).collect();
        std::fs::write(&path, names[1..].join(",")).unwrap();
        assert_eq!(CsvReader::open(&path).unwrap().names.len(), MAX_COLUMNS);
        std::fs::write(&path, names.join(",")).unwrap();
        assert!(CsvReader::open(&path).is_err());
    }
}
