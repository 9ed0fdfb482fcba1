//! `cogn audit`: past runs with caller and outcome, and a check that records are unchanged (`audit/proof.rs`). Reads
//! the store, and never creates or changes a record.
//! Names and ids come from callers, so their control characters are stripped.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cognitive_contract::code::canonical;
use cognitive_contract::text;
use cognitive_setup::stores::existing_store;
use cognitive_store::{Figures, Filter, OwnerDrops, Row, Stats, Store, StoreError, StoreOptions, since};

mod proof;
mod summary;

use crate::args::candidates;
use crate::figures::{count_text, dollars, duration, local_time, sparkline};
use crate::platform;
use crate::printer::{BAD, DOUBT, Exit, FAINT, GOOD, NOTE, Printer, plain};
use crate::text_table::TextTable;

/// Options of `audit`.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AuditCommand {
    /// List runs, the newest first
    List(AuditListArgs),
    /// Show one run; with `--json` every recorded detail
    Show(ShowArgs),
    /// Write records as JSON, one per line, the oldest first
    Export(ExportArgs),
    /// Summarise runs per module, and the records dropped by retention
    Stats(StatsArgs),
    /// Find records that were changed, removed or moved
    Verify(proof::AuditVerifyArgs),
    /// Print the last hash of each chain, to be stored on another machine
    Head(proof::HeadArgs),
}

#[derive(Debug, clap::Args)]
struct AuditListArgs {
    #[command(flatten)]
    which: RecordSelection,
    /// Maximum number of runs
    #[arg(long, short, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The trace id, or its beginning
    trace_id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ExportArgs {
    #[command(flatten)]
    which: RecordSelection,
    /// One JSON object per line; the only format, and the default
    #[arg(long)]
    jsonl: bool,
    /// Write to this file, which must not exist yet; only you can read it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct StatsArgs {
    #[command(flatten)]
    which: RecordSelection,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A selection of records.
#[derive(Debug, clap::Args)]
struct RecordSelection {
    /// Only runs of this module
    #[arg(long, value_name = "MODULE", add = candidates::modules())]
    module: Option<String>,
    /// Only failures
    #[arg(long)]
    failed: bool,
    /// Only failures with this error code
    #[arg(long, value_name = "CODE", add = candidates::codes())]
    code: Option<String>,
    /// Only runs with the API key of this name
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Only runs of this user
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Only runs of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Only since this age (`24h`, `7d`), date or RFC 3339 time
    #[arg(long, value_parser = |given: &str| since(given, SystemTime::now()))]
    since: Option<SystemTime>,
}

impl RecordSelection {
    fn filter(&self) -> Filter {
        Filter {
            module: self.module.clone(),
            ok: self.failed.then_some(false),
            code: self.code.as_deref().map(|code| canonical(code).to_owned()),
            since: self.since,
            key: self.key.clone(),
            user: self.user.clone(),
            tenant: self.tenant.clone(),
            ..Filter::default()
        }
    }

    /// Lists and statistics are about runs; an export has all events.
    fn runs(&self) -> Filter {
        Filter { runs: true, ..self.filter() }
    }
}

/// Answers a query about the records of the store at `store_path`, which may be missing.
pub fn audit(args: &AuditArgs, store_path: &Path, printer: &Printer) -> Exit {
    let answered = open(store_path).and_then(|store| match &args.command {
        AuditCommand::List(args) => list(args, &store, printer),
        AuditCommand::Show(args) => show(args, &store, printer),
        AuditCommand::Export(args) => export(args, &store, printer),
        AuditCommand::Stats(args) => stats(args, &store, printer),
        AuditCommand::Verify(args) => proof::verify(args, &store, printer),
        AuditCommand::Head(args) => proof::head(args, &store, printer),
    });
    answered.unwrap_or_else(|error| {
        printer.error(&error.to_string(), error.hint());
        Exit::Bad
    })
}

/// A missing store counts as empty.
fn open(path: &Path) -> Result<Store, StoreError> {
    match existing_store(path, StoreOptions::default())? {
        Some(store) => Ok(store),
        None => Store::in_memory(),
    }
}

fn list(args: &AuditListArgs, store: &Store, printer: &Printer) -> Result<Exit, StoreError> {
    let rows = store.list(&Filter { limit: Some(args.limit), ..args.which.runs() })?;
    if args.json {
        printer.json(&rows);
    } else if rows.is_empty() {
        printer.err(empty_message(store)?);
    } else {
        let heads = ["TIME", "TRACE", "MODULE", "RESULT", "RISK", "CONFIDENCE", "LATENCY", "MODEL", "USER"];
        let table = TextTable::new(heads).right(&[5, 6]).prose(2).optional_columns(&[8, 4, 5, 7, 6]);
        printer.table(&table.with(rows.iter().map(cells)));
    }
    Ok(Exit::Good)
}

fn empty_message(store: &Store) -> Result<&'static str, StoreError> {
    let any = store.list(&Filter { limit: Some(1), ..Filter::default() })?;
    Ok(if any.is_empty() { "no runs recorded yet" } else { "no record matches" })
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        local_time(&row.ts),
        format!("{NOTE}{}{NOTE:#}", plain(text::cut(&row.trace_id, 8))),
        plain(text::cut(&row.module, 40)),
        result(row),
        risk(&row.risk),
        format!("{:.2}", row.confidence),
        duration(row.latency_ms),
        format!("{FAINT}{}{FAINT:#}", plain(dash(text::cut(&row.model, 40)))),
        plain(dash(text::cut(&caller_label(row), 40))),
    ]
}

