//! `cogn registry build DIR`: creates the files of an index from a folder of packages. Any web server can serve them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cognitive_packages::PackageError;
use cognitive_packages::index::{BuildOptions, StaticIndex, build};
use cognitive_setup::out_file;
use serde_json::json;

use crate::packages::refuse;
use crate::printer::{Exit, FAINT, GOOD, Printer};

/// Options of `registry`.
#[derive(Debug, clap::Args)]
pub struct RegistryArgs {
    #[command(subcommand)]
    command: RegistryCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RegistryCommand {
    /// Write the index of a folder of packages, for any web server
    Build(BuildArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Folder with archives and signatures; its `registry.json` may set the namespace, the author and deprecations
    folder: PathBuf,
    /// Namespace of the packages
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Author of the packages
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// URL that the folder will be served from; without it, addresses are relative
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Writes the files into the folder.
pub fn registry(args: &RegistryArgs, printer: &Printer) -> Exit {
    let RegistryCommand::Build(args) = &args.command;
    let built = match write_index(args) {
        Ok(built) => built,
        Err(error) => return refuse(&error, printer),
    };
    if args.json {
        printer.json(&json!({ "packages": built.packages, "versions": built.versions, "files": built.files.keys().collect::<Vec<_>>() }));
    } else {
        let counted =
            |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        printer.err(format!(
            "{GOOD}written{GOOD:#} {}, {} {FAINT}use it with --registry URL{FAINT:#}",
            counted(built.packages, "package"),
            counted(built.versions, "version"),
        ));
        printer.print_line(args.folder.join("index.json").display().to_string());
    }
    Exit::Good
}

fn write_index(args: &BuildArgs) -> Result<StaticIndex, PackageError> {
    let mut options = options_of(&args.folder)?;
    let given = |option: &Option<String>, before: String| option.clone().unwrap_or(before);
    options.namespace = given(&args.namespace, options.namespace);
    options.author = given(&args.author, options.author);
    options.url = args.url.clone().or(options.url);
    for (value, option) in [(&options.namespace, "--namespace"), (&options.author, "--author")] {
        if value.is_empty() {
            return Err(PackageError::new(format!("the index needs the option: `{option}`"))
                .hint("Set it here, or in `registry.json` in the folder"));
        }
    }
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    let built = build(&args.folder, &options, &format!("{now:.0}"))?;
    // `index.json` is last, because it refers to all others.
    let (first, last): (Vec<_>, Vec<_>) = built.files.iter().partition(|(path, _)| *path != "index.json");
    for (path, bytes) in first.into_iter().chain(last) {
        let path = args.folder.join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| out_file::write(&path, bytes)).map_err(PackageError::io("write", &path))?;
    }
    Ok(built)
}

fn options_of(folder: &Path) -> Result<BuildOptions, PackageError> {
    let path = folder.join("registry.json");
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| PackageError::new(format!("`{}` cannot be read: {error}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BuildOptions::default()),
        Err(error) => Err(PackageError::io("read", &path)(error)),
    }
}
