//! Writes answers as a Parquet file: one row per answer, with the envelope as a struct with the same columns
//! as `cogn.udf` in Python. `data` and `details` are JSON text, so that files of all modules and versions are
//! compatible.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::Value;

use crate::finish::{PlacedLine, draft, each_line};

/// The size of a row group, in rows or in bytes of lines, whichever is reached first. A row group is held in memory
/// until it is written, and small groups compress badly.
const GROUP_ROWS: usize = 20_000;
const GROUP_BYTES: usize = 32 << 20;

const SCHEMA: &str = "message answers {
    REQUIRED INT64 row;
    OPTIONAL BYTE_ARRAY id (UTF8);
    REQUIRED BYTE_ARRAY input_hash (UTF8);
    OPTIONAL INT64 duplicate_of;
    OPTIONAL BYTE_ARRAY input (UTF8);
    REQUIRED group envelope {
        REQUIRED BOOLEAN ok;
        REQUIRED group meta {
            OPTIONAL DOUBLE confidence;
            OPTIONAL BYTE_ARRAY risk (UTF8);
            OPTIONAL BYTE_ARRAY explain (UTF8);
            OPTIONAL BYTE_ARRAY model (UTF8);
            OPTIONAL DOUBLE latency_ms;
        }
        OPTIONAL BYTE_ARRAY data (UTF8);
        OPTIONAL group error {
            OPTIONAL BYTE_ARRAY code (UTF8);
            OPTIONAL BYTE_ARRAY message (UTF8);
            OPTIONAL BYTE_ARRAY suggestion (UTF8);
            OPTIONAL BOOLEAN recoverable;
            OPTIONAL BYTE_ARRAY details (UTF8);
        }
        OPTIONAL group usage {
            OPTIONAL INT64 input_tokens;
            OPTIONAL INT64 output_tokens;
            OPTIONAL INT64 total_tokens;
            OPTIONAL DOUBLE cost;
        }
        REQUIRED BYTE_ARRAY json (UTF8);
    }
}";

/// The type of a column.
#[derive(Debug, Clone, Copy)]
enum AnswerType {
    Integer,
    Double,
    Boolean,
    /// A string as it is; any other value as JSON.
    Text,
}

/// Selects whether a column may be null, and whether its group may be.
#[derive(Debug, Clone, Copy)]
enum Absence {
    Never,
    Alone,
    /// Also null together with its whole group, which is at this path.
    WithGroup(&'static str),
}

/// One column: its type, the path of its values in a line, and whether they may be null.
type AnswerColumn = (AnswerType, &'static str, Absence);

/// All columns but the last, in the order of the schema.
const COLUMNS: [AnswerColumn; 21] = {
    use Absence::{Alone, Never, WithGroup};
    use AnswerType::{Boolean, Double, Integer, Text};
    const ERROR: Absence = WithGroup("/envelope/error");
    const USAGE: Absence = WithGroup("/envelope/meta/usage");
    [
        (Integer, "/row", Never),
        (Text, "/id", Alone),
        (Text, "/input_hash", Never),
        (Integer, "/duplicate_of", Alone),
        (Text, "/input", Alone),
        (Boolean, "/envelope/ok", Never),
        (Double, "/envelope/meta/confidence", Alone),
        (Text, "/envelope/meta/risk", Alone),
        (Text, "/envelope/meta/explain", Alone),
        (Text, "/envelope/meta/model", Alone),
        (Double, "/envelope/meta/latency_ms", Alone),
        (Text, "/envelope/data", Alone),
        (Text, "/envelope/error/code", ERROR),
        (Text, "/envelope/error/message", ERROR),
        (Text, "/envelope/error/suggestion", ERROR),
        (Boolean, "/envelope/error/recoverable", ERROR),
        (Text, "/envelope/error/details", ERROR),
        (Integer, "/envelope/meta/usage/input_tokens", USAGE),
        (Integer, "/envelope/meta/usage/output_tokens", USAGE),
        (Integer, "/envelope/meta/usage/total_tokens", USAGE),
        (Double, "/envelope/meta/usage/cost", USAGE),
    ]
};
/// The last column: the whole envelope.
const WHOLE: AnswerColumn = (AnswerType::Text, "/envelope", Absence::Never);

/// Writes these lines to a file, atomically.
pub(crate) fn write(from: &Path, lines: &[PlacedLine], to: &Path) -> io::Result<()> {
    let draft = draft(to);
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(io::Error::other)?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let file = File::create(&draft)?;
    let mut writer =
        SerializedFileWriter::new(file.try_clone()?, schema, properties).map_err(io::Error::other)?;
    let (mut group, mut bytes) = (Vec::new(), 0);
    each_line(from, lines, |line| {
        group.push(serde_json::from_slice::<Value>(line).map_err(io::Error::other)?);
        bytes += line.len();
        if group.len() >= GROUP_ROWS || bytes >= GROUP_BYTES {
            write_group(&mut writer, &group).map_err(io::Error::other)?;
            group.clear();
            bytes = 0;
        }
        Ok(())
    })?;
    if !group.is_empty() {
        write_group(&mut writer, &group).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    file.sync_all()?;
    fs::rename(draft, to)
}

fn write_group(writer: &mut SerializedFileWriter<File>, lines: &[Value]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in COLUMNS.iter().chain([&WHOLE]) {
        write_column(&mut group, column, lines)?;
    }
    group.close().map(drop)
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, File>,
    (kind, place, absence): &AnswerColumn,
    lines: &[Value],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns".to_owned()));
    };
    let found = |line| Value::pointer(line, place).filter(|value| !value.is_null());
    let levels: Vec<i16> = lines
        .iter()
        .map(|line| match (absence, found(line)) {
            (Absence::Never, _) => 0,
            (Absence::Alone, value) => i16::from(value.is_some()),
            (Absence::WithGroup(_), Some(_)) => 2,
            (Absence::WithGroup(around), None) => i16::from(line.pointer(around).is_some()),
        })
        .collect();
    let levels = Some(levels.as_slice()).filter(|_| !matches!(absence, Absence::Never));
    let values = lines.iter().filter_map(found);
    match kind {
        AnswerType::Integer => {
            let values: Vec<i64> = values.map(|value| value.as_i64().unwrap_or_default()).collect();
            column.typed::<Int64Type>().write_batch(&values, levels, None)?;
        }
        AnswerType::Double => {
            let values: Vec<f64> = values.map(|value| value.as_f64().unwrap_or_default()).collect();
            column.typed::<DoubleType>().write_batch(&values, levels, None)?;
        }
        AnswerType::Boolean => {
            let values: Vec<bool> = values.map(|value| value.as_bool().unwrap_or_default()).collect();
            column.typed::<BoolType>().write_batch(&values, levels, None)?;
        }
        AnswerType::Text => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let values: Vec<ByteArray> =
                values.map(|value| ByteArray::from(text(value).into_bytes())).collect();
            column.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
        }
    }
    column.close()
}
