//! `cogn context`: the context that is stored between runs, for one user at a time. Never reads the context of another
//! user, and never shows expired entries.

use std::path::Path;
use std::time::SystemTime;

use cognitive_contract::context::{ContextEntry, ContextFilter, ContextScope, Key, Owner, Ttl};
use cognitive_contract::ports::ContextStore;
use cognitive_contract::text::cut;
use cognitive_setup::stores::{existing_store, open_store};
use cognitive_store::{Store, StoreOptions, timestamp};
use serde_json::{Value, json};

use crate::args::input::read_text;
use crate::figures::local_time;
use crate::printer::{Exit, FAINT, NOTE, Printer};
use crate::text_table::TextTable;

/// Options of `context`.
#[derive(Debug, clap::Args)]
pub struct ContextArgs {
    #[command(subcommand)]
    command: ContextCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ContextCommand {
    /// List the entries, the newest first
    List(ContextListArgs),
    /// Print the value of an entry, the newest of its type unless a key is given
    Get(GetArgs),
    /// Store a value
    Set(SetArgs),
    /// Remove an entry, or all of a type
    Rm(RmArgs),
    /// Remove the expired entries of all users
    Gc(GcArgs),
}

/// The owner of the context.
#[derive(Debug, Default, clap::Args)]
struct ContextOwner {
    /// The user who owns the context; none by default
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The tenant of the user, if tenants are used
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// The session that sees the context
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ContextListArgs {
    /// Only this type, such as `session_state`
    #[arg(value_name = "TYPE")]
    kind: Option<String>,
    #[command(flatten)]
    whose: ContextOwner,
}

#[derive(Debug, clap::Args)]
struct GetArgs {
    /// The type, such as `session_state`
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The key, as `list` shows it
    key: Option<String>,
    #[command(flatten)]
    whose: ContextOwner,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The type, such as `user_profile`
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The value; JSON if it parses as JSON; `-` reads stdin
    value: String,
    /// The key; by default made of session and type
    #[arg(long)]
    key: Option<String>,
    /// Lifetime in seconds; -1 never expires
    #[arg(long, value_name = "SECONDS", default_value = "-1", value_parser = lasting, allow_negative_numbers = true)]
    ttl: Ttl,
    #[command(flatten)]
    whose: ContextOwner,
}

#[derive(Debug, clap::Args)]
struct RmArgs {
    /// The type, such as `session_state`
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The key, as `list` shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    key: Option<String>,
    /// Remove every entry of the type
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    whose: ContextOwner,
}

#[derive(Debug, clap::Args)]
struct GcArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a lifetime that outlasts the command.
fn lasting(text: &str) -> Result<Ttl, String> {
    let ttl = text.parse().ok().and_then(Ttl::parse).filter(|ttl| *ttl != Ttl::Request);
    ttl.ok_or_else(|| "expected a number of seconds above 0, or -1".to_owned())
}

impl ContextOwner {
    fn owner(&self) -> Owner {
        Owner::new(self.tenant.as_deref(), self.user.as_deref())
    }

