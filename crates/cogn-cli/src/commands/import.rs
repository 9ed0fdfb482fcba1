//! `cogn import [FORM] PATH`: converts a prompt of another tool into a module, with a list of all differences. The
//! module must pass its own test before it is written; existing modules are never replaced.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_import::{ImportForm, ImportLoss, ImportOptions, ImportedModule, LossKind, import as read};
use cognitive_library::init::write_new_folder;
use cognitive_library::{Finding, Folder, Library, Mode, Severity, ValidationSurroundings, validate_with};
use cognitive_testing::GoldenExpectations;
use cognitive_testing::golden::{self, GoldenOptions, TestedFolder};
use serde_json::{Map, Value, json};

use super::fail;
use crate::printer::{BAD, DOUBT, Exit, FAINT, GOOD, HEAD, NOTE, Printer, plain};

/// Options of `import`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub struct ImportArgs {
    /// The format; by default detected from the path
    #[arg(value_enum)]
    form: Option<FormName>,
    #[arg(value_hint = clap::ValueHint::AnyPath, help = "A file, or the folder of a skill, BAML or TensorZero")]
    path: PathBuf,
    /// The function to import, where the file has several
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Name of the module; by default the name in the file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Import a skill without its scripts
    #[arg(long)]
    without_scripts: bool,
    /// Parent folder of the new module
    #[arg(long, short, value_name = "DIR", default_value = "cognitive/modules")]
    output: PathBuf,
    /// Show what would be written; writes nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The name of a format on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// An Agent Skill: a folder with `SKILL.md`
    Skill,
    /// A file `*.prompty`
    Prompty,
    /// A file `*.prompt`
    Dotprompt,
    /// A function in `*.baml`
    Baml,
    /// A function in `tensorzero.toml`
    Tensorzero,
}

impl FormName {
    fn form(self) -> ImportForm {
        match self {
            Self::Skill => ImportForm::Skill,
            Self::Prompty => ImportForm::Prompty,
            Self::Dotprompt => ImportForm::Dotprompt,
            Self::Baml => ImportForm::Baml,
            Self::Tensorzero => ImportForm::TensorZero,
        }
    }
}

/// Imports the prompt and prints the differences.
pub fn import(args: &ImportArgs, library: &Library, printer: &Printer) -> Exit {
    match import_module(args, library) {
        Ok((module, path)) => {
            if args.json {
                printer.json(&as_json(args, &module, &path));
            } else {
                show(args, &module, &path, printer);
            }
            Exit::Good
        }
        Err(failure) if args.json => {
            printer.json(&json!({ "ok": false, "message": failure.message(), "hint": failure.suggestion() }));
            Exit::Bad
        }
        Err(failure) => fail(&failure, printer),
    }
}

/// Returns the module, and its current or future path.
fn import_module(args: &ImportArgs, library: &Library) -> Result<(ImportedModule, PathBuf), Failure> {
    let form = args.form.map_or_else(|| ImportForm::guess(&args.path), |name| Ok(name.form()))?;
    let options = ImportOptions {
        name: args.name.clone(),
        function: args.function.clone(),
        without_scripts: args.without_scripts,
    };
    let module = read(&args.path, form, &options)?;
    if !module.restored {
        test_module(&module, library)?;
    }
    if args.dry_run {
        let path = args.output.join(&module.name);
        return Ok((module, path));
    }
    let path = write_new_folder(&args.output, &module.name, &module.files)
        .map_err(|error| Failure::new(ErrorCode::InvalidInput, error.to_string()).suggest(error.hint()))?;
    Ok((module, path))
}

/// Refuses a module that `cogn validate` or `cogn test` would refuse.
fn test_module(module: &ImportedModule, library: &Library) -> Result<(), Failure> {
    let folder = Folder::memory(&module.name, module.files.clone());
    let around = ValidationSurroundings { library: Some(library), expectations: Some(&GoldenExpectations) };
    let report = validate_with(around, &folder, Mode::Standard);
    let refused = |why: String| {
        let message = format!("the imported module is not valid: {why}");
        Failure::new(ErrorCode::InvalidInput, message).suggest("Simplify this part of the imported file")
    };
    if let Some(finding) = report.findings.iter().find(|finding| finding.severity == Severity::Error) {
        return Err(refused(Finding::summary(finding)));
    }
    if !module.files.keys().any(|path| path.ends_with(".input.json")) {
        return Ok(());
    }
    let subject = TestedFolder { name: module.name.clone(), folder };
    let report = golden::run_recorded(&[subject], &GoldenOptions::default())?;
    if report.holds() { Ok(()) } else { Err(refused("it does not pass its own test".to_owned())) }
}

fn as_json(args: &ImportArgs, module: &ImportedModule, path: &Path) -> Value {
    let mut value = module.to_value();
    if let Value::Object(members) = &mut value {
        members.insert("ok".to_owned(), Value::Bool(true));
        members.insert("dry_run".to_owned(), Value::Bool(args.dry_run));
        members.insert("path".to_owned(), json!(path));
        if args.dry_run {
            let texts = module.files.iter();
            let texts: Map<String, Value> = texts
                .map(|(path, bytes)| (path.clone(), Value::from(String::from_utf8_lossy(bytes))))
                .collect();
            members.insert("contents".to_owned(), Value::Object(texts));
        } else {
            members.insert("next".to_owned(), json!(next(args, module, path)));
        }
    }
    value
}

fn show(args: &ImportArgs, module: &ImportedModule, path: &Path, printer: &Printer) {
    if args.dry_run {
        for (file, bytes) in &module.files {
            printer.print_line(format!("{HEAD}{}{HEAD:#}", path.join(file).display()));
            match std::str::from_utf8(bytes) {
                Ok(text) => text.lines().for_each(|line| printer.print_line(format!("  {}", plain(line)))),
                Err(_) => printer.print_line(format!("  {FAINT}{} bytes{FAINT:#}", bytes.len())),
            }
        }
    }
    let verb = match (args.dry_run, module.restored) {
        (true, _) => "would import",
        (false, true) => "restored",
        (false, false) => "imported",
    };
    printer.err(format!("{GOOD}{verb}{GOOD:#} {} ({})", path.display(), module.form.word()));
    for ImportLoss { kind, what, place, why } in &module.losses {
        let look = match kind {
            LossKind::Lost => BAD,
            LossKind::Changed => DOUBT,
            LossKind::MadeUp => NOTE,
        };
        printer.err(format!("  {look}{:<8}{look:#} {what} {FAINT}({place}): {why}{FAINT:#}", kind.word()));
    }
    if !args.dry_run {
        printer.err("next:");
        for command in next(args, module, path) {
            printer.err(format!("  {NOTE}{command}{NOTE:#}"));
        }
    }
}

/// Returns the next steps; each command works as printed.
fn next(args: &ImportArgs, module: &ImportedModule, path: &Path) -> [String; 2] {
    let usual =
        args.output == Path::new("cognitive/modules") || args.output == Path::new(".cognitive/modules");
    let shown = path.display().to_string();
    let by = match usual {
        true => module.name.clone(),
        false if shown.contains(std::path::MAIN_SEPARATOR) => shown,
        false => format!("./{shown}"),
    };
    [format!("cogn test {by}"), format!("cogn validate {by}")]
}