/// Returns the caller, as far as known: `tenant/user`, or the key if there is no user.
fn caller_label(row: &Row) -> String {
    let user = row.user.as_deref().or(row.key.as_deref()).unwrap_or_default();
    match &row.tenant {
        Some(tenant) => format!("{tenant}/{user}"),
        None => user.to_owned(),
    }
}

fn result(row: &Row) -> String {
    match &row.code {
        _ if row.unfinished => format!("{DOUBT}unfinished{DOUBT:#}"),
        _ if row.event == "call" => "asked".to_owned(),
        Some(code) => format!("{BAD}{}{BAD:#}", plain(code)),
        None if row.ok => format!("{GOOD}ok{GOOD:#}"),
        None => format!("{BAD}failed{BAD:#}"),
    }
}

fn risk(risk: &str) -> String {
    match risk {
        "high" => format!("{BAD}high{BAD:#}"),
        "medium" => format!("{DOUBT}medium{DOUBT:#}"),
        other => plain(dash(other)),
    }
}

fn dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn show(args: &ShowArgs, store: &Store, printer: &Printer) -> Result<Exit, StoreError> {
    let rows = exact_or_all(&args.trace_id, store.find(&args.trace_id)?);
    if let Err((message, hint)) = one_trace(&args.trace_id, &rows) {
        printer.error(&message, Some(hint));
        return Ok(Exit::Bad);
    }
    if args.json {
        printer.json(&rows);
    } else {
        for (place, row) in rows.iter().enumerate() {
            if place > 0 {
                printer.print_line("");
            }
            printer.table(&summary::table(row));
        }
        printer.notice(format!("{FAINT}`--json` shows the complete receipt{FAINT:#}"));
    }
    Ok(Exit::Good)
}

/// An exact id wins over longer ids that start with it.
fn exact_or_all(trace_id: &str, rows: Vec<Row>) -> Vec<Row> {
    let whole = rows.iter().any(|row| row.trace_id == trace_id);
    rows.into_iter().filter(|row| !whole || row.trace_id == trace_id).collect()
}

/// A trace may have several records, but the given id must match only one trace.
fn one_trace(given: &str, rows: &[Row]) -> Result<(), (String, &'static str)> {
    let ids: BTreeSet<String> = rows.iter().map(|row| plain(&row.trace_id)).collect();
    let given = plain(given);
    match ids.len() {
        0 => Err((format!("unknown trace id: `{given}`"), "`cogn audit list` shows the ids")),
        1 => Ok(()),
        many => {
            let first = ids.into_iter().take(10).collect::<Vec<_>>().join("\n  ");
            Err((
                format!("{many} trace ids start with `{given}`:\n  {first}"),
                "Use more characters of the id",
            ))
        }
    }
}

