//! `cogn trust`: shows the settings in a folder's `cognitive.yaml` that could redirect keys, data or records, and asks
//! the user to trust them. Records the hash of the displayed file; a later change makes it untrusted again.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use cognitive_contract::Failure;
use cognitive_setup::layers::{Layers, PROJECT_FILE, ProjectFile, Standing, Vouching};
use cognitive_setup::trust::{HeldBack, Ledger};
use cognitive_setup::wiring;
use serde::Serialize;
use serde_json::Value;

use super::fail;
use crate::figures::local_time;
use crate::printer::{DOUBT, Exit, FAINT, GOOD, HEAD, NOTE, Printer};
use crate::text_table::TextTable;

/// Options of `trust`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed")]
pub struct TrustArgs {
    /// Folder of the file; by default that of the current project
    folder: Option<PathBuf>,
    /// List the folders whose files are trusted
    #[arg(long, conflicts_with_all = ["folder", "yes", "remove"])]
    list: bool,
    /// Stop trusting the file of the folder
    #[arg(long, conflicts_with = "yes")]
    remove: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; never asks, so without `--yes` the file is only shown
    #[arg(long)]
    json: bool,
}

impl TrustArgs {
    fn folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(wiring::project_root)
    }
}

/// The state of a file.
#[derive(Debug, Serialize)]
struct TrustReport<'a> {
    file: &'a Path,
    sha256: &'a str,
    trusted: bool,
    /// The settings that need trust.
    settings: &'a [HeldBack],
}

/// One line of the list.
#[derive(Debug, Serialize)]
struct TrustLine<'a> {
    folder: &'a str,
    sha256: &'a str,
    since: &'a str,
    /// `trusted`, or the reason why the record is stale.
    state: &'static str,
}

/// Runs the command; exit code 1 if the file is not trusted at the end.
pub fn trust(args: &TrustArgs, printer: &Printer) -> Exit {
    let done = match (args.list, args.remove) {
        (true, _) => list(args, printer),
        (_, true) => remove(args, printer),
        (false, false) => show_and_ask(args, printer),
    };
    done.unwrap_or_else(|failure| fail(&failure, printer))
}

fn show_and_ask(args: &TrustArgs, printer: &Printer) -> Result<Exit, Failure> {
    let home = home()?;
    let project = read(&args.folder(), &home)?;
    let before = project.standing.is_good();
    let agreed = !before && confirm(args, &project, printer)?;
    if agreed {
        let mut ledger = Ledger::read(&home).map_err(unusable)?;
        ledger.add(&project.folder, &project.sha256).map_err(unusable)?;
        ledger.write(&home).map_err(unusable)?;
    }
    let trusted = before || agreed;
    if args.json {
        let ProjectFile { path, sha256, delicate, .. } = &project;
        printer.json(&TrustReport { file: path, sha256, trusted, settings: delicate });
    } else {
        say(&project, agreed, printer);
    }
    Ok(if trusted { Exit::Good } else { Exit::Bad })
}

