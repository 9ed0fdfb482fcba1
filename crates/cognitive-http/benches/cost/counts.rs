//! Counts what a scenario costs: runs it twice under valgrind, with and without the counted requests, and subtracts.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{COUNTED, WARM};

/// The cost of one request.
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    /// Instructions by crate.
    parts: BTreeMap<String, u64>,
}

/// The most crates that the table names.
const PARTS: usize = 16;

impl Counts {
    /// Measures a scenario. `place` returns the argument of each of the four runs; `None` if this machine lacks it.
    pub(crate) fn measured(
        scenario: &str,
        place: &dyn Fn(usize) -> Option<String>,
        folder: &Path,
    ) -> Option<Self> {
        let file = folder.join("callgrind.out");
        let instructions = |run: usize, count: usize| {
            let out = format!("--callgrind-out-file={}", file.display());
            under_valgrind(&["--tool=callgrind", &out], scenario, count, &place(run)?);
            Some(by_crate(&std::fs::read_to_string(&file).unwrap()))
        };
        let (warm, whole) = (instructions(0, WARM)?, instructions(1, WARM + COUNTED)?);
        let allocations = |run: usize, count: usize| {
            let tool = ["--tool=dhat", "--dhat-out-file=/dev/null"];
            Some(allocated(&under_valgrind(&tool, scenario, count, &place(run)?)))
        };
        let (few, many) = (allocations(2, WARM)?, allocations(3, WARM + COUNTED)?);
        let each = |more: u64, less: u64| more.saturating_sub(less) / COUNTED as u64;
        let parts: BTreeMap<String, u64> = whole
            .iter()
            .map(|(part, count)| (part.clone(), each(*count, warm.get(part).copied().unwrap_or(0))))
            .collect();
        Some(Self {
            instructions: each(whole.values().sum(), warm.values().sum()),
            allocations: each(many.1, few.1),
            bytes: each(many.0, few.0),
            parts,
        })
    }

    /// Returns the parts with the most instructions, and the sum of the others.
    pub(crate) fn largest_parts(&self) -> Vec<(&str, u64)> {
        let mut parts: Vec<(&str, u64)> =
            self.parts.iter().map(|(part, count)| (part.as_str(), *count)).collect();
        parts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let rest = parts.split_off(parts.len().min(PARTS)).iter().map(|(_, count)| count).sum();
        parts.push(("others", rest));
        parts
    }
}

/// Runs a scenario under valgrind and returns its report.
fn under_valgrind(tool: &[&str], scenario: &str, count: usize, place: &str) -> String {
    let output = Command::new("valgrind")
        .args(tool)
        .arg(std::env::current_exe().unwrap())
        .args(["loop", scenario, &count.to_string(), place])
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{report}");
    report
}

/// Reads bytes and blocks from the line `Total: 1,234 bytes in 56 blocks`.
fn allocated(report: &str) -> (u64, u64) {
    let line = report.lines().find(|line| line.contains("Total:")).unwrap();
    let mut figures = line.split_whitespace().filter_map(|word| word.replace(',', "").parse().ok());
    // The first number may be the process id, in `==123==`, which is no number.
    (figures.next().unwrap(), figures.next().unwrap())
}

/// Sums the instructions of each crate in a profile. A function counts without the functions that it calls.
fn by_crate(profile: &str) -> HashMap<String, u64> {
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut sums: HashMap<String, u64> = HashMap::new();
    let (mut part, mut is_call) = (String::new(), false);
    for line in profile.lines() {
        if let Some(named) = line.strip_prefix("fn=") {
            part = part_of(named, &mut names);
        } else if let Some(named) = line.strip_prefix("cfn=") {
            // A name may be defined where it is called first.
            part_of(named, &mut names);
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '*')) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            // The line after `calls=` is the cost of the called function.
            if !std::mem::take(&mut is_call) {
                *sums.entry(part.clone()).or_default() += cost;
            }
        }
    }
    sums
}

/// Returns the part of a function, `(ID) NAME` or a known `(ID)`.
fn part_of<'p>(function: &'p str, names: &mut HashMap<&'p str, String>) -> String {
    let (id, name) = function.split_once(' ').unwrap_or((function, ""));
    if !name.is_empty() {
        names.insert(id, crate_of(name));
    }
    names.get(id).cloned().unwrap_or_default()
}

/// The functions of the C library that allocate.
const ALLOCATION: [&str; 9] =
    ["malloc", "free", "calloc", "realloc", "_int_", "unlink_chunk", "tcache", "alloc::alloc", "__rdl_"];

/// Returns the crate of a function; allocation, copying and dropping are parts of their own.
fn crate_of(name: &str) -> String {
    let plain = name.trim_start_matches(['<', '&', '(', '*', '[']).trim_start_matches("dyn ");
    let plain = plain.trim_start_matches("mut ");
    if ALLOCATION.iter().any(|each| plain.starts_with(each)) {
        return "allocation".to_owned();
    }
    if plain.starts_with("mem") || plain.starts_with("__mem") || plain.starts_with("bcmp") {
        return "copying and comparing".to_owned();
    }
    if plain.starts_with("core::ptr::drop_in_place") {
        return "dropping".to_owned();
    }
    if plain.starts_with("sqlite3") {
        return "SQLite".to_owned();
    }
    match plain.split_once("::") {
        Some((first, _)) if first.chars().all(|each| each.is_ascii_alphanumeric() || each == '_') => {
            first.to_owned()
        }
        Some(_) => "core".to_owned(),
        None => "C".to_owned(),
    }
}

/// The model as a process of its own, which is not counted.
pub(crate) struct Child {
    process: std::process::Child,
    pub(crate) address: String,
}

impl Child {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("stub")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        Self { process, address: address.trim().to_owned() }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
