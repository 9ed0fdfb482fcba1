//! Reads the rows of a file in order: JSON lines, CSV or Parquet. Holds at most one row in memory, or one row
//! group if the format has them. An unreadable row is returned as a row with the reason.

mod csv_rows;
mod json_lines;
#[cfg(feature = "parquet")]
mod parquet_rows;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognitive_contract::text::hex;
#[cfg(feature = "parquet")]
use serde_json::Map;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The maximum length of a row, in bytes. Without it, a file without line breaks would fill the memory.
pub const MAX_ROW_LENGTH: usize = 64 << 20;
/// The number of bytes at each end of a file that its fingerprint covers. Hashing a file of many gigabytes would
/// delay each start.
const LOOKED_AT: u64 = 64 * 1024;

/// The number of column names that are collected for a message. Rows of JSON may each have names of their own.
const MAX_COLUMNS: usize = 20;

/// The formats of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowFormat {
    /// One JSON object per line.
    JsonLines,
    /// Comma-separated values; the first line contains the names.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl RowFormat {
    /// Returns the format for a file extension.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            "csv" | "tsv" => Some(Self::Csv),
            "parquet" | "pq" => Some(Self::Parquet),
            _ => None,
        }
    }
}

impl fmt::Display for RowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        })
    }
}

/// A file of rows.
#[derive(Debug, Clone)]
pub struct RowFile {
    /// The path.
    pub path: PathBuf,
    /// The format.
    pub format: RowFormat,
}

/// One row as read from its file.
#[derive(Debug, Clone)]
pub(crate) enum RawRow {
    /// A line of JSON, not parsed yet.
    Line(Vec<u8>),
    /// Text cells with the names of their columns.
    Cells(Arc<[String]>, Vec<String>),
    /// Values with names.
    #[cfg(feature = "parquet")]
    Members(Map<String, Value>),
    /// The reason why the row cannot be read.
    Unreadable(String),
}

/// A reader that returns one row after the other.
pub(crate) trait RowReader: Send {
    /// Returns the names of the columns; `None` if each row has its own.
    fn columns(&self) -> Option<&[String]>;

    /// Returns the next row; `None` at the end. If the row is not wanted, its content may be skipped.
    fn next_row(&mut self, is_wanted: bool) -> io::Result<Option<RawRow>>;
}

impl RowFile {
    /// Opens the file at its first row.
    pub(crate) fn open(&self) -> io::Result<Box<dyn RowReader>> {
        Ok(match self.format {
            RowFormat::JsonLines => Box::new(json_lines::JsonLineReader::open(&self.path)?),
            RowFormat::Csv => Box::new(csv_rows::CsvReader::open(&self.path)?),
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => Box::new(parquet_rows::ParquetReader::open(&self.path)?),
            #[cfg(not(feature = "parquet"))]
            RowFormat::Parquet => return Err(no_parquet()),
        })
    }

    /// Returns the first of these columns that no row has, and the columns that exist. Of JSON lines, reads no further
    /// than needed: usually the first row has all of them.
    pub(crate) fn missing_column<'w>(
        &self,
        wanted: &[&'w str],
    ) -> io::Result<Option<(&'w str, Vec<String>)>> {
        let mut reader = self.open()?;
        if let Some(columns) = reader.columns() {
            let missing = wanted.iter().find(|name| !columns.iter().any(|column| column == *name));
            return Ok(missing.map(|name| (*name, columns.to_vec())));
        }
        let mut missing = wanted.to_vec();
        let mut columns: Vec<String> = Vec::new();
        while !missing.is_empty() {
            let Some(row) = reader.next_row(true)? else { break };
            // The run reports a row that is not an object.
            let RawRow::Line(line) = row else { continue };
            let Ok(Value::Object(members)) = serde_json::from_slice(&line) else { continue };
            missing.retain(|name| !members.contains_key(*name));
            for name in members.keys().take(MAX_COLUMNS.saturating_sub(columns.len())) {
                if !columns.contains(name) {
                    columns.push(name.clone());
                }
            }
        }
        // A file without a single object has no columns to compare with, and each of its rows reports its own fault.
        Ok(missing.first().filter(|_| !columns.is_empty()).map(|name| (*name, columns)))
    }

    /// Returns the number of rows.
    pub fn count(&self) -> io::Result<u64> {
        #[cfg(feature = "parquet")]
        if self.format == RowFormat::Parquet {
            return parquet_rows::count(&self.path);
        }
        let mut reader = self.open()?;
        let mut rows = 0;
        while reader.next_row(false)?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    /// The identity of the file, to detect changes. Covers only both ends of a large file.
    pub(crate) fn fingerprint(&self) -> io::Result<Value> {
        let mut file = File::open(&self.path)?;
        let about = file.metadata()?;
        let modified = about.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let mut hash = Sha256::new();
        let mut beginning = Vec::new();
        Read::by_ref(&mut file).take(LOOKED_AT).read_to_end(&mut beginning)?;
        hash.update(&beginning);
        file.seek(SeekFrom::Start(about.len().saturating_sub(LOOKED_AT)))?;
        let mut end = Vec::new();
        file.take(LOOKED_AT).read_to_end(&mut end)?;
        hash.update(&end);
        Ok(json!({
            "format": self.format.to_string(),
            "bytes": about.len(),
            "modified_ms": modified.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            "ends_sha256": hex(&hash.finalize()),
        }))
    }
}

#[cfg(not(feature = "parquet"))]
fn no_parquet() -> io::Error {
    io::Error::other("this program was built without Parquet")
}
