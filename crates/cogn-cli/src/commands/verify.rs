//! `cogn verify MODULE`: the certification report (TEST-005), from recorded replies only.
//! The exit code is bad for a module below bronze.

use std::path::PathBuf;
use std::time::SystemTime;

use cognitive_library::Library;
use cognitive_setup::out_file;
use cognitive_testing::grade;

use super::fail;
use crate::args::candidates;
use crate::printer::{BAD, DOUBT, Exit, GOOD, HEAD, NOTE, Printer};

/// Options of `verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// Also write the report to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints the report, and the missing requirements of the next level.
pub fn verify(args: &VerifyArgs, library: &Library, printer: &Printer) -> Exit {
    let found = match library.find(&args.module) {
        Ok(found) => found,
        Err(failure) => return fail(&failure, printer),
    };
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    let grade = grade(&found.name, &found.folder, library, &format!("{now:.0}"));
    printer.json(&grade.report);
    let (style, word) = grade.level.map_or((BAD, "not certified"), |level| (GOOD, level));
    printer.err(format!("{HEAD}{}{HEAD:#} {style}{word}{style:#}", found.name));
    for lack in &grade.missing {
        printer.err(format!("  {DOUBT}missing{DOUBT:#}: {lack}"));
    }
    if grade.level == Some("silver") {
        printer.err(format!("  {NOTE}hint{NOTE:#}: reviewers grant gold and platinum"));
    }
    if let Some(path) = &args.output
        && let Err(error) = out_file::write(path, format!("{:#}\n", grade.report).as_bytes())
    {
        printer.error(&format!("cannot write `{}`: {error}", path.display()), None);
        return Exit::Bad;
    }
    if grade.level.is_some() { Exit::Good } else { Exit::Bad }
}
