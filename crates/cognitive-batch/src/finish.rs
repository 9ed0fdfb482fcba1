//! Converts the collected lines into the final output: sorted by row, or in another format. Can be
//! interrupted at any time and repeated, because the output is replaced atomically.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::answer_log::LogPlaces;
use crate::journal;
use crate::plan::AnswerTarget;
use crate::row_source::RowFormat;

/// Writes the outputs from the collected lines.
pub(crate) fn write(places: &LogPlaces, target: &AnswerTarget) -> io::Result<()> {
    let (mut answers, mut failed) = (Vec::new(), Vec::new());
    journal::records(&places.journal, |record| {
        let list = if record.in_failed_file { &mut failed } else { &mut answers };
        list.push((record.row, record.offset, record.length));
    })?;
    if target.ordered {
        answers.sort_unstable();
        failed.sort_unstable();
    }
    match target.format {
        #[cfg(feature = "parquet")]
        RowFormat::Parquet => crate::parquet_answers::write(&places.answers, &answers, &target.path)?,
        #[cfg(not(feature = "parquet"))]
        RowFormat::Parquet => return Err(io::Error::other("this program was built without Parquet")),
        RowFormat::JsonLines | RowFormat::Csv => in_order(&places.answers, &answers, &target.path)?,
    }
    match (&places.failed, &target.failed) {
        (Some(from), Some(to)) => in_order(from, &failed, to),
        _ => Ok(()),
    }
}

/// Row, offset and length of a line.
pub(crate) type PlacedLine = (u64, u64, u32);

fn in_order(from: &Path, lines: &[PlacedLine], to: &Path) -> io::Result<()> {
    let draft = draft(to);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&draft)?);
    each_line(from, lines, |line| out.write_all(line))?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(draft, to)
}

/// The temporary name of an output until it is complete.
pub(crate) fn draft(to: &Path) -> PathBuf {
    let mut name = to.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".part");
    to.with_file_name(name)
}

/// Passes each line to `take`, in the given order.
pub(crate) fn each_line(
    from: &Path,
    lines: &[PlacedLine],
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = File::open(from)?;
    let (mut at, mut line) = (0, Vec::new());
    let mut reader = io::BufReader::with_capacity(256 * 1024, &mut file);
    for (_, offset, length) in lines {
        if *offset != at {
            let step = i64::try_from(*offset).unwrap_or(i64::MAX) - i64::try_from(at).unwrap_or(i64::MAX);
            if reader.seek_relative(step).is_err() {
                reader.seek(SeekFrom::Start(*offset))?;
            }
        }
        line.resize(usize::try_from(*length).unwrap_or(0), 0);
        reader.read_exact(&mut line)?;
        at = offset + u64::from(*length);
        take(&line)?;
    }
    Ok(())
}
