//! `cogn batch` as a process: killed repeatedly, stopped, and through batch endpoints of stub services.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod collisions;
mod held_service;
mod kills;
mod post_stub;
mod posts;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Prepares the command in its own folder, isolated from this machine.
fn cogn(home: &Path, args: &[&str]) -> Command {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.args(args).current_dir(home).env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

fn done(mut command: Command) -> (i32, String, String) {
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
