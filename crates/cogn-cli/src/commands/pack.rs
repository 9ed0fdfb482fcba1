//! `cogn pack MODULE`: packs a module into one file, `NAME-VERSION.tar.gz`. The output is reproducible: the same folder
//! gives the same bytes. Refuses a module that could not be installed.

use std::path::PathBuf;

use cognitive_library::Library;
use cognitive_packages::{Package, PackageError};
use cognitive_setup::out_file;
use serde_json::json;

use crate::args::candidates;
use crate::packages::refuse;
use crate::printer::{Exit, FAINT, GOOD, HEAD, Printer};

/// Options of `pack`.
#[derive(Debug, clap::Args)]
pub struct PackArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// Folder for the archive
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Writes the archive and prints its path.
pub fn pack(args: &PackArgs, library: &Library, printer: &Printer) -> Exit {
    let packed = package_of(&args.module, library).and_then(|package| {
        let path = args.output.join(package.file_name());
        std::fs::create_dir_all(&args.output)
            .and_then(|()| out_file::write(&path, &package.archive))
            .map_err(PackageError::io("write", &path))?;
        Ok((package, path))
    });
    let (package, path) = match packed {
        Ok(packed) => packed,
        Err(error) => return refuse(&error, printer),
    };
    if args.json {
        printer.json(&json!({
            "name": package.name(), "version": package.version(), "file": path, "sha256": package.sha256,
            "bytes": package.archive.len(), "files": package.files.keys().collect::<Vec<_>>(),
        }));
        return Exit::Good;
    }
    printer.err(format!(
        "{GOOD}packed{GOOD:#} {HEAD}{}{HEAD:#} {} {FAINT}sha256:{}{FAINT:#}",
        package.name(),
        package.version(),
        package.sha256
    ));
    printer.print_line(path.display().to_string());
    Exit::Good
}

/// Creates the package of a module by name or path.
pub(super) fn package_of(module: &str, library: &Library) -> Result<Package, PackageError> {
    let found = library.find_folder(module)?;
    Package::from_folder(&found)
}
