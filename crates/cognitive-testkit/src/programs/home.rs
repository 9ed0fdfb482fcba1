//! A temporary folder that is home and project at once, and one run of the program in it. The environment of the test is not
//! passed on.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "in a test, a panic is the report"
)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command;

/// A home folder with nothing from this machine. It is removed when this value is dropped.
pub struct Home {
    folder: TempDir,
    program: PathBuf,
    environment: Vec<(String, String)>,
}

/// The result of a process.
#[derive(Debug, Clone)]
pub struct ProcessOutput {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
    /// The JSON value on its standard output, whole or in the last line; null if there is none.
    pub json: Value,
}

impl ProcessOutput {
    /// The result of a command that has to start.
    #[must_use]
    pub fn run(command: &mut Command) -> Self {
        Self::from(command.output().expect("the program"))
    }

    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> i32 {
        self.code.unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// Checks the exit code.
    #[expect(clippy::must_use_candidate, clippy::return_self_not_must_use, reason = "the check may be all")]
    #[track_caller]
    pub fn expect_exit(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Checks that standard output has these texts.
    #[track_caller]
    pub fn assert_stdout(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.out.contains(text), "no `{text}` in {self:?}");
        }
    }

    /// Checks that standard error has these texts.
    #[track_caller]
    pub fn err_has(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.err.contains(text), "no `{text}` in {self:?}");
        }
    }

    /// The envelope on standard output.
    #[must_use]
    pub fn envelope(&self) -> Value {
        assert!(!self.json.is_null(), "no envelope: {self:?}");
        self.json.clone()
    }

    /// The JSON values on standard output, one per line.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}")))
            .collect()
    }

    /// Both outputs.
    #[must_use]
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// Exit code, standard output and standard error.
    #[must_use]
    pub fn parts(self) -> (i32, String, String) {
        (self.exit(), self.out, self.err)
    }
}

impl From<Output> for ProcessOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (out, err) = (text(output.stdout), text(output.stderr));
        let last = out.lines().last().unwrap_or_default();
        let json = serde_json::from_str(&out).or_else(|_| serde_json::from_str(last)).unwrap_or_default();
        Self { code: output.status.code(), out, err, json }
    }
}

impl Home {
    /// A home for this program: `env!("CARGO_BIN_EXE_cogn")`.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder, program: program.into(), environment: Vec::new() }
    }

    /// The same home with a variable for every process.
    #[must_use]
    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.environment.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(self.folder())).expect("a folder");
        fs::write(path, text).expect("a file");
        self
    }

    /// The text of a file in it.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes the configuration file of the user.
    pub fn user_config(&self, text: &str) {
        self.write(".cognitive/config.yaml", text);
    }

    /// Writes the configuration file of the project.
    pub fn project_config(&self, text: &str) {
        self.write("cognitive.yaml", text);
    }

    /// Writes a module: its manifest, its prompt and its contract. The name may be a path, such as `./m`; otherwise the module is one of
    /// the project.
    pub fn module(&self, name: &str, manifest: &str, prompt: &str, schema: &Value) {
        let folder = if name.contains('/') { name.to_owned() } else { format!("cognitive/modules/{name}") };
        self.write(&format!("{folder}/module.yaml"), manifest);
        self.write(&format!("{folder}/prompt.md"), prompt);
        self.write(&format!("{folder}/schema.json"), schema.to_string());
    }

    /// Writes a module that takes any object and answers with a rationale. `more` extends or replaces members of its manifest.
    pub fn simple_module(&self, name: &str, more: &Value) {
        let own_name = name.rsplit('/').next().unwrap_or(name);
        let mut manifest = json!({
            "name": own_name, "version": "1.0.0", "responsibility": "Answer a question", "tier": "decision", "excludes": ["guessing"],
        });
        for (member, value) in more.as_object().into_iter().flatten() {
            manifest[member] = value.clone();
        }
        let data = json!({ "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } });
        let schema = json!({ "input": { "type": "object" }, "data": data });
        self.module(name, &manifest.to_string(), "Answer.", &schema);
    }

    /// The program, ready to start in this home.
    #[must_use]
    pub fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = command(&self.program);
        command.args(args).current_dir(self.folder()).env_clear();
        command.env("HOME", self.folder()).env("COGN_OFFLINE", "1");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(environment.iter().copied());
        command
    }

    /// Runs the program to its end.
    #[must_use]
    pub fn run(&self, args: &[&str], environment: &[(&str, &str)], stdin: &str) -> ProcessOutput {
        let mut command = self.command(args, environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        if let Some(mut input) = child.stdin.take() {
            // A command that does not read its input closes the pipe; that is its right.
            let _ = input.write_all(stdin.as_bytes());
        }
        ProcessOutput::from(child.wait_with_output().expect("the output of the program"))
    }

    /// Runs the program to its end, without an input.
    #[must_use]
    pub fn cogn(&self, args: &[&str]) -> ProcessOutput {
        self.run(args, &[], "")
    }

    /// Runs the program to its end and reads JSON from its standard output.
    #[must_use]
    pub fn json(&self, args: &[&str]) -> Value {
        self.cogn(args).envelope()
    }
}
