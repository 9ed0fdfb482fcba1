//! `cogn types [MODULE …]`: generates Python, TypeScript or Rust types for input, data and envelope of modules. The
//! output is reproducible, so `--check` can verify in CI that a file is up to date. Writes only the named file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use cognitive_contract::{Failure, Module};
use cognitive_library::{Library, ModuleLoadError, ModuleOrigin, load};
use cognitive_typegen::{TypeLanguage, TypeSet};

use super::fail;
use crate::printer::{Exit, Printer};

/// Options of `types`.
#[derive(Debug, clap::Args)]
pub struct TypesArgs {
    /// Names of modules, or paths of folders; by default all of your own
    modules: Vec<String>,
    /// The language of the types
    #[arg(long, value_enum)]
    lang: LanguageArg,
    /// Without names: include the bundled modules
    #[arg(long, conflicts_with = "modules")]
    bundled: bool,
    /// Write to this file instead of stdout
    #[arg(long, short, visible_alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write nothing; exit 1 if the file of `--output` is not up to date
    #[arg(long, requires = "output")]
    check: bool,
}

/// A language.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LanguageArg {
    /// Python 3.11 and later: `TypedDict`, no dependency
    Python,
    /// Python: classes of pydantic 2
    Pydantic,
    /// TypeScript: interfaces and unions
    #[value(alias = "ts")]
    Typescript,
    /// Rust: structs and enums of serde
    Rust,
}

impl From<LanguageArg> for TypeLanguage {
    fn from(language: LanguageArg) -> Self {
        match language {
            LanguageArg::Python => Self::Python,
            LanguageArg::Pydantic => Self::Pydantic,
            LanguageArg::Typescript => Self::TypeScript,
            LanguageArg::Rust => Self::Rust,
        }
    }
}

/// Prints or writes the types, or compares them with a file.
pub fn types(args: &TypesArgs, library: &Library, printer: &Printer) -> Exit {
    let modules = match modules(args, library) {
        Ok(modules) => modules,
        Err(failure) => return fail(&failure, printer),
    };
    if modules.is_empty() {
        printer.error(
            "no modules of your own",
            Some("Name one, add `--bundled`, or create one with `cogn init NAME`"),
        );
        return Exit::Bad;
    }
    let text = TypeSet::new(&modules).print(args.lang.into());
    let Some(file) = &args.output else {
        printer.piece(&text);
        return Exit::Good;
    };
    if args.check {
        return check(file, &text, printer);
    }
    match cognitive_setup::out_file::write(file, text.as_bytes()) {
        Ok(()) => Exit::Good,
        Err(error) => {
            printer.error(&format!("cannot write `{}`: {error}", file.display()), None);
            Exit::Bad
        }
    }
}

fn modules(args: &TypesArgs, library: &Library) -> Result<Vec<Arc<Module>>, Failure> {
    let found = if args.modules.is_empty() {
        let mine = |origin: ModuleOrigin| args.bundled || origin != ModuleOrigin::Bundled;
        library.list().into_iter().filter(|found| mine(found.origin)).collect()
    } else {
        args.modules.iter().map(|name| library.find(name)).collect::<Result<Vec<_>, Failure>>()?
    };
    found
        .iter()
        .map(|found| load(&found.folder).map(Arc::new).map_err(ModuleLoadError::into_failure))
        .collect()
}

fn check(file: &Path, text: &str, printer: &Printer) -> Exit {
    match fs::read_to_string(file) {
        Ok(there) if there == text => Exit::Good,
        Ok(_) => {
            let message = format!("`{}` is not up to date", file.display());
            printer.error(&message, Some("Run the same command without `--check`, and commit the file"));
            Exit::Bad
        }
        Err(error) => {
            printer.error(
                &format!("cannot read `{}`: {error}", file.display()),
                Some("Run the same command without `--check`"),
            );
            Exit::Bad
        }
    }
}
