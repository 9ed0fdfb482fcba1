//! The last test binary of `cargo test --workspace`: lists the skipped tests of the run and the reasons. Cargo runs
//! packages by name, and the tests in `tests/` after those in `src/`; only doc tests follow, which skip nothing. This
//! binary never fails: `COGN_TEST_STRICT` makes a skipped test fail where it is skipped.

use std::io::Write as _;

use cognitive_testkit::{forget, skipped_by, summary};

#[cfg(unix)]
#[test]
fn the_skipped_tests_of_this_run_are_named() {
    let run = std::os::unix::process::parent_id();
    let text = summary(&skipped_by(run));
    // Not `eprintln!`: the harness shows that only for failed tests.
    let _ = write!(std::io::stderr(), "\n\n{text}\n");
    forget(run);
}
