//! The instructions and allocations of one request, counted by valgrind, so that other programs on the machine change
//! nothing. Prints the totals of each scenario and how the instructions are distributed over the crates.
//!
//! `cargo bench -p cognitive-http --bench cost` prints the table, `-- write` also writes it to
//! `benches/instructions.txt`, and `-- check` compares the totals with that file and fails above the tolerance.
//! `benches/README.md` explains the output.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints and may panic"
)]

mod counts;
mod scenarios;
#[path = "../load/servers.rs"]
#[expect(dead_code, reason = "the benchmark of the load starts them as processes")]
mod servers;
#[path = "../load/stub.rs"]
#[expect(dead_code, reason = "connections are counted by the benchmark of the load")]
mod stub;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use cognitive_testkit::TestPostgres;

use counts::Counts;

/// The requests that are not counted: they fill caches, and open connections and the store.
const WARM: usize = 64;
/// The counted requests.
const COUNTED: usize = 320;
/// The width of the first column of the table.
const NAME_WIDTH: usize = 22;
/// The accepted increase of a total, in percent.
const TOLERANCE: f64 = 5.0;
/// The same for a scenario with an audit: its two threads decide how many records share a transaction.
const TOLERANCE_OF_THREADS: f64 = 15.0;

/// The committed table.
fn table_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/instructions.txt")
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["loop", name, count, place] => {
            scenarios::repeat(name, count.parse().unwrap(), place);
            ExitCode::SUCCESS
        }
        ["stub"] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                println!("{}", stub::start().await);
                scenarios::until_released().await;
            });
            ExitCode::SUCCESS
        }
        _ if !has_valgrind() => {
            eprintln!("skipped: valgrind is not installed");
            ExitCode::SUCCESS
        }
        ["check"] => check(&measured()),
        ["write"] => {
            let table = table(&measured());
            print!("{table}");
            std::fs::write(table_file(), table).unwrap();
            ExitCode::SUCCESS
        }
        _ => {
            print!("{}", table(&measured()));
            ExitCode::SUCCESS
        }
    }
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Measures every scenario that this machine can run.
fn measured() -> Vec<(&'static str, Counts)> {
    let stub = counts::Child::start();
    let postgres = TestPostgres::durable();
    if postgres.is_none() {
        eprintln!("skipped: the scenarios with PostgreSQL, which is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut measured = Vec::new();
    for name in scenarios::NAMES {
        let place = |run: usize| match name {
            "net" | "net, stream" | "http and net" | "bare" => Some(stub.address.clone()),
            "runtime, SQLite" => Some(folder.path().join(format!("{run}.db")).to_string_lossy().into_owned()),
            "runtime, PostgreSQL" => postgres.as_ref().map(TestPostgres::database),
            _ => Some("-".to_owned()),
        };
        let Some(counts) = Counts::measured(name, &place, folder.path()) else { continue };
        eprintln!("{name}: {} instructions, {} allocations", counts.instructions, counts.allocations);
        measured.push((name, counts));
    }
    measured
}

/// The table as it is committed.
fn table(measured: &[(&'static str, Counts)]) -> String {
    let mut text = format!(
        "# Cost of one request: {COUNTED} requests after {WARM}, one thread asks, the model answers at once.\n\
         # Written by `cargo bench -p cognitive-http --bench cost -- write` with the settings of `benches/README.md`.\n\n\
         {:<NAME_WIDTH$} {:>12} {:>12} {:>10}\n",
        "scenario", "instructions", "allocations", "bytes"
    );
    for (name, counts) in measured {
        let Counts { instructions, allocations, bytes, .. } = counts;
        writeln!(text, "{name:<NAME_WIDTH$} {instructions:>12} {allocations:>12} {bytes:>10}").unwrap();
    }
    for (name, counts) in measured {
        writeln!(text, "\n{name}: instructions by crate").unwrap();
        for (part, instructions) in counts.largest_parts() {
            writeln!(text, "  {part:<24} {instructions:>10}").unwrap();
        }
    }
    text
}

/// The totals of a committed table, by scenario: instructions and allocations.
fn totals(table: &str) -> Vec<(String, [u64; 2])> {
    let rows = table.lines().skip_while(|line| !line.starts_with("scenario")).skip(1);
    rows.take_while(|line| !line.is_empty()).filter_map(row_totals).collect()
}

fn row_totals(row: &str) -> Option<(String, [u64; 2])> {
    let mut figures = row.split_whitespace().rev().skip(1).map_while(|word| word.parse().ok());
    let (allocations, instructions) = (figures.next()?, figures.next()?);
    Some((row.get(..NAME_WIDTH)?.trim().to_owned(), [instructions, allocations]))
}

/// Compares the totals with the committed table.
fn check(measured: &[(&'static str, Counts)]) -> ExitCode {
    let committed = totals(&std::fs::read_to_string(table_file()).unwrap());
    let mut is_worse = false;
    for (name, counts) in measured {
        let tolerance = if scenarios::has_audit(name) { TOLERANCE_OF_THREADS } else { TOLERANCE };
        let Some((_, before)) = committed.iter().find(|(known, _)| known == name) else {
            println!("{name}: not in the committed table; write it again");
            is_worse = true;
            continue;
        };
        for (what, now, before) in
            [("instructions", counts.instructions, before[0]), ("allocations", counts.allocations, before[1])]
        {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let change = (now as f64 / before as f64 - 1.0) * 100.0;
            let verdict = if change > tolerance { "WORSE" } else { "ok" };
            is_worse |= change > tolerance;
            println!("{name}: {now} {what}, {change:+.1} % ({verdict})");
        }
    }
    if is_worse {
        println!("a request costs more than `benches/instructions.txt` allows");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
