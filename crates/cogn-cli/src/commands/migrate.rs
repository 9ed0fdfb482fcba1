//! `cogn migrate`: converts older formats to v2.2, each folder completely or not at all. When all modules are migrated,
//! linked folders outside the module folder are skipped: they have another owner, or are migrated at their own path.

use std::path::{Path, PathBuf};

use cognitive_library::migrate::{
    ApplyOptions, Backup, FileChange, Links, MigrateError, MigrationPlan, apply, plan,
};
use cognitive_library::{Folder, Library, ModuleOrigin};
use serde_json::{Value, json};

use super::fail;
use crate::args::candidates;
use crate::printer::{BAD, DOUBT, Exit, FAINT, GOOD, HEAD, Printer};

/// Options of `migrate`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a user can type")]
pub struct MigrateArgs {
    /// Name of an installed module, or path of a folder
    #[arg(required_unless_present = "all", add = candidates::modules())]
    module: Option<String>,
    /// Migrate every module of the project and the user
    #[arg(long, short_alias = 'a', conflicts_with = "module")]
    all: bool,
    /// Show what would be done without changing anything
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do not keep a backup of the old folder
    #[arg(long)]
    no_backup: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result for one module.
struct MigrationOutcome {
    name: String,
    result: Result<MigrationDone, MigrateError>,
}

enum MigrationDone {
    Planned {
        plan: MigrationPlan,
        backup: Option<PathBuf>,
    },
    /// Skipped: it is a link that leads out of the module folder, to this path.
    LeftAlone(PathBuf),
}

/// Migrates modules; a failed module does not stop the others.
pub fn migrate(args: &MigrateArgs, library: &Library, printer: &Printer) -> Exit {
    let outcomes: Vec<MigrationOutcome> = match &args.module {
        None => {
            let folders = all_folders(library).into_iter();
            folders
                .map(|(name, folder)| MigrationOutcome { name, result: one_of_all(args, &folder) })
                .collect()
        }
        Some(name) => match library.find(name) {
            Ok(found) => {
                vec![MigrationOutcome {
                    name: found.name,
                    result: migrate_one(args, &found.folder, Links::Follow),
                }]
            }
            Err(failure) => return fail(&failure, printer),
        },
    };
    if args.json {
        let list: Vec<Value> = outcomes.iter().map(|outcome| as_json(outcome, args.dry_run)).collect();
        printer.json(&list);
    } else {
        for outcome in &outcomes {
            show(outcome, args.dry_run, printer);
        }
    }
    if outcomes.iter().all(|outcome| outcome.result.is_ok()) { Exit::Good } else { Exit::Bad }
}

/// Returns the modules on disk. Bundled modules are current and read-only.
fn all_folders(library: &Library) -> Vec<(String, Folder)> {
    let found = library.list().into_iter().filter(|found| found.origin != ModuleOrigin::Bundled);
    found.map(|found| (found.name, found.folder)).collect()
}

/// Migrates one of all modules: only if its real path is inside the module folder.
fn one_of_all(args: &MigrateArgs, folder: &Folder) -> Result<MigrationDone, MigrateError> {
    let real = |path: &Path| path.canonicalize().ok();
    let Some((path, place)) = folder.path().and_then(|path| Some((real(path)?, real(path.parent()?)?)))
    else {
        return migrate_one(args, folder, Links::Refuse);
    };
    if !path.starts_with(&place) {
        return Ok(MigrationDone::LeftAlone(path));
    }
    migrate_one(args, &Folder::Disk(path), Links::Refuse)
}

fn migrate_one(args: &MigrateArgs, folder: &Folder, links: Links) -> Result<MigrationDone, MigrateError> {
    let plan = plan(folder)?;
    let backup = if args.no_backup { Backup::Discard } else { Backup::Keep };
    let path: Option<&Path> = folder.path().filter(|_| !args.dry_run && !plan.is_empty());
    let backup = match path {
        Some(path) => apply(path, &plan, ApplyOptions { links, ..ApplyOptions::now(backup) })?.backup,
        None => None,
    };
    Ok(MigrationDone::Planned { plan, backup })
}

fn show(outcome: &MigrationOutcome, dry_run: bool, printer: &Printer) {
    let name = &outcome.name;
    match &outcome.result {
        Err(error) => {
            printer.print_line(format!("{HEAD}{name}{HEAD:#}: {BAD}not migrated{BAD:#}"));
            printer.error(&error.to_string(), error.hint().as_deref());
        }
        Ok(MigrationDone::LeftAlone(path)) => {
            printer.print_line(format!(
                "{HEAD}{name}{HEAD:#}: {DOUBT}skipped{DOUBT:#}, it is in another folder"
            ));
            let here = path.display();
            printer
                .warning(&format!("`{name}` is a link to `{here}`; `cogn migrate {here}` migrates it there"));
        }
        Ok(MigrationDone::Planned { plan, .. }) if plan.is_empty() => {
            printer.print_line(format!("{HEAD}{name}{HEAD:#}: already {}, nothing to do", plan.from));
        }
        Ok(MigrationDone::Planned { plan, backup }) => {
            let verb = if dry_run { "would migrate" } else { "migrated" };
            printer.print_line(format!("{HEAD}{name}{HEAD:#}: {GOOD}{verb}{GOOD:#} {} → v2.2", plan.from));
            for change in &plan.changes {
                let mark = match change.kind {
                    FileChange::Created => '+',
                    FileChange::Updated => '~',
                };
                printer.print_line(format!("  {mark} {}: {}", change.file, change.what));
            }
            if let Some(backup) = backup {
                printer.print_line(format!("  {FAINT}backup: {}{FAINT:#}", backup.display()));
            }
        }
    }
}

fn as_json(outcome: &MigrationOutcome, dry_run: bool) -> Value {
    match &outcome.result {
        Err(error) => json!({
            "module": outcome.name, "ok": false, "message": error.to_string(), "hint": error.hint(),
        }),
        Ok(MigrationDone::LeftAlone(path)) => json!({
            "module": outcome.name, "ok": true, "dry_run": dry_run, "changed": false, "left_alone": path,
        }),
        Ok(MigrationDone::Planned { plan, backup }) => json!({
            "module": outcome.name, "ok": true, "from": plan.from, "dry_run": dry_run,
            "changed": !dry_run && !plan.is_empty(), "changes": plan.changes, "backup": backup,
        }),
    }
}
