//! Starts processes for tests in a fixed environment, independent of the environment of the tests.

use std::ffi::OsStr;
use std::process::Command;

use crate::platform;

/// A command whose process starts with default signal dispositions. Every test that runs `cogn`, or a program that runs it, starts
/// with this one.
///
/// A child inherits ignored signals. Under `nohup`, or in the background of a shell, SIGHUP or SIGINT would be ignored by every
/// program of the tests, and a run that a test ends by a signal would go on until its time limit.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    platform::default_signals();
    Command::new(program)
}