/// Returns whether the user trusts the file. Its settings were printed before.
fn confirm(args: &TrustArgs, project: &ProjectFile, printer: &Printer) -> Result<bool, Failure> {
    if args.json {
        return Ok(args.yes);
    }
    show(project, printer);
    if args.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        let message = format!("cannot ask for confirmation without a terminal: `{}`", project.path.display());
        return Err(Failure::config_fault(message)
            .suggest("Read the file, then run `cogn trust --yes`; `cogn trust --json` shows what it sets"));
    }
    let _gone_reader_is_fine = write!(anstream::stderr(), "{DOUBT}Trust this file?{DOUBT:#} [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn show(project: &ProjectFile, printer: &Printer) {
    printer.err(format!("{HEAD}{}{HEAD:#} has settings that need your trust:\n", project.path.display()));
    let rows = project.delicate.iter().map(|held| {
        let (setting, because) = (&held.setting, held.because);
        vec![format!("{NOTE}{setting}{NOTE:#}"), text(&held.value), format!("{FAINT}{because}{FAINT:#}")]
    });
    printer.table_err(&TextTable::without_headings(3).indent(2).with(rows));
    printer.err(format!("\n{FAINT}sha256 {}{FAINT:#}", project.sha256));
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn say(project: &ProjectFile, agreed: bool, printer: &Printer) {
    let file = project.path.display();
    match &project.standing {
        _ if agreed => {
            printer.err(format!("{GOOD}trusted{GOOD:#}: `{file}`, until it changes"));
        }
        Standing::NotNeeded => printer.err(format!("`{file}`: it sets nothing that needs trust")),
        Standing::Recorded => printer.err(format!("`{file}` is trusted already")),
        _ => printer.err(format!("{DOUBT}not trusted{DOUBT:#}: `{file}`")),
    }
}

fn list(args: &TrustArgs, printer: &Printer) -> Result<Exit, Failure> {
    let home = home()?;
    let ledger = Ledger::read(&home).map_err(unusable)?;
    let rows: Vec<TrustLine<'_>> = ledger
        .all()
        .iter()
        .map(|known| {
            let state = match read(Path::new(&known.folder), &home) {
                Ok(project) if project.sha256 == known.sha256 => "trusted",
                Ok(_) => "changed since",
                Err(_) => "the file is missing",
            };
            TrustLine { folder: &known.folder, sha256: &known.sha256, since: &known.since, state }
        })
        .collect();
    if args.json {
        printer.json(&rows);
        return Ok(Exit::Good);
    }
    if rows.is_empty() {
        printer.err("no file is trusted");
        return Ok(Exit::Good);
    }
    let lines = rows.iter().map(|row| {
        let style = if row.state == "trusted" { GOOD } else { DOUBT };
        let state = format!("{style}{}{style:#}", row.state);
        vec![format!("{NOTE}{}{NOTE:#}", row.folder), local_time(row.since), state]
    });
    printer.table(&TextTable::new(["FOLDER", "SINCE", "STATE"]).prose(0).with(lines));
    Ok(Exit::Good)
}

fn remove(args: &TrustArgs, printer: &Printer) -> Result<Exit, Failure> {
    let home = home()?;
    // A deleted folder can be named as the list shows it.
    let folder = args.folder();
    let folder = folder.canonicalize().unwrap_or(folder);
    let name = folder.to_string_lossy();
    let mut ledger = Ledger::read(&home).map_err(unusable)?;
    let was_there = ledger.remove(&name);
    if was_there {
        ledger.write(&home).map_err(unusable)?;
    }
    if args.json {
        printer.json(&serde_json::json!({ "folder": name, "removed": was_there }));
    } else if was_there {
        printer.err(format!("no longer trusted: `{name}`"));
    } else {
        printer.error(&format!("no file is trusted in: `{name}`"), Some("`cogn trust --list` shows them"));
    }
    Ok(if was_there { Exit::Good } else { Exit::Bad })
}

/// Reads the file of a folder; only the recorded trust counts.
fn read(folder: &Path, home: &Path) -> Result<ProjectFile, Failure> {
    let (layers, problems) = Layers::read(folder, Some(home), &Vouching::default(), &wiring::environment);
    problems.into_iter().next().map_or(Ok(()), |problem| Err(unusable(problem)))?;
    layers.project.ok_or_else(|| {
        Failure::config_fault(format!("no `{PROJECT_FILE}` in: `{}`", folder.display()))
            .suggest("Your own settings are in `~/.cognitive/config.yaml` and need no trust")
    })
}

fn home() -> Result<PathBuf, Failure> {
    wiring::home().ok_or_else(|| {
        Failure::config_fault("cannot record trust in the home folder: `HOME` is not set")
            .suggest("Set `HOME`, or use `--trust-project` for single commands")
    })
}

fn unusable(reason: String) -> Failure {
    Failure::config_fault(reason).suggest("Correct or remove the file, and run the command again")
}
