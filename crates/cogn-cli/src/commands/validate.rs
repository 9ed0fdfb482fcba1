//! `cogn validate`: all problems of module folders, each with its position and a hint.

use cognitive_contract::Failure;
use cognitive_library::validate::{Mode, ValidationReport};
use cognitive_library::{Folder, Library, Severity, ValidationSurroundings, validate_with};
use cognitive_testing::GoldenExpectations;
use serde_json::{Value, json};

use super::fail;
use crate::args::modules::ModulesArgs;
use crate::draw;
use crate::printer::{BAD, DOUBT, Exit, GOOD, HEAD, Printer};
use crate::watch;

/// Options of `validate`.
#[derive(Debug, clap::Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    modules: ModulesArgs,
    /// Apply the strict rules of v2.2
    #[arg(long, alias = "strict")]
    v22: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Validate again whenever a file of a module changes, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
}

/// Validates modules; the exit code is bad if any is invalid.
pub fn validate(args: &ValidateArgs, library: &Library, printer: &Printer) -> Exit {
    if args.watch {
        watch::repeat(library, &args.modules.names(library).unwrap_or_default(), printer, || {
            let _ = once(args, library, printer);
        });
        return Exit::Good;
    }
    once(args, library, printer)
}

fn once(args: &ValidateArgs, library: &Library, printer: &Printer) -> Exit {
    let mode = if args.v22 { Mode::Strict } else { Mode::Standard };
    let names = match args.modules.names(library) {
        Ok(names) => names,
        Err(failure) => return fail(&failure, printer),
    };
    let mut reports = Vec::new();
    let mut missing = false;
    for name in &names {
        match library.find_folder(name) {
            Ok(folder) => reports.push(report(library, &folder, mode)),
            Err(failure) => {
                missing = true;
                printer.error(failure.message(), failure.suggestion());
            }
        }
    }
    if args.json {
        let list: Vec<Value> = reports.iter().map(as_json).collect();
        printer.json(&list);
    } else {
        for report in &reports {
            show(report, printer);
        }
    }
    if missing || reports.iter().any(|report| !report.valid()) { Exit::Bad } else { Exit::Good }
}

/// Returns the findings about a module, in the format of `--json`.
pub(super) fn findings(library: &Library, name: &str) -> Result<Value, Failure> {
    Ok(as_json(&report(library, &library.find_folder(name)?, Mode::Standard)))
}

fn report(library: &Library, folder: &Folder, mode: Mode) -> ValidationReport {
    let around = ValidationSurroundings { library: Some(library), expectations: Some(&GoldenExpectations) };
    validate_with(around, folder, mode)
}

fn show(report: &ValidationReport, printer: &Printer) {
    let mode = match report.mode {
        Mode::Standard => "standard",
        Mode::Strict => "strict v2.2",
    };
    let format = report.format.map_or_else(|| "not readable".to_owned(), |format| format.to_string());
    printer.print_line(format!("{HEAD}{}{HEAD:#} ({format}, {mode} validation)", report.name));
    for finding in &report.findings {
        printer.print_line(draw::in_folder(finding, &report.sources, &report.folder));
        printer.print_line("");
    }
    let count = |severity, word: &str| {
        let count = report.count(severity);
        format!("{count} {word}{}", if count == 1 { "" } else { "s" })
    };
    let verdict = match (report.valid(), report.count(Severity::Warning)) {
        (true, 0) => format!("{GOOD}valid{GOOD:#}"),
        (true, _) => format!("{DOUBT}valid{DOUBT:#}, {}", count(Severity::Warning, "warning")),
        (false, 0) => format!("{BAD}invalid{BAD:#}: {}", count(Severity::Error, "error")),
        (false, _) => {
            format!(
                "{BAD}invalid{BAD:#}: {}, {}",
                count(Severity::Error, "error"),
                count(Severity::Warning, "warning")
            )
        }
    };
    printer.print_line(verdict);
}

fn as_json(report: &ValidationReport) -> Value {
    json!({
        "module": report.name,
        "folder": report.folder,
        "format": report.format,
        "mode": match report.mode { Mode::Standard => "standard", Mode::Strict => "strict" },
        "valid": report.valid(),
        "findings": cognitive_setup::module_editor::module_findings(report),
    })
}
