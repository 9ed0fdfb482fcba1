//! Reads the rows of a Parquet file, one row group at a time. Nulls become missing members, dates and times
//! ISO 8601 strings. Bytes have no form in JSON, so a row with them is unreadable.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use serde_json::{Map, Number, Value};

use super::{RawRow, RowReader};

/// A reader that returns one row at a time.
pub(crate) struct ParquetReader {
    names: Vec<String>,
    rows: RowIter<'static>,
}

impl ParquetReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        catch_panics(|| {
            let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
            let fields = reader.metadata().file_metadata().schema().get_fields();
            let names = fields.iter().map(|field| field.name().to_owned()).collect();
            Ok(Self { names, rows: RowIter::from_file_into(Box::new(reader)) })
        })
    }
}

/// Returns the number of rows according to the file's metadata.
pub(crate) fn count(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    catch_panics(|| {
        let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
        u64::try_from(reader.metadata().file_metadata().num_rows()).map_err(io::Error::other)
    })
}

/// Catches panics: the Parquet library panics on some malformed files, which must not end the process.
fn catch_panics<T>(read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(io::Error::other("the Parquet file is broken")))
}

impl RowReader for ParquetReader {
    fn columns(&self) -> Option<&[String]> {
        Some(&self.names)
    }

    fn next_row(&mut self, is_wanted: bool) -> io::Result<Option<RawRow>> {
        catch_panics(|| match self.rows.next() {
            None => Ok(None),
            Some(Err(error)) => Err(io::Error::other(error)),
            Some(Ok(_)) if !is_wanted => Ok(Some(RawRow::Line(Vec::new()))),
            Some(Ok(row)) => Ok(Some(match members(&row) {
                Ok(members) => RawRow::Members(members),
                Err(column) => {
                    RawRow::Unreadable(format!("bytes have no form in JSON, in the column: `{column}`"))
                }
            })),
        })
    }
}

/// Converts a row to members; the error is the column that has no form in JSON.
fn members(row: &Row) -> Result<Map<String, Value>, String> {
    let mut members = Map::new();
    for (name, field) in row.get_column_iter() {
        match value(field).ok_or_else(|| name.clone())? {
            Value::Null => {}
            value => drop(members.insert(name.clone(), value)),
        }
    }
    Ok(members)
}

fn value(field: &Field) -> Option<Value> {
    Some(match field {
        Field::Bytes(_) => return None,
        Field::Group(row) => Value::Object(members(row).ok()?),
        Field::ListInternal(list) => Value::Array(list.elements().iter().map(value).collect::<Option<_>>()?),
        Field::Decimal(_) => match field.to_json_value() {
            Value::String(text) => text.parse::<Number>().map_or(Value::String(text), Value::Number),
            other => other,
        },
        // The library writes a space instead of the `T`, and the zone separately.
        Field::TimestampMillis(_) | Field::TimestampMicros(_) => match field.to_json_value() {
            Value::String(text) => Value::String(text.replacen(' ', "T", 1).replace(" +00:00", "Z")),
            other => other,
        },
        other => other.to_json_value(),
    })
}
