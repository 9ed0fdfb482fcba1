//! `cogn run --otlp` with a local collector: the sent spans, and that an unreachable or hanging collector does not
//! matter.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use cognitive_testkit::SilentAddress;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Creates a home with `whole`, which is composed of `one` and `two`, and with a saved reply for each of them.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let parts = "composition:\n  requires: [{name: one}, {name: two}]\n  dataflow: [{from: [one.output, two.output], to: output, aggregate: array}]\n";
    for (name, more) in [("one", ""), ("two", ""), ("whole", parts)] {
        let folder = home.path().join("cognitive/modules").join(name);
        fs::create_dir_all(&folder).unwrap();
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\ntier: decision\nresponsibility: Join.\nresponse:\n  mode: both\n{more}"
        );
        fs::write(folder.join("module.yaml"), manifest).unwrap();
        fs::write(folder.join("schema.json"), r#"{"input":{"type":"object"},"data":{"type":"object"}}"#)
            .unwrap();
        fs::write(folder.join("prompt.md"), "The secret prompt.\n").unwrap();
    }
    let reply = json!({ "ok": true, "meta": { "confidence": 0.6, "risk": "low", "explain": "a secret" },
                        "data": { "rationale": "a secret reason" } });
    fs::write(home.path().join("reply.json"), reply.to_string()).unwrap();
    home
}

/// Runs a module with the saved reply and returns exit code, stdout and stderr.
fn run(home: &Path, module: &str, more: &[&str]) -> (i32, String, String) {
    let output = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
        .args(["run", module, "--input", r#"{"text": "a secret text"}"#, "--reply", "reply.json"])
        .args(more)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A collector. All spans that it has taken so far come out of it: a slow run sends several batches.
struct Collector {
    address: String,
    taken: Receiver<Vec<Value>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (take, taken) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, take) = (stream.unwrap(), take.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    // A batch is handed on before its sender hears that it has arrived.
                    while let Some(spans) = read_batch(&mut reader) {
                        take.send(spans).unwrap();
                        let _ = reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
                    }
                });
            }
        });
        Self { address, taken }
    }

    /// The spans of a program that has ended.
    fn spans(&self) -> Vec<Value> {
        self.taken.try_iter().flatten().collect()
    }
}

/// The spans of the next request; `None` at the end of the connection.
fn read_batch(reader: &mut BufReader<TcpStream>) -> Option<Vec<Value>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(head.starts_with("POST /v1/traces ") && !body.contains("secret"), "{body}");
    let batch: Value = serde_json::from_str(&body).unwrap();
    Some(batch.pointer("/resourceSpans/0/scopeSpans/0/spans").unwrap().as_array().unwrap().clone())
}

/// Returns the spans as `parent > name`, sorted.
fn edges(spans: &[Value]) -> Vec<String> {
    let parent = |span: &Value| {
        let above = spans.iter().find(|above| above["spanId"] == span["parentSpanId"]);
        above.map_or_else(String::new, |above| format!("{} > ", above["name"].as_str().unwrap()))
    };
    let mut edges: Vec<String> =
        spans.iter().map(|span| parent(span) + span["name"].as_str().unwrap()).collect();
    edges.sort();
    edges
}

const TREE: [&str; 5] = [
    "run one > chat saved-reply",
    "run two > chat saved-reply",
    "run whole",
    "run whole > run one",
    "run whole > run two",
];

#[test]
fn a_composition_from_the_shell_is_a_tree_in_a_collector() {
    let (home, collector) = (home(), Collector::start());
    let (code, out, err) = run(home.path(), "whole", &["--otlp", &collector.address]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let envelope: Value = serde_json::from_str(&out).unwrap();
    let trace = envelope["meta"]["trace_id"].as_str().unwrap().replace('-', "");
    let spans = collector.spans();
    assert_eq!(edges(&spans), TREE);
    assert!(spans.iter().all(|span| span["traceId"] == trace.as_str()), "{trace}: {spans:?}");
    let whole = spans.iter().find(|span| span["name"] == "run whole").unwrap();
    assert!(whole.get("parentSpanId").is_none(), "{whole}");
}

#[test]
fn streams_and_repetitions_are_drawn_too() {
    let (home, collector) = (home(), Collector::start());
    let (code, out, err) = run(home.path(), "whole", &["--stream", "--otlp", &collector.address]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(edges(&collector.spans()), TREE);
    let twice = ["--until", "$.meta.confidence > 0.9", "--max-iterations", "2", "--otlp", &collector.address];
    assert_eq!(run(home.path(), "one", &twice).0, 0);
    let call = "run one > chat saved-reply";
    let round = "repeat one > run one";
    assert_eq!(edges(&collector.spans()), ["repeat one", round, round, call, call]);
}

// An unreachable collector, and one that never answers: the run prints the same, and one line reports the loss.
#[test]
fn a_collector_that_is_away_or_asleep_changes_nothing_but_a_warning() {
    let home = home();
    let asleep = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = SilentAddress::take();
    let gone = silent.address();
    for address in [gone, asleep.local_addr().unwrap()] {
        let (code, out, err) = run(home.path(), "whole", &["--otlp", &format!("http://{address}")]);
        let envelope: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &envelope["ok"]), (0, &json!(true)), "{out}");
        assert_eq!(envelope["meta"].get("warnings"), None, "{out}");
        assert_eq!(err, "warning: 5 spans were lost: the collector did not take them\n");
    }
    let (code, out, err) = run(home.path(), "no-such-module", &["--otlp", &format!("http://{gone}")]);
    assert_eq!(
        (code, err.as_str()),
        (1, "warning: 1 span was lost: the collector did not take it\n"),
        "{out}"
    );
}

#[test]
fn what_is_no_address_is_refused_before_anything_runs() {
    let home = home();
    let (code, out, err) = run(home.path(), "whole", &["--otlp", "secret-nonsense"]);
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &envelope["error"]["code"]), (1, &json!("E1001")), "{out}{err}");
    assert!(out.contains("collector") && !out.contains("secret"), "{out}");
    assert_eq!(envelope["meta"].get("trace_id"), None, "nothing ran: {out}");
}
