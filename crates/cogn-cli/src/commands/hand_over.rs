//! Delivers an answer that was paid for: to stdout and to the named file. If both fail, it is saved in a separate file,
//! or else printed on stderr. It is never silently discarded.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cognitive_setup::out_file;

use crate::printer::{Printer, StdoutLoss};

/// Writes an envelope to the named file and saves it elsewhere if it was not delivered. `shown` is true if stdout was
/// to receive the whole envelope. Returns whether every delivery succeeded.
pub(super) fn hand_over(text: &str, file: Option<&Path>, shown: bool, printer: &Printer) -> bool {
    let on_stdout = shown && printer.stdout_loss().is_none();
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
    let broken = matches!(printer.stdout_loss(), Some(StdoutLoss::Broken(_)));
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

/// Saves an undelivered text in a file that only its owner can read.
pub(super) fn rescue(what: &str, text: &str, printer: &Printer) {
    match keep(text) {
        Ok(path) => printer.warning(&format!("{what} was saved to `{}`", path.display())),
        Err(error) => {
            printer.warning(&format!("cannot save {what} ({error}); printed here"));
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
