//! The cost of replies and schemas as they grow: CPU time and peak memory of the real program as a process. Prints a
//! line for each size and the slope over the last decade (1 is linear, 2 is quadratic), then PASS or FAIL. Exits with 1
//! on failure. Linux only, because it reads `/proc`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and prints"
)]

#[path = "../tests/pressure/growth/material.rs"]
mod material;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use material::{Written, branches, items, reply, required};

/// The maximum slope over the last decade.
const MAX_SLOPE: f64 = 1.2;
/// The maximum memory per additional byte of a broken reply, up to 10 MB.
const MAX_PER_BYTE: f64 = 30.0;
/// Every command is repeated, and its fastest run counts: the cost of fresh memory varies tenfold between two runs.
/// Short commands are repeated until this much CPU time is used.
const ENOUGH: f64 = 0.5;
const MIN_REPEATS: u32 = 3;
const MAX_REPEATS: u32 = 20;
/// Clock ticks per second; the same on every Linux.
const TICKS: f64 = 100.0;

/// The cost of one command.
#[derive(Clone, Copy)]
struct Cost {
    size: usize,
    seconds: f64,
    peak: usize,
}

fn main() -> ExitCode {
    if !Path::new("/proc/self/stat").exists() {
        println!("skipped: only Linux says what a process has cost");
        return ExitCode::SUCCESS;
    }
    let home = tempfile::tempdir().unwrap();
    let mut failed = 0;
    for written in Written::ALL {
        failed += u32::from(!replies(home.path(), written));
    }
    let required_of = |count| required(home.path(), count);
    let branches_of = |count| branches(home.path(), count);
    let members = [10, 100, 1_000, 4_000, 10_000, 40_000];
    let forms = [10, 50, 100, 200, 500];
    failed += schemas(home.path(), "required members", &members, &required_of);
    failed += schemas(home.path(), "overlapping branches", &forms, &branches_of);
    println!("{}", if failed == 0 { "all PASS" } else { "some FAIL" });
    ExitCode::from(u8::from(failed > 0))
}

/// Measures saved replies of one kind.
fn replies(home: &Path, written: Written) -> bool {
    let module = items(home);
    let file = home.join("reply").to_string_lossy().into_owned();
    let costs: Vec<Cost> = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
        .into_iter()
        .map(|size| {
            fs::write(&file, reply(written, size)).unwrap();
            cost(home, size, &["run", &module, "--input", "{}", "--provider", "replay", "--reply", &file])
        })
        .collect();
    // Memory that the program uses before it reads a reply is not part of the cost.
    let (first, last) = (costs.first().unwrap(), costs.last().unwrap());
    let per_byte = (last.peak - first.peak) as f64 / (last.size - first.size) as f64;
    let is_slim = per_byte <= MAX_PER_BYTE;
    let note = format!("{per_byte:.1} bytes of memory for each byte (at most {MAX_PER_BYTE})");
    report(&format!("run, reply {written:?}"), &costs, &note, is_slim)
}

/// Measures every command on schemas of one kind and returns the number of failures.
fn schemas(home: &Path, kind: &str, sizes: &[usize], module: &dyn Fn(usize) -> String) -> u32 {
    let file = home.join("reply").to_string_lossy().into_owned();
    fs::write(&file, reply(Written::Clean, 1_000)).unwrap();
    let lower = ["openai", "anthropic", "gemini", "ollama", "grammar"].map(|target| ("lower", Some(target)));
    let mut failed = 0;
    for (command, target) in [("validate", None), ("run", None)].into_iter().chain(lower) {
        let measured = sizes.iter().map(|size| {
            let module = module(*size);
            let rest = match (command, target) {
                ("run", _) => vec!["--input", "{}", "--provider", "replay", "--reply", &file],
                (_, Some(target)) => vec!["--target", target],
                _ => Vec::new(),
            };
            cost(home, *size, &[&[command, &module], rest.as_slice()].concat())
        });
        let costs: Vec<Cost> = measured.collect();
        let name = format!("{command} {}, {kind}", target.unwrap_or_default());
        failed += u32::from(!report(&name, &costs, "", true));
    }
    failed
}

/// Prints a curve and returns whether it passes.
fn report(name: &str, costs: &[Cost], note: &str, holds: bool) -> bool {
    println!("{name}");
    for Cost { size, seconds, peak } in costs {
        println!("  {size:>10}  {seconds:>9.3} s  {:>9.1} MB", *peak as f64 / 1e6);
    }
    let last = costs.last().unwrap();
    let decade = costs.iter().find(|cost| cost.size * 10 >= last.size).unwrap_or(last);
    let slope =
        |of: fn(&Cost) -> f64| (of(last) / of(decade)).ln() / (last.size as f64 / decade.size as f64).ln();
    let (time, memory) = (slope(|cost| cost.seconds), slope(|cost| cost.peak as f64));
    let passes = holds && time <= MAX_SLOPE && memory <= MAX_SLOPE;
    let word = if passes { "PASS" } else { "FAIL" };
    println!("  {word}: slope {time:.2} of time, {memory:.2} of memory (at most {MAX_SLOPE}) {note}\n");
    passes
}

/// Runs a command often enough to measure its time.
fn cost(home: &Path, size: usize, args: &[&str]) -> Cost {
    // A command may take less than a tick, so the ticks are divided by the number of repeats.
    let (mut total, mut fastest, mut peak, mut repeats) = (0.0, f64::INFINITY, 0, 0);
    while repeats < MIN_REPEATS || (total < ENOUGH && repeats < MAX_REPEATS) {
        let before = time_of_children();
        peak = peak.max(run(home, args));
        let seconds = time_of_children() - before;
        total += seconds;
        fastest = seconds.min(fastest);
        repeats += 1;
    }
    let is_short = fastest < 10.0 / TICKS;
    let seconds = if is_short { total.max(1.0 / TICKS) / f64::from(repeats) } else { fastest };
    Cost { size, seconds, peak }
}

/// Runs a command to its end and returns its peak memory, sampled every millisecond.
fn run(home: &Path, args: &[&str]) -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
    command.args(args).current_dir(home).env_clear().env("HOME", home).env("COGN_OFFLINE", "1");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = found.and_then(|found| found.trim().trim_end_matches(" kB").parse::<usize>().ok());
        peak = peak.max(found.unwrap_or_default() * 1024);
        thread::sleep(Duration::from_millis(1));
    }
    peak
}

/// Returns the CPU time of all finished child processes, in seconds.
fn time_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}
