//! `cogn store`: copies the whole database from a file to a server or back, and backs up a file. Never overwrites a
//! database.

use std::path::{Path, PathBuf};

use cognitive_contract::Failure;
use cognitive_setup::stores::{existing_store, open_store};
use cognitive_store::{Store, StoreCopy, StoreError, StoreOptions, Verification};
use serde_json::json;

use super::fail;
use crate::figures::count_text;
use crate::printer::{Exit, Printer};
use crate::text_table::TextTable;

/// Options of `store`.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    /// Copy all records, context, reviews and budgets into an empty store, and verify the copy
    Copy(CopyArgs),
    /// Write a snapshot of a store into a new file while it is in use, and verify it
    Backup(BackupArgs),
}

/// Options of `store copy`.
#[derive(Debug, clap::Args)]
struct CopyArgs {
    /// Source store: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; the password is in `COGNITIVE_DB_PASSWORD`
    from: String,
    /// Destination store; it must be empty
    to: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `store backup`.
#[derive(Debug, clap::Args)]
struct BackupArgs {
    /// The new file
    file: PathBuf,
    /// The store, `sqlite:PATH`; by default the one of the configuration
    #[arg(long, value_name = "STORE")]
    from: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Copies a store, or backs it up. `configured` passes the path of the configured store to a command.
pub fn store(
    args: &StoreArgs,
    configured: impl FnOnce(&dyn Fn(&Path) -> Exit) -> Exit,
    printer: &Printer,
) -> Exit {
    match &args.command {
        StoreCommand::Copy(args) => {
            exit_code(copy(args).map(|copy| show(&copy, args.json, printer)), printer)
        }
        StoreCommand::Backup(args) => {
            let back_up = |from: &Path| {
                let done = back_up(args, from).and_then(|found| show_backup(args, &found, printer));
                exit_code(done, printer)
            };
            match args.from.as_deref().map(place) {
                None => configured(&back_up),
                Some(Ok(from)) => back_up(&from),
                Some(Err(failure)) => fail(&failure, printer),
            }
        }
    }
}

fn exit_code(done: Result<(), Failure>, printer: &Printer) -> Exit {
    match done {
        Ok(()) => Exit::Good,
        Err(failure) => fail(&failure, printer),
    }
}

fn back_up(args: &BackupArgs, from: &Path) -> Result<Verification, Failure> {
    let store = existing_store(from, StoreOptions::default()).map_err(|error| store_failure(&error))?;
    let store = store.ok_or_else(|| {
        let from = Store::display_path(from);
        Failure::config_fault(format!("no such store: `{}`", from.display()))
            .suggest("Run a module first, or name a store with `--from sqlite:PATH`")
    })?;
    store.back_up(&args.file).map_err(|error| store_failure(&error))
}

fn show_backup(args: &BackupArgs, found: &Verification, printer: &Printer) -> Result<(), Failure> {
    let file = args.file.display();
    if args.json {
        printer.json(&json!({ "ok": found.is_whole(), "file": args.file, "verification": found }));
    } else {
        let [records, chains] =
            [(found.records, "record"), (found.chains, "chain")].map(|(count, word)| count_text(count, word));
        printer.print_line(format!("{file}: {records} in {chains}"));
    }
    match found.breaches.first() {
        None => Ok(()),
        // The backup is complete, and as broken as its store.
        Some(breach) => Err(Failure::config_fault(format!("the store does not verify: {breach}"))
            .suggest("See `cogn audit verify`")),
    }
}

fn copy(args: &CopyArgs) -> Result<StoreCopy, Failure> {
    let (from, to) = (place(&args.from)?, place(&args.to)?);
    if from == to {
        return Err(Failure::config_fault("cannot copy a store to itself".to_owned())
            .suggest("Name another destination"));
    }
    let source = existing_store(&from, StoreOptions::default()).map_err(|error| store_failure(&error))?;
    let source = source.ok_or_else(|| {
        Failure::config_fault(format!("no such store: `{}`", args.from)).suggest("Name the file of a store")
    })?;
    let target = open_store(&to, StoreOptions::default()).map_err(|error| store_failure(&error))?;
    source.copy_into(&target).map_err(|error| store_failure(&error))
}

fn store_failure(error: &StoreError) -> Failure {
    let failure = Failure::config_fault(error.to_string());
    match error.hint() {
        Some(hint) => failure.suggest(hint),
        None => failure,
    }
}

/// Converts a typed location to the path that is opened.
fn place(text: &str) -> Result<PathBuf, Failure> {
    if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    // `postgres:URL` and the address alone are both accepted.
    let address =
        text.strip_prefix("postgres:").filter(|rest| Store::is_server(rest.as_ref())).unwrap_or(text);
    if Store::is_server(address.as_ref()) {
        return Ok(address.into());
    }
    Err(Failure::config_fault("a store must be `sqlite:PATH` or `postgres://USER@HOST/DATABASE`".to_owned())
        .suggest("Write the kind of store before the path"))
}

fn show(copy: &StoreCopy, as_json: bool, printer: &Printer) {
    if as_json {
        printer.json(&json!(copy));
        return;
    }
    let rows = copy.tables.iter().map(|table| vec![table.name.to_owned(), table.rows.to_string()]);
    printer.table(&TextTable::new(["TABLE", "ROWS"]).right(&[1]).with(rows));
    printer.notice(format!(
        "the copy is complete: {} records in {} chains were verified, and the chains have the same ends",
        copy.verified, copy.chains
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_what_it_is() {
        assert_eq!(place("sqlite:/x/y.db").unwrap(), PathBuf::from("/x/y.db"));
        for text in ["postgres://a@b/c", "postgres:postgres://a@b/c"] {
            assert_eq!(place(text).unwrap(), PathBuf::from("postgres://a@b/c"));
        }
        for odd in ["", "x.db", "sqlite:", "mysql://a@b/c", "postgres:x"] {
            assert!(place(odd).is_err(), "{odd}");
        }
    }
}