fn export(args: &ExportArgs, store: &Store, printer: &Printer) -> Result<Exit, StoreError> {
    let filter = args.which.filter();
    let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) else {
        let mut any = false;
        store.export(&filter, &mut |row| {
            any = true;
            printer.print_line(row.to_json().to_string());
            if printer.stdout_loss().is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if !any {
            printer.err(empty_message(store)?);
        }
        return Ok(Exit::Good);
    };
    match create(path).and_then(|file| export_to(file, path, &filter, store)) {
        Ok(count) => {
            printer.err(format!("{count} records written to `{}`", path.display()));
            Ok(Exit::Good)
        }
        Err(error) => {
            printer.error(&format!("cannot write `{}`: {error}", path.display()), None);
            Ok(Exit::Bad)
        }
    }
}

/// Creates a new file and never overwrites one, because it could be the store itself.
fn create(path: &Path) -> io::Result<File> {
    platform::create_private_file(path)
}

/// Writes all or nothing: a partial export would look complete.
fn export_to(file: File, path: &Path, filter: &Filter, store: &Store) -> io::Result<u64> {
    let mut writer = BufWriter::new(file);
    let mut count = 0;
    let mut written = Ok(());
    let read = store.export(filter, &mut |row| {
        count += 1;
        written = writeln!(writer, "{}", row.to_json());
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let done = read.map_err(io::Error::other).and(written).and_then(|()| writer.flush());
    if done.is_err() {
        fs::remove_file(path)?;
    }
    done.map(|()| count)
}

/// The statistics, with the records that were dropped.
#[derive(serde::Serialize)]
struct WithDrops<'a> {
    #[serde(flatten)]
    stats: &'a Stats,
    dropped: &'a [OwnerDrops],
}

fn stats(args: &StatsArgs, store: &Store, printer: &Printer) -> Result<Exit, StoreError> {
    let stats = store.stats(&args.which.runs())?;
    let dropped = store.dropped_records()?;
    if args.json {
        printer.json(&WithDrops { stats: &stats, dropped: &dropped });
        return Ok(Exit::Good);
    }
    if stats.total.runs + stats.total.unfinished == 0 {
        printer.err(empty_message(store)?);
    } else {
        let heads = [
            "MODULE",
            "RUNS",
            "WHEN",
            "UNFINISHED",
            "OK",
            "P50",
            "P95",
            "TOKENS IN",
            "OUT",
            "COST",
            "ERRORS",
        ];
        let table = TextTable::new(heads).right(&[1, 3, 4, 5, 6, 7, 8, 9]).optional_columns(&[3, 7, 8, 2, 6]);
        printer.table(&table.with(sums(&stats)));
        if let (Some(from), Some(to)) = (&stats.from, &stats.to) {
            printer.notice(format!("{FAINT}from {} to {}{FAINT:#}", local_time(from), local_time(to)));
        }
        if stats.total.parts > 0 {
            let parts = count_text(stats.total.parts, "part");
            printer.notice(format!(
                "{FAINT}`all` counts a composition once; the rows above also count its {parts}{FAINT:#}"
            ));
        }
    }
    for OwnerDrops { owner, kind, records, payloads, since, .. } in &dropped {
        let (owner, since) = (plain(proof::owner(owner)), local_time(since));
        printer.err(format!(
            "{DOUBT}dropped{DOUBT:#} of {owner} since {since}: {records} records of {kind}, {payloads} payloads"
        ));
    }
    Ok(Exit::Good)
}

fn sums(stats: &Stats) -> Vec<Vec<String>> {
    let modules = stats
        .modules
        .iter()
        .map(|each| figures(&format!("{NOTE}{}{NOTE:#}", plain(text::cut(&each.module, 40))), &each.figures));
    modules.chain([figures("all", &stats.total)]).collect()
}

fn figures(name: &str, figures: &Figures) -> Vec<String> {
    let codes: Vec<String> =
        figures.codes.iter().map(|(code, count)| format!("{} × {count}", plain(code))).collect();
    vec![
        name.to_owned(),
        figures.runs.to_string(),
        format!("{NOTE}{}{NOTE:#}", sparkline(&figures.activity)),
        figures.unfinished.to_string(),
        figures.success_rate.map_or("-".to_owned(), |rate| format!("{:.1} %", rate * 100.0)),
        figures.latency_p50_ms.map_or("-".to_owned(), duration),
        figures.latency_p95_ms.map_or("-".to_owned(), duration),
        figures.input_tokens.to_string(),
        figures.output_tokens.to_string(),
        figures.cost.map_or("-".to_owned(), dollars),
        codes.join(", "),
    ]
}

#[cfg(test)]
mod tests;
