//! A home with a folder for temporary files, and the module of these tests in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cognitive_testkit::{Home, ProcessOutput, good_answer};
use serde_json::{Value, json};

pub(crate) fn place() -> Home {
    let home = crate::home();
    fs::create_dir(temporary(&home)).unwrap();
    let temporary = temporary(&home).to_str().unwrap().to_owned();
    home.with("TMPDIR", &temporary).with("PATH", "/usr/bin:/bin")
}

/// Writes a module `m` that accepts any input and any answer, and a reply with these data.
pub(crate) fn answering(home: &Home, data: &Value) {
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
    let mut members = data.clone();
    members["rationale"] = json!("r");
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\ntier: decision\nresponse: {mode: both}\n";
    home.module("./m", manifest, "Answer.", &schema);
    home.write("reply", good_answer(&members).to_string());
}

/// Runs `cogn` with a stdout that is always full.
pub(crate) fn run_full(home: &Home, args: &[&str]) -> ProcessOutput {
    output(home.command(args, &[]).stdout(full()))
}

/// A file that is always full.
pub(crate) fn full() -> fs::File {
    fs::OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// The result of a process whose stdout may be elsewhere.
pub(crate) fn output(command: &mut Command) -> ProcessOutput {
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    child.wait_with_output().unwrap().into()
}

pub(crate) fn temporary(home: &Home) -> PathBuf {
    home.path("tmp")
}

/// The texts of all remaining temporary files.
pub(crate) fn kept(home: &Home) -> Vec<String> {
    names(&temporary(home)).iter().map(|name| home.read(&format!("tmp/{name}"))).collect()
}

/// The arguments for a run of the module with its reply.
pub(crate) const RUN: [&str; 6] = ["run", "./m", "--input", "{}", "--reply", "reply"];

/// Returns `RUN` with more arguments.
pub(crate) fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..], more].concat()
}

/// Returns the names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
