//! The last test binary of `cargo test --workspace`: says which tests of the run were skipped, and for want of what.
//! (Cargo runs packages by name and the tests in `tests/` after those in `src/`; only documentation follows, which skips
//! nothing.) It never fails: whether a skipped test is a failure is decided where it is skipped, by `COGN_TEST_STRICT`.

use std::io::Write as _;

use cognitive_testkit::{forget, skipped_by, summary};

#[cfg(unix)]
#[test]
fn the_skipped_tests_of_this_run_are_named() {
    let run = std::os::unix::process::parent_id();
    let text = summary(&skipped_by(run));
    // Not `eprintln!`: the harness keeps that for tests that fail.
    let _ = write!(std::io::stderr(), "\n\n{text}\n");
    forget(run);
}