    /// Without a session, the filter matches all context of the user, in every session.
    fn filter<'a>(&'a self, kind: Option<&'a str>) -> ContextFilter<'a> {
        let session = self.session.as_deref();
        ContextFilter {
            kind,
            from: session.map(|session| ContextScope { session: Some(session), input_hash: None }),
        }
    }
}

/// Runs a command on the context in the store at `path`, which may be missing.
pub fn context(args: &ContextArgs, path: &Path, printer: &Printer) -> Exit {
    let now = SystemTime::now();
    let done = open(path, &args.command).and_then(|store| match &args.command {
        ContextCommand::List(args) => list(args, &store, now, printer),
        ContextCommand::Get(args) => get(args, &store, now, printer),
        ContextCommand::Set(args) => set(args, &store, now, printer),
        ContextCommand::Rm(args) => rm(args, &store, now, printer),
        ContextCommand::Gc(args) => gc(args, &store, now, printer),
    });
    done.unwrap_or_else(|ContextTrouble { message, hint }| {
        printer.error(&message, hint.as_deref());
        Exit::Bad
    })
}

/// A failed command, with a hint.
#[derive(Debug)]
struct ContextTrouble {
    message: String,
    hint: Option<String>,
}

impl From<String> for ContextTrouble {
    fn from(message: String) -> Self {
        Self { message, hint: None }
    }
}

/// Only `set` creates a store; for other commands a missing store counts as empty.
fn open(path: &Path, command: &ContextCommand) -> Result<Store, ContextTrouble> {
    let opened = match command {
        ContextCommand::Set(_) => open_store(path, StoreOptions::default()),
        _ => existing_store(path, StoreOptions::default())
            .and_then(|store| store.map_or_else(Store::in_memory, Ok)),
    };
    opened
        .map_err(|error| ContextTrouble { message: error.to_string(), hint: error.hint().map(str::to_owned) })
}

/// Returns an entry as JSON.
fn entry_json(entry: &ContextEntry) -> Value {
    json!({
        "type": entry.kind,
        "key": entry.key.text,
        "session": entry.key.session,
        "module": Some(&entry.module).filter(|module| !module.is_empty()),
        "ttl": entry.ttl.seconds(),
        "created": timestamp(entry.created),
        "ends": entry.ends().map(timestamp),
        "value": entry.value,
    })
}

fn list(
    args: &ContextListArgs,
    store: &dyn ContextStore,
    now: SystemTime,
    printer: &Printer,
) -> Result<Exit, ContextTrouble> {
    let entries = store.list(&args.whose.owner(), args.whose.filter(args.kind.as_deref()), now)?;
    if args.whose.json {
        printer.json(&entries.iter().map(entry_json).collect::<Vec<_>>());
    } else if entries.is_empty() {
        printer.err("no context is stored");
    } else {
        let table = TextTable::new(["TYPE", "KEY", "SESSION", "MODULE", "ENDS", "BYTES"]);
        let table = table.right(&[5]).prose(1).optional_columns(&[3, 2]);
        printer.table(&table.with(entries.iter().map(cells)));
    }
    Ok(Exit::Good)
}

fn cells(entry: &ContextEntry) -> Vec<String> {
    let short = |text: &str| if text.is_empty() { "-".to_owned() } else { cut(text, 60).replace('\n', " ") };
    let ends = entry.ends().map(timestamp);
    let ends = ends.map_or("never".to_owned(), |ends| local_time(&ends));
    vec![
        format!("{NOTE}{}{NOTE:#}", short(&entry.kind)),
        short(&entry.key.text),
        short(entry.key.session.as_deref().unwrap_or_default()),
        short(&entry.module),
        ends,
        format!("{FAINT}{}{FAINT:#}", entry.value.to_string().len()),
    ]
}

fn get(
    args: &GetArgs,
    store: &dyn ContextStore,
    now: SystemTime,
    printer: &Printer,
) -> Result<Exit, ContextTrouble> {
    let owner = args.whose.owner();
    let found = match &args.key {
        Some(key) => store.get(&owner, &args.kind, key, now)?,
        None => store.list(&owner, args.whose.filter(Some(&args.kind)), now)?.into_iter().next(),
    };
    let entry = found.ok_or_else(|| missing(&args.kind))?;
    if args.whose.json {
        printer.json(&entry_json(&entry));
    } else {
        printer.json(&entry.value);
    }
    Ok(Exit::Good)
}

fn missing(kind: &str) -> ContextTrouble {
    let message = format!("no such context entry for this user: `{}`", cut(kind, 60));
    ContextTrouble {
        message,
        hint: Some("`cogn context list` lists the entries; `--user` selects the user".to_owned()),
    }
}

fn set(
    args: &SetArgs,
    store: &dyn ContextStore,
    now: SystemTime,
    printer: &Printer,
) -> Result<Exit, ContextTrouble> {
    let text = match args.value.as_str() {
        "-" => read_text(None).map_err(|failure| ContextTrouble::from(failure.message().to_owned()))?,
        text => text.to_owned(),
    };
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let session = args.whose.session.clone();
    let made = || [session.as_deref(), Some(&args.kind)].into_iter().flatten().collect::<Vec<_>>().join(":");
    let mut key = Key::plain(&args.key.clone().unwrap_or_else(made));
    key.session = session;
    let entry = ContextEntry::new(&args.kind, key, value, args.ttl, now);
    store.put(&args.whose.owner(), &entry, now)?;
    if args.whose.json {
        printer.json(&entry_json(&entry));
    } else {
        printer.err(format!("stored as `{}`", entry.key.text));
    }
    Ok(Exit::Good)
}

fn rm(
    args: &RmArgs,
    store: &dyn ContextStore,
    now: SystemTime,
    printer: &Printer,
) -> Result<Exit, ContextTrouble> {
    let owner = args.whose.owner();
    let keys = match &args.key {
        Some(key) => vec![key.clone()],
        None => {
            let entries = store.list(&owner, args.whose.filter(Some(&args.kind)), now)?;
            entries.into_iter().map(|entry| entry.key.text).collect()
        }
    };
    let mut removed = 0;
    for key in &keys {
        removed += u64::from(store.remove(&owner, &args.kind, key)?);
    }
    if removed == 0 && !args.all {
        return Err(missing(&args.kind));
    }
    print_removed(removed, args.whose.json, printer);
    Ok(Exit::Good)
}

fn gc(
    args: &GcArgs,
    store: &dyn ContextStore,
    now: SystemTime,
    printer: &Printer,
) -> Result<Exit, ContextTrouble> {
    print_removed(store.gc(now)?, args.json, printer);
    Ok(Exit::Good)
}

fn print_removed(removed: u64, as_json: bool, printer: &Printer) {
    if as_json {
        printer.json(&json!({ "removed": removed }));
    } else {
        printer.err(format!("{removed} removed"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ctx_022_a_life_of_nothing_cannot_be_set() {
        assert_eq!(lasting("60"), Ok(Ttl::Seconds(60)));
        assert_eq!(lasting("-1"), Ok(Ttl::Forever));
        for wrong in ["0", "-2", "1h", ""] {
            assert!(lasting(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_entry_is_one_line_of_the_list() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        let key = Key { session: Some("s".to_owned()), ..Key::plain("m:s:session_state\nx") };
        let entry = ContextEntry::new("session_state", key, json!({ "n": 1 }), Ttl::Seconds(60), now)
            .with_module("m");
        let bare: Vec<String> =
            cells(&entry).into_iter().map(|cell| anstream::adapter::strip_str(&cell).to_string()).collect();
        assert_eq!(bare, ["session_state", "m:s:session_state x", "s", "m", "2026-01-02 03:05:05", "7"]);
        assert_eq!(entry_json(&entry)["ends"], "2026-01-02T03:05:05.000Z");
        assert_eq!(entry_json(&entry)["ttl"], 60);
    }
}
