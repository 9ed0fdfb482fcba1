//! The list of skipped tests: one file per run of `cargo test`, next to the test binaries.
//!
//! Test binaries know nothing of each other; they only share the process that started them, so its id is the file
//! name. The program that prints the list removes it. A write error is ignored, because it is no reason to fail a
//! test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, thread};

use crate::{Lack, platform};

/// A test that was skipped, at least in part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkippedTest {
    /// The missing prerequisite.
    pub lack: Lack,
    /// Its binary and its name, such as `clients::a_browser_sees_the_same_chunks`.
    pub test: String,
}

/// Adds the calling test to the list of this run.
pub(crate) fn keep(lack: Lack) {
    let Some(path) = file_of(starter()) else { return };
    let _ = path.parent().map(fs::create_dir_all);
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        // One write per line: tests of one binary share the file.
        let _ = file.write_all(format!("{} {}\n", lack.word(), test()).as_bytes());
    }
}

/// The skipped tests that this process started, each test once; sorted.
#[must_use]
pub fn skipped_by(process: u32) -> Vec<SkippedTest> {
    let list = file_of(process).and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    let entry = |line: &str| {
        let (word, test) = line.split_once(' ')?;
        Some(SkippedTest { lack: Lack::from_word(word)?, test: test.to_owned() })
    };
    let mut skipped: Vec<SkippedTest> = list.lines().filter_map(entry).collect();
    skipped.sort();
    skipped.dedup();
    skipped
}

/// Removes the list, so that a later process with the same id starts with an empty list.
pub fn forget(process: u32) {
    let _ = file_of(process).map(fs::remove_file);
}

/// The list as text: the number of skipped tests, by missing prerequisite.
#[must_use]
pub fn summary(skipped: &[SkippedTest]) -> String {
    let mut groups: BTreeMap<Lack, Vec<&str>> = BTreeMap::new();
    for each in skipped {
        groups.entry(each.lack).or_default().push(&each.test);
    }
    let mut text = match skipped.len() {
        0 => "no test was skipped\n".to_owned(),
        1 => "1 test was skipped, in whole or in part:\n".to_owned(),
        count => format!("{count} tests were skipped, in whole or in part:\n"),
    };
    for (lack, tests) in groups {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} ({}; {})", lack.word(), tests.len(), lack.remedy());
        for test in tests {
            let _ = writeln!(text, "    {test}");
        }
    }
    text
}

/// The process that started this one: `cargo test`, for a test binary.
fn starter() -> u32 {
    platform::parent()
}

/// `target/debug/skipped-tests/4711`, next to `target/debug/deps/…`, where the binary is.
fn file_of(process: u32) -> Option<PathBuf> {
    let profile = env::current_exe().ok()?.parent()?.parent()?.to_owned();
    Some(profile.join("skipped-tests").join(process.to_string()))
}

/// The binary without its hash, and the name that the harness gave to the thread.
fn test() -> String {
    let binary =
        env::current_exe().ok().and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let binary = binary.unwrap_or_default();
    let binary = binary.rsplit_once('-').map_or(binary.as_str(), |(name, _)| name);
    format!("{binary}::{}", thread::current().name().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_and_names_by_what_is_missing() {
        let skipped = |lack, test: &str| SkippedTest { lack, test: test.to_owned() };
        let list = [
            skipped(Lack::Weights, "a::one"),
            skipped(Lack::Weights, "b::two"),
            skipped(Lack::Shared, "c::x"),
        ];
        let text = summary(&list);
        assert!(text.starts_with("3 tests were skipped, in whole or in part:\n  weights (2; "), "{text}");
        assert!(text.contains("    a::one\n    b::two\n  shared (1; "), "{text}");
        assert_eq!(summary(&[]), "no test was skipped\n");
        assert!(summary(&list[..1]).starts_with("1 test was skipped"));
    }
}
