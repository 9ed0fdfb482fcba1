//! A temporary project, home and folder for temporary files, and `cogn` in them. Judges nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Place {
    dir: TempDir,
}

pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Output {
    /// Returns the envelope on stdout.
    pub(crate) fn envelope(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic_with(self, &error.to_string()))
    }
}

#[expect(clippy::panic, reason = "in a test, a panic is the report")]
fn panic_with(output: &Output, why: &str) -> Value {
    panic!("{why}: {:?}, {}, {}", output.code, output.out, output.err)
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["project", "home", "tmp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes a module `m` that accepts any input and any answer, and a reply with these data.
    pub(crate) fn answering(&self, data: &Value) -> &Self {
        let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
        let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
        let mut members = data.as_object().cloned().unwrap_or_default();
        members.insert("rationale".to_owned(), json!("r"));
        let reply = json!({ "ok": true, "meta": meta, "data": members });
        let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\ntier: decision\nresponse: {mode: both}\n";
        self.write("m/module.yaml", manifest)
            .write("m/prompt.md", "Answer.")
            .write("m/schema.json", &schema.to_string())
            .write("reply", &reply.to_string())
    }

    pub(crate) fn cogn(&self, args: &[&str]) -> Command {
        let mut command = self.started(cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn")));
        command.args(args);
        command
    }

    /// Starts a program in this place, isolated from this machine.
    pub(crate) fn started(&self, mut command: Command) -> Command {
        command.current_dir(self.dir.path().join("project")).env_clear();
        command.env("HOME", self.dir.path().join("home")).env("TMPDIR", self.temporary());
        command.env("PATH", "/usr/bin:/bin").env("COGN_OFFLINE", "1").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        output(self.cogn(args).stdout(Stdio::piped()))
    }

    /// Runs `cogn` with a stdout that is always full.
    pub(crate) fn run_full(&self, args: &[&str]) -> Output {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        output(self.cogn(args).stdout(full))
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// Returns the texts of all remaining temporary files.
    pub(crate) fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.temporary()).unwrap();
        entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
    }
}

pub(crate) fn output(command: &mut Command) -> Output {
    let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    Output {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
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
