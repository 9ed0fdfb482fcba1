//! `cogn run` against real chat completion servers: one with full support, and one that answers 500 to a schema, counts
//! no tokens and breaks off without an error. Both give the same envelope.
//!
//! The servers are Python packages, `xllamacpp` and `llama-cpp-python[server]`, and need a model file.
//! `COGN_TEST_PYTHON` lists the Pythons to search, `COGN_MODEL` names the file. If one is missing, a test is skipped.
//! Nothing is downloaded here.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cognitive_testkit::{Home, Lack, python_with, skip, weights};
use serde_json::{Value, json};

/// A server of a Python package.
struct Package {
    lack: Lack,
    import: &'static str,
    script: &'static str,
}

const PREBUILT: Package =
    Package { lack: Lack::Xllamacpp, import: "xllamacpp", script: "tests/models/servers/prebuilt.py" };
const BUILT_FROM_SOURCE: Package = Package {
    lack: Lack::LlamaCppPython,
    import: "llama_cpp.server.app",
    script: "tests/models/servers/source_built.py",
};

static TURN: Mutex<()> = Mutex::new(());

/// A running server. It stops when this value is dropped, because its input is closed then.
struct Server {
    child: Child,
    /// One server at a time: two would only compete for the CPU.
    _turn: MutexGuard<'static, ()>,
    /// Kept open: a server that cannot write its log would exit.
    _output: BufReader<ChildStdout>,
    url: String,
}

impl Server {
    /// Starts a server; `None`, after `skip`, if something is missing on this machine.
    fn start(package: &Package) -> Option<Self> {
        let model = weights()?;
        let Some(python) = python_with(&format!("import {}", package.import)) else {
            skip(package.lack);
            return None;
        };
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(package.script))
            .arg(model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "{} ended before it listened", package.script);
            if let Some(address) = line.trim().strip_prefix("listening on ") {
                break address;
            }
        };
        let url = format!("{address}/v1");
        Some(Self { child, _turn: turn, _output: output, url })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Writes a module that is easy enough for a small model: two worked examples, one word to find.
fn write_module(home: &Home) {
    let prompt = "Name the colour in the text. Answer in the envelope.\n";
    home.module("./colour", "name: colour\nversion: 1.0.0\ntier: exec\n", prompt, &schema());
    for (colour, text) in [("green", "a green leaf"), ("red", "a red car")] {
        home.write(&format!("colour/examples/{colour}.input.json"), json!({ "text": text }).to_string());
        home.write(&format!("colour/examples/{colour}.answer.json"), answer(colour).to_string());
    }
}

fn schema() -> Value {
    let short = json!({ "type": "string", "maxLength": 40 });
    json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
        "meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": { "type": "number", "minimum": 0.9, "maximum": 1 },
                "risk": { "enum": ["none"] },
                "explain": short,
            },
        },
        "data": {
            "type": "object",
            "required": ["rationale", "colour"],
            "properties": { "rationale": short, "colour": { "enum": ["red", "green", "blue"] } },
            "additionalProperties": false,
        },
    })
}

fn answer(colour: &str) -> Value {
    json!({ "ok": true,
            "meta": { "confidence": 0.95, "risk": "none", "explain": "The word is there." },
            "data": { "rationale": "The text says it.", "colour": colour } })
}

/// Runs the module as a process and returns its envelope.
fn run(server: &Server, more: &[&str]) -> Value {
    let home = crate::home();
    write_module(&home);
    let usual = ["run", "./colour", "--provider", "llamacpp", "--base-url", &server.url, "--model", "small"];
    let limits = ["--seed", "7", "--timeout", "240", "--receipt"];
    let output = home.cogn(&[&usual[..], &limits, more].concat());
    let envelope = output.envelope();
    assert_eq!(output.code == Some(0), envelope["ok"] == json!(true), "{envelope}");
    envelope
}

/// Returns the answer of a run without the values that differ between runs.
fn essence(envelope: &Value) -> Value {
    let meta = &envelope["meta"];
    let meta = json!({ "confidence": meta["confidence"], "risk": meta["risk"], "explain": meta["explain"] });
    json!({ "ok": envelope["ok"], "meta": meta, "data": envelope["data"] })
}

/// Returns the constraint of each attempt, and the status of its answer.
fn attempts(envelope: &Value) -> Vec<(&str, u64)> {
    let attempts = envelope["meta"]["provenance"]["attempts"].as_array().unwrap();
    let attempt = |each: &Value| each["status"].as_u64().unwrap();
    attempts.iter().map(|each| (each["decode"].as_str().unwrap(), attempt(each))).collect()
}

const BLUE: [&str; 4] = ["--set", "text=a blue hat", "--max-tokens", "120"];
const CUT: [&str; 4] = ["--set", "text=a blue hat", "--max-tokens", "8"];

/// Returns more text than the servers accept.
fn too_much() -> String {
    format!("text={}", "word ".repeat(2_000))
}

// D-05, PIPE-010: bound to the schema, with token counts and distinct limit errors.
#[test]
fn d_05_a_server_that_does_as_it_is_asked() {
    let Some(server) = Server::start(&PREBUILT) else { return };
    let envelope = run(&server, &BLUE);
    assert_eq!(essence(&envelope), answer("blue"), "{envelope}");
    assert_eq!(envelope["meta"]["provenance"]["decode"], "native_schema");
    assert_eq!(attempts(&envelope), [("native_schema", 200)]);
    assert!(envelope["meta"]["usage"]["output_tokens"].as_u64().unwrap() > 20, "{envelope}");
    assert_eq!(run(&server, &CUT)["error"]["code"], "E2003");
    assert_eq!(run(&server, &["--set", &too_much()])["error"]["code"], "E4003");
}

// D-05, PIPE-009: the request is reduced to what the server supports, and the answer is the same.
#[test]
fn d_05_a_server_that_fails_on_schemas_and_counts_nothing() {
    let Some(server) = Server::start(&BUILT_FROM_SOURCE) else { return };
    let envelope = run(&server, &BLUE);
    assert_eq!(essence(&envelope), answer("blue"), "{envelope}");
    assert_eq!(envelope["meta"]["provenance"]["decode"], "json_mode");
    assert_eq!(attempts(&envelope), [("native_schema", 500), ("json_mode", 200)]);
    assert_eq!(envelope["meta"].get("usage"), None);
    assert_eq!(run(&server, &CUT)["error"]["code"], "E2003");
    // It answers an oversized prompt with 200 and an empty stream, so the only possible report is that it broke off.
    assert_eq!(run(&server, &["--set", &too_much()])["error"]["code"], "E2010");
}
