//! Rows of a file, one after the other: JSON lines, CSV or Parquet. Never holds more than a row, or a group of rows where the
//! format has groups. A row that cannot be read is a row all the same, with the reason in its place.

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

/// A longer row is not read.
pub const MAX_ROW_LENGTH: usize = 64 << 20;
/// How much of the beginning and the end of a file is looked at to tell it from another.
const LOOKED_AT: u64 = 64 * 1024;

/// The formats of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowFormat {
    /// One JSON object per line.
    JsonLines,
    /// Comma-separated values, the first line being the names.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl RowFormat {
    /// The format that the end of a name stands for.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
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
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub format: RowFormat,
}

/// One row as it stands in its file.
#[derive(Debug, Clone)]
pub(crate) enum RawRow {
    /// A line of JSON, not parsed yet.
    Line(Vec<u8>),
    /// Cells of text with the names of their columns.
    Cells(Arc<[String]>, Vec<String>),
    /// Values with names.
    #[cfg(feature = "parquet")]
    Members(Map<String, Value>),
    /// Why there is no row.
    Unreadable(String),
}

/// Gives one row after the other.
pub(crate) trait RowReader: Send {
    /// The next row; `None` at the end. A row that nobody wants need not be read closely.
    fn next_row(&mut self, is_wanted: bool) -> io::Result<Option<RawRow>>;
}

impl RowFile {
    /// Begins at the first row.
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

    /// How many rows there are.
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

    /// What tells this file from another, or from itself after a change. Large files are looked at in part.
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
