//! The shared setup of the agent tests: a temporary home, a model with recorded replies, the program with both
//! interfaces (`cogn mcp`, `/mcp` of `cogn serve`), and the third-party programs that call it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cognitive_testkit::TestServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::{Model, Recorded, recorded};

/// A temporary home, and a model with recorded replies.
pub(crate) struct Stage {
    pub(crate) home: TempDir,
    pub(crate) model: Model,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::in_home(tempfile::tempdir().unwrap(), recorded())
    }

    /// Creates the stage in a home that has user modules, with their recorded replies.
    pub(crate) fn in_home(home: TempDir, known: Vec<Recorded>) -> Self {
        Self { home, model: Model::start(known) }
    }

    pub(crate) fn provider(&self) -> [String; 6] {
        let url = self.model.url();
        ["--provider", "openai", "--model", "stub", "--base-url", &url].map(str::to_owned)
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = cognitive_testkit::command(program);
        command.current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.env("OPENAI_API_KEY", "sk-test").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// Returns the output of `cogn run` for a module.
    pub(crate) fn run(&self, module: &str, input: &Value) -> Value {
        let mut run = self.command(env!("CARGO_BIN_EXE_cogn"));
        run.args(["run", module, "--input", &input.to_string()]).args(self.provider());
        serde_json::from_slice(&run.output().unwrap().stdout).unwrap()
    }

    /// Returns the arguments of `cogn mcp` with a tool for each module.
    pub(crate) fn mcp_arguments(&self) -> Vec<String> {
        ["mcp", "--tools", "all"].map(str::to_owned).into_iter().chain(self.provider()).collect()
    }

    /// Starts a server with these tools.
    pub(crate) fn serve(&self, tools: &str) -> Serving {
        let mut serve = self.command(env!("CARGO_BIN_EXE_cogn"));
        serve
            .args(["serve", "--port", "0", "--rate", "0", "--grace", "86400", "--quiet", "--tools", tools])
            .args(self.provider());
        let served = TestServer::spawn(&mut serve);
        Serving { url: format!("{}/mcp", served.url()), _served: served }
    }

    /// Writes the instructions for a client: how to start the server, and the calls to make.
    pub(crate) fn world(&self, more: Value) -> PathBuf {
        let calls: Vec<Value> =
            recorded().iter().map(|each| json!({ "module": each.module, "input": each.input })).collect();
        let mut world = json!({ "command": env!("CARGO_BIN_EXE_cogn"), "args": self.mcp_arguments(), "calls": calls,
            "held": { "module": "text-classifier", "input": { "text": "HOLD this" } },
            "env": { "HOME": self.home.path(), "OPENAI_API_KEY": "sk-test" } });
        world.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let file = self.home.path().join("world.json");
        std::fs::write(&file, world.to_string()).unwrap();
        file
    }
}

/// Returns the JSON output of a program.
pub(crate) fn printed_json(command: Command) -> Value {
    printed_with_line(command, || {}, || {})
}

/// Returns the JSON output of a program that waits for a line on stdin and ends when stdin closes: the line is sent
/// after `before`, the close after `after`.
pub(crate) fn printed_with_line(mut command: Command, before: impl FnOnce(), after: impl FnOnce()) -> Value {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut line = process.stdin.take().unwrap();
    before();
    // If the program has ended already, its output has the reason.
    let _ = line.write_all(b"go on\n");
    after();
    drop(line);
    let output = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}{said}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}: {said}"))
}

/// A server that is killed when this value is dropped.
pub(crate) struct Serving {
    pub(crate) url: String,
    _served: TestServer,
}

/// Strips ids and times from an envelope. The hints also differ, because an outside caller has no command line.
pub(crate) fn lasting(mut envelope: Value) -> Value {
    if let Some(error) = envelope.get_mut("error").and_then(Value::as_object_mut) {
        error.shift_remove("suggestion");
    }
    let meta = envelope["meta"].as_object_mut().unwrap();
    for varying in ["trace_id", "latency_ms", "processing_time_ms", "session_id"] {
        meta.shift_remove(varying);
    }
    envelope
}

/// Returns the path of a file in the folder of these tests.
pub(crate) fn fixture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents").join(name)
}

/// Returns a Python that has this package.
pub(crate) fn python_with(package: &str) -> Option<PathBuf> {
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_default();
    let import = format!("import {package}");
    std::env::split_paths(&pythons).find(|python| {
        Command::new(python).args(["-c", &import]).output().is_ok_and(|output| output.status.success())
    })
}

/// Returns the folder with the clients for Node.
pub(crate) fn node() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("COGN_TEST_NODE")?);
    let has = |name: &str| folder.join("node_modules/@modelcontextprotocol").join(name).is_dir();
    (has("client") && has("sdk")).then_some(folder)
}

/// Returns the suite and the MCP Inspector: the Node that they need, and their package folder.
pub(crate) fn mcp_suite() -> Option<(PathBuf, PathBuf)> {
    let packages = PathBuf::from(std::env::var_os("COGN_TEST_MCP")?).join("node_modules");
    let (node, all) = (packages.join(".bin/node"), packages.join("@modelcontextprotocol"));
    let has = |name: &str| all.join(name).is_dir();
    (node.exists() && has("conformance") && has("inspector")).then_some((node, all))
}
