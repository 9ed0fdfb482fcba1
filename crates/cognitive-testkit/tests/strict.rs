//! Tests a test that lacks a prerequisite from outside: this binary starts itself with the test below.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::process::{Command, Output};
use std::sync::Mutex;

use cognitive_testkit::{Lack, forget, skip, skipped_by};

/// The tests below share one list, that of this process, so they run one at a time.
static TURN: Mutex<()> = Mutex::new(());

#[test]
#[ignore = "the tests below run it, in a process of its own"]
fn lacks_a_browser() {
    skip(Lack::Browser);
}

/// Runs `lacks_a_browser`, and returns its entries in the list.
fn run(strict: Option<&str>, may_lack: Option<&str>) -> (Output, Vec<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "lacks_a_browser", "--include-ignored"]);
    for (name, value) in [("COGN_TEST_STRICT", strict), ("COGN_TEST_MAY_LACK", may_lack)] {
        match value {
            Some(value) => child.env(name, value),
            None => child.env_remove(name),
        };
    }
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let output = child.output().unwrap();
    let list =
        skipped_by(std::process::id()).into_iter().map(|each| format!("{} {}", each.lack.word(), each.test));
    let list = list.collect();
    forget(std::process::id());
    (output, list)
}

#[test]
fn a_skipped_test_passes_and_is_named() {
    for (strict, may_lack) in [(None, None), (Some("0"), None), (Some("1"), Some("weights, browser"))] {
        let (output, list) = run(strict, may_lack);
        assert!(output.status.success(), "{strict:?} {may_lack:?}");
        assert_eq!(list, ["browser strict::lacks_a_browser"], "{strict:?} {may_lack:?}");
    }
}

#[test]
fn a_strict_run_fails_a_skipped_test_and_says_what_is_missing() {
    for may_lack in [None, Some(""), Some("weights")] {
        let (output, list) = run(Some("1"), may_lack);
        assert!(!output.status.success(), "{may_lack:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("skipped in a strict run, for want of browser; install `chromium`"), "{said}");
        assert!(list.is_empty(), "what failed is not listed again: {}", list[0]);
    }
}

#[test]
fn a_word_that_nothing_is_called_by_forgives_nothing() {
    let (output, _) = run(Some("1"), Some("browsers"));
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("nothing is called by: browsers"));
}
