//! The installable packages, built from the current program and tested in isolation: the wheel, the npm packages, the
//! unit, the nginx configurations, the compose and Kubernetes files. `packaging/release` tests the real ones on a bare
//! Debian. A test is skipped if its tools are not installed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod balancer;
mod containers;
mod deployment;
mod files;
mod nginx;
mod npm;
mod wheel;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The program without debug information, which is most of its size; created once for all tests.
fn program() -> &'static Path {
    static MADE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cogn");
        let stripped = Command::new("strip").arg("-o").arg(&path).arg(env!("CARGO_BIN_EXE_cogn")).status();
        if !stripped.is_ok_and(|status| status.success()) {
            fs::copy(env!("CARGO_BIN_EXE_cogn"), &path).unwrap();
        }
        (folder, path)
    });
    path
}

/// The library that Python loads. Cargo builds it for this test, next to the test program.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libcogn_python.so")
}

/// Runs a command that must succeed.
fn good(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Prepares a command in a temporary home, with only `PATH` of this machine.
fn at_home(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = cognitive_testkit::command(program);
    command.env_clear().env("HOME", home).current_dir(home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Checks that an installed program answers like the built one: version, envelope, and exit code of a failure.
fn works(program: &Path, words: &[&str], home: &Path) {
    let start = || {
        let mut command = at_home(program, home);
        command.args(words);
        command
    };
    let version = good(start().arg("--version"));
    assert!(version.starts_with(&format!("cogn {}\n", env!("CARGO_PKG_VERSION"))), "{version}");
    let reply = root().join("modules/text-classifier/tests/given-labels.reply.txt");
    let run = ["run", "text-classifier", "--set", "text=My card was charged twice", "--reply"];
    let envelope: Value = serde_json::from_str(&good(start().args(run).arg(reply))).unwrap();
    assert_eq!(envelope["ok"], true, "{envelope}");
    let failed = start().args(["run", "no-such-module", "--set", "text=x"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(1), "{}", said(&failed));
}
