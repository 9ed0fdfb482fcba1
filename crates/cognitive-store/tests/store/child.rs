//! Runs this test binary as another process: `child(job, path)` starts it, and `as_a_child` runs the job there. Jobs
//! wait for a line on stdin before they start, and report line by line on stdout.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use cognitive_contract::context::{ContextFilter, Owner};
use cognitive_contract::ports::{AuditLog, ContextStore};
use cognitive_store::{Filter, Retention, Store, StoreOptions};
use serde_json::json;

use crate::common::{at, good, state};

const JOB: &str = "COGNITIVE_STORE_TEST_JOB";
const PATH: &str = "COGNITIVE_STORE_TEST_PATH";
/// The prefix of our lines in the output of the test harness.
const MARK: &str = "child: ";

/// Another process with a job.
pub struct Helper {
    child: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
}

/// Starts a process with a job on the store at a path.
pub fn child(job: &str, path: &Path) -> Helper {
    start(&mut Command::new(env::current_exe().unwrap()), job, path)
}

/// Starts a process with another program, which must run this binary in the end.
pub fn start(command: &mut Command, job: &str, path: &Path) -> Helper {
    let mut child = command
        .args(["--exact", "child::as_a_child", "--nocapture", "--test-threads=1"])
        .env(JOB, job)
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Helper { child, lines }
}

impl Helper {
    /// Starts the job.
    pub fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Returns the next report; `None` after the end of the process.
    pub fn report(&mut self) -> Option<String> {
        // The harness writes on the same line before our first one, and a killed process may leave a partial line.
        self.lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.split_once(MARK).and_then(|(_, rest)| rest.strip_suffix('.')).map(str::to_owned)
        })
    }

    /// Kills the process with SIGKILL and returns its remaining reports.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.rest()
    }

    /// Waits for the end of the process and returns its remaining reports.
    pub fn rest(&mut self) -> Vec<String> {
        let mut reports = Vec::new();
        while let Some(report) = self.report() {
            reports.push(report);
        }
        self.child.wait().unwrap();
        reports
    }
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{MARK}{line}.").unwrap();
    out.flush().unwrap();
}

#[test]
fn as_a_child() {
    let (Some(job), Some(path)) = (env::var_os(JOB), env::var_os(PATH)) else { return };
    say("ready");
    io::stdin().lock().read_line(&mut String::new()).unwrap();
    do_job(&job, Path::new(&path));
}

fn do_job(job: &OsStr, path: &Path) {
    let job = job.to_str().unwrap();
    match job.split_once(' ').unwrap_or((job, "")) {
        ("write", name) => write(name, path, 500),
        ("write-for-ever", name) => write(name, path, usize::MAX),
        ("commit-for-ever", name) => crate::group_commit::commit_for_ever(name, path, say),
        ("try", _) => say(&attempt(path)),
        ("read", _) => say(&read(path)),
        ("decide", words) => crate::review::decide_one(words, path, say),
        ("decide-for-ever", name) => crate::review::decide_for_ever(name, path, say),
        ("fill", _) => fill(path),
        ("spend", name) => crate::spending::spend(name, path, say),
        ("emit", user) => emit(user, path),
        ("emit-for-ever", name) => emit_for_ever(name, path),
        ("accept", user) => say(&accept(user, path)),
        (other, _) => say(&format!("unknown job {other}")),
    }
}

/// Writes records and reports each after it is stored. Small limits, so that old records are dropped too.
fn write(name: &str, path: &Path, count: usize) {
    let retention = Retention { records: 2_000, ..Retention::default() };
    let store = Store::open_with(path, StoreOptions { retention, ..StoreOptions::default() }).unwrap();
    for number in 0..count {
        let mut record = good(&format!("{name}-{number}"), "m");
        record.payload = Some(json!("x".repeat(number * 97 % 9_000)));
        store.record(&record).unwrap();
        say(&record.trace_id);
    }
}

/// Opens the store, writes once and returns the outcome.
fn attempt(path: &Path) -> String {
    match Store::open(path) {
        Err(error) => format!("open: {error}"),
        Ok(store) => match store.record(&good("t", "m")) {
            Err(error) => format!("record: {error}"),
            Ok(()) => "kept".to_owned(),
        },
    }
}

fn read(path: &Path) -> String {
    match Store::open_existing(path) {
        Err(error) => format!("open: {error}"),
        Ok(None) => "nothing there".to_owned(),
        Ok(Some(store)) => match store.list(&Filter::default()) {
            Err(error) => format!("list: {error}"),
            Ok(rows) => format!("{} rows", rows.len()),
        },
    }
}

/// Writes until an error occurs, and reports the stored records.
fn fill(path: &Path) {
    let store = Store::open(path).unwrap();
    let mut record = good("t", "m");
    record.payload = Some(json!("x".repeat(5_000)));
    let mut kept = 0;
    let error = loop {
        match store.record(&record) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    say(&error);
    say(&kept.to_string());
    say(&store.list(&Filter::default()).unwrap().len().to_string());
}

/// Stores context that lasts for a minute from second 0.
fn emit(user: &str, path: &Path) {
    let store = Store::open(path).unwrap();
    store.put(&Owner::user(Some(user)), &state("s", 1, 60), at(0)).unwrap();
    say("kept");
}

/// Reads the context of a user at second 30.
fn accept(user: &str, path: &Path) -> String {
    let store = Store::open(path).unwrap();
    let found =
        ContextStore::list(&store, &Owner::user(Some(user)), ContextFilter::default(), at(30)).unwrap();
    found.iter().map(|entry| entry.value.to_string()).collect::<Vec<_>>().join(" ")
}

/// Stores entries and reports each after it is stored; every other one replaces an older entry.
fn emit_for_ever(name: &str, path: &Path) {
    let store = Store::open(path).unwrap();
    let owner = Owner::user(Some(name));
    for number in 0.. {
        let key = if number % 2 == 0 { "same".to_owned() } else { number.to_string() };
        store.put(&owner, &state(&key, number, -1), at(0)).unwrap();
        say(&format!("{key} {number}"));
    }
}
