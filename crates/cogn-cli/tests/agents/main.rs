//! Agents as people run them: `cogn mcp` started by the clients of the protocol that its authors publish, for Python and for Node in
//! both of its lines, and the same tools at `/mcp` of a server. Every bundled module answers as on the command line.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

#[path = "../typescript/model.rs"]
#[expect(dead_code, reason = "other tests hold calls and wait until they are left")]
mod model;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cognitive_testkit::{Lack, skip};
use model::{Model, recorded};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home of its own, and a model that answers with what was recorded.
struct Stage {
    home: TempDir,
    model: Model,
}

impl Stage {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), model: Model::start(recorded()) }
    }

    fn provider(&self) -> [String; 6] {
        let url = format!("{}/v1", self.model.url());
        ["--provider", "openai", "--model", "stub", "--base-url", &url].map(str::to_owned)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.env("OPENAI_API_KEY", "sk-test").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// What a client is told: how to start the server, and what to call.
    fn world(&self, more: Value) -> PathBuf {
        let arguments: Vec<String> =
            ["mcp", "--tools", "all"].map(str::to_owned).into_iter().chain(self.provider()).collect();
        let calls: Vec<Value> =
            recorded().iter().map(|each| json!({ "module": each.module, "input": each.input })).collect();
        let mut world = json!({ "command": env!("CARGO_BIN_EXE_cogn"), "args": arguments, "calls": calls,
            "env": { "HOME": self.home.path(), "OPENAI_API_KEY": "sk-test" } });
        world.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let file = self.home.path().join("world.json");
        std::fs::write(&file, world.to_string()).unwrap();
        file
    }

    /// What the program of a client prints, which is JSON.
    fn client(mut command: Command) -> Value {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    /// Compares what a client saw with what the command line prints for the same runs.
    fn check(&self, seen: &Value) {
        let mut compared = 0;
        for each in recorded() {
            let mut run = self.command(env!("CARGO_BIN_EXE_cogn"));
            run.args(["run", &each.module, "--input", &each.input.to_string()]).args(self.provider());
            let plain: Value = serde_json::from_slice(&run.output().unwrap().stdout).unwrap();
            let told = &seen["results"][&each.module];
            let text: Value = serde_json::from_str(told["text"].as_str().unwrap()).unwrap();
            assert_eq!(as_floats(text.clone()), as_floats(told["structured"].clone()), "{}", each.module);
            assert_eq!(told["is_error"], json!(!plain["ok"].as_bool().unwrap()), "{}", each.module);
            assert_eq!(lasting(text), lasting(plain), "{}", each.module);
            compared += 1;
        }
        assert!(compared >= 14, "only {compared} modules were compared");
        assert_eq!(seen["tools"].as_array().unwrap().len(), compared, "every module is a tool");
    }
}

/// A value as a program in JavaScript has it, which knows one kind of number.
fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(as_floats).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, as_floats(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

/// An envelope without ids and times. A caller from outside gets other hints: it has no command line here.
fn lasting(mut envelope: Value) -> Value {
    if let Some(error) = envelope.get_mut("error").and_then(Value::as_object_mut) {
        error.shift_remove("suggestion");
    }
    let meta = envelope["meta"].as_object_mut().unwrap();
    for varying in ["trace_id", "latency_ms", "processing_time_ms", "session_id"] {
        meta.shift_remove(varying);
    }
    envelope
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents").join(name)
}

/// A Python with a package.
fn python_with(package: &str) -> Option<PathBuf> {
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_default();
    let import = format!("import {package}");
    std::env::split_paths(&pythons).find(|python| {
        Command::new(python).args(["-c", &import]).output().is_ok_and(|output| output.status.success())
    })
}

/// The folder with the clients for Node.
fn node() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("COGN_TEST_NODE")?);
    let has = |name: &str| folder.join("node_modules/@modelcontextprotocol").join(name).is_dir();
    (has("client") && has("sdk")).then_some(folder)
}

/// Runs a script beside the packages that it imports.
fn node_command(stage: &Stage, folder: &Path, world: &Path) -> Command {
    let packages = stage.home.path().join("node_modules");
    std::os::unix::fs::symlink(folder.join("node_modules"), packages).unwrap();
    let copy = stage.home.path().join("client.mjs");
    std::fs::copy(script("client.mjs"), &copy).unwrap();
    let mut command = stage.command("node");
    command.arg(copy).arg(world);
    command
}

// API-007
#[test]
fn api_007_the_python_client_runs_every_module() {
    let Some(python) = python_with("mcp") else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let world = stage.world(json!({}));
    let mut command = stage.command(python);
    command.arg(script("client.py")).arg(world);
    let seen = Stage::client(command);
    stage.check(&seen);
    assert!(seen["progress"].as_array().unwrap().contains(&json!("begin")), "{}", seen["progress"]);
    assert_eq!(seen["prompts"], seen["tools"]);
}

#[test]
fn the_strict_client_for_node_takes_every_schema_and_every_answer() {
    let Some(folder) = node() else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let world = stage.world(json!({}));
    // It judges every answer by the schema that the tool announced, and throws if it does not fit.
    stage.check(&Stage::client(node_command(&stage, &folder, &world)));
}

/// A server that is ended with this value.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_newer_client_for_node_runs_every_module_over_http() {
    let Some(folder) = node() else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let names: Vec<String> = recorded().into_iter().map(|each| each.module).collect();
    let mut serve = stage.command(env!("CARGO_BIN_EXE_cogn"));
    serve.args(["serve", "--port", "0", "--rate", "0", "--quiet", "--tools", "all"]).args(stage.provider());
    let mut serving = Serving(serve.stderr(Stdio::piped()).spawn().unwrap());
    let mut said = String::new();
    BufReader::new(serving.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let base = said.split_whitespace().find(|word| word.starts_with("http://"));
    let base = base.unwrap_or_else(|| panic!("{said}")).trim_end_matches(',').to_owned();
    let world = stage.world(json!({ "url": format!("{base}/mcp"), "names": names }));
    stage.check(&Stage::client(node_command(&stage, &folder, &world)));
}

/// The published validator takes the skill of every module, and the module inside answers as the original does.
#[test]
fn every_module_is_a_valid_skill() {
    let Some(python) = python_with("skills_ref") else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let run = |module: &str, input: &Value| {
        let mut run = stage.command(env!("CARGO_BIN_EXE_cogn"));
        run.args(["run", module, "--input", &input.to_string()]).args(stage.provider());
        lasting(serde_json::from_slice(&run.output().unwrap().stdout).unwrap())
    };
    let mut judged = 0;
    for each in recorded() {
        let mut export = stage.command(env!("CARGO_BIN_EXE_cogn"));
        let exported =
            export.args(["export", "skill", &each.module, "--install", "agents"]).output().unwrap();
        assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
        let skill = stage.home.path().join(".agents/skills").join(&each.module);
        let validator = python.with_file_name("agentskills");
        let verdict = stage.command(validator).arg("validate").arg(&skill).output().unwrap();
        assert!(verdict.status.success(), "{}: {}", each.module, String::from_utf8_lossy(&verdict.stdout));
        let inside = skill.join("assets").join(&each.module).display().to_string();
        assert_eq!(run(&inside, &each.input), run(&each.module, &each.input), "{}", each.module);
        judged += 1;
    }
    assert!(judged >= 14, "only {judged} modules were judged");
}
