//! What becomes of an answer that was paid for: it goes to stdout and to the file that was named, and where both fail it
//! is kept in a file of its own, or shown on stderr. It is never thrown away without a word.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cogn::out_file;

use crate::printer::{Printer, StdoutLoss};

/// Writes an envelope to the file that was named, and sees to it that it is somewhere. `shown` says whether stdout got
/// all of it, if it took everything. The answer is whether everything went where it was to go.
pub(super) fn hand_over(text: &str, file: Option<&Path>, shown: bool, printer: &Printer) -> bool {
    let on_stdout = shown && printer.lost().is_none();
    let written = file.map(|path| (path, out_file::write(path, format!("{text}\n").as_bytes())));
    let (in_file, unwritten) = match &written {
        Some((path, Ok(()))) => (Some(*path), false),
        Some((path, Err(error))) => {
            let hint = on_stdout.then_some("The envelope is on stdout");
            printer.error(&format!("cannot write `{}`: {error}", path.display()), hint);
            (None, true)
        }
        None => (None, false),
    };
    let broken = matches!(printer.lost(), Some(StdoutLoss::Broken(_)));
    if !unwritten && !broken {
        return true;
    }
    match in_file {
        Some(path) => {
            printer.warning(&format!("cannot write the answer to stdout; it is in `{}`", path.display()));
        }
        None if on_stdout => {}
        None => rescue("the envelope", text, printer),
    }
    false
}

/// Keeps a text that found no place, in a file that only its owner reads.
pub(super) fn rescue(what: &str, text: &str, printer: &Printer) {
    match keep(text) {
        Ok(path) => printer.warning(&format!("{what} is saved in `{}`", path.display())),
        Err(error) => {
            printer.warning(&format!("{what} cannot be saved ({error}) and is printed here"));
            printer.json_text_err(text);
        }
    }
}

fn keep(text: &str) -> io::Result<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("cogn-").suffix(".json").tempfile()?;
    writeln!(file, "{text}")?;
    let (_, path) = file.keep().map_err(|kept| kept.error)?;
    Ok(path)
}
