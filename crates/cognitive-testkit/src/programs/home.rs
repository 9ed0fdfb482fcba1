//! A temporary folder that is home and project at once, and one run of the program in it. The environment of the test is not
//! passed on.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::command;

/// A home folder with nothing from this machine. It is removed when this value is dropped.
pub struct Home {
    folder: TempDir,
    program: PathBuf,
}

/// The result of a process.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Finished {
    /// The envelope on standard output.
    ///
    /// # Panics
    /// If there is none.
    #[expect(clippy::panic, reason = "in a test, a panic is the report")]
    #[must_use]
    pub fn envelope(&self) -> Value {
        let last = self.out.lines().last().unwrap_or_default();
        let parsed = serde_json::from_str(&self.out).or_else(|_| serde_json::from_str(last));
        parsed.unwrap_or_else(|_| panic!("no envelope: {self:?}"))
    }
}

#[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
impl Home {
    /// A home for this program: `env!("CARGO_BIN_EXE_cogn")`.
    ///
    /// # Panics
    /// If there is no room for temporary folders.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), program: program.into() }
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
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(self.folder())).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Writes the configuration file of the user.
    pub fn user_config(&self, text: &str) {
        self.write(".cognitive/config.yaml", text);
    }

    /// Writes the configuration file of the project.
    pub fn project_config(&self, text: &str) {
        self.write("cognitive.yaml", text);
    }

    /// Writes a module of the project: its manifest, its prompt and its contract.
    pub fn module(&self, name: &str, manifest: &str, prompt: &str, schema: &Value) {
        let folder = format!("cognitive/modules/{name}");
        self.write(&format!("{folder}/module.yaml"), manifest);
        self.write(&format!("{folder}/prompt.md"), prompt);
        self.write(&format!("{folder}/schema.json"), &schema.to_string());
    }

    /// The program, ready to start in this home.
    #[must_use]
    pub fn command(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = command(&self.program);
        command.args(args).current_dir(self.folder()).env_clear();
        command.env("HOME", self.folder()).env("COGN_OFFLINE", "1").envs(environment.iter().copied());
        command
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn run(&self, args: &[&str], environment: &[(&str, &str)], stdin: &str) -> Finished {
        let mut command = self.command(args, environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        if let Some(mut input) = child.stdin.take() {
            // A command that does not read its input closes the pipe; that is its right.
            let _ = input.write_all(stdin.as_bytes());
        }
        let output = child.wait_with_output().expect("the output of the program");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Finished { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}
