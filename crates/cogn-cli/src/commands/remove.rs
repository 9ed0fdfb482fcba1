//! `cogn remove NAME`: removes packages that `cogn add` installed. Modules outside the lock file, and modules that were
//! edited by hand, are kept.

use cognitive_packages::Overwrite;
use serde_json::json;

use crate::args::candidates;
use crate::packages::{FolderArgs, refuse};
use crate::printer::{Exit, GOOD, HEAD, Printer};

/// Options of `remove`.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Names of installed packages
    #[arg(required = true, add = candidates::modules())]
    name: Vec<String>,
    #[command(flatten)]
    folder: FolderArgs,
    /// Remove packages even if they have local changes
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Removes the packages, one after the other.
pub fn remove(args: &RemoveArgs, printer: &Printer) -> Exit {
    let overwrite = if args.force { Overwrite::Anything } else { Overwrite::Intact };
    let folder = match args.folder.folder() {
        Ok((folder, _)) => folder,
        Err(error) => return refuse(&error, printer),
    };
    let mut removed = Vec::new();
    for name in &args.name {
        match folder.remove(name, overwrite) {
            Ok(known) => {
                if !args.json {
                    printer.err(format!("{GOOD}removed{GOOD:#} {HEAD}{name}{HEAD:#} {}", known.version));
                }
                removed.push(json!({ "name": name, "version": known.version }));
            }
            Err(error) => return refuse(&error, printer),
        }
    }
    if args.json {
        printer.json(&json!({ "removed": removed }));
    }
    Exit::Good
}
