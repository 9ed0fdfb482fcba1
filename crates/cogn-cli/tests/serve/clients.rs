//! `cogn serve` as a process, with real clients: curl, Python and a browser. All of them get the same chunks, over all
//! three transports. A test is skipped if its client is not installed.

use std::process::{Child, Command, Stdio};

use cognitive_contract::stream::check_log;
use cognitive_testkit::{
    Act, FakeModel, FakeReply, FakeRequest, Home, Lack, TestServer, piece, python_with, skip,
};
use serde_json::{Value, json};

use crate::{end, home};

const MANIFEST: &str = "name: words\nversion: 1.0.0\nresponsibility: Find words\ntier: decision\nexcludes: []\nresponse:\n  mode: both\n";
const SCHEMA: &str = r#"{
  "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale", "words"], "properties": {
    "rationale": {"type": "string"}, "words": {"type": "array", "items": {"type": "string"}}}}
}"#;

/// A streamed answer of a service, split inside an escape and inside a word.
fn answer() -> String {
    let pieces = [
        r#"{"ok": true, "data": {"rationale": "It is \u26"#,
        r#"15 short", "words": ["wi"#,
        r#"nter", "snow"]}, "meta": {"confidence": 0.9, "#,
        r#""risk": "low", "explain": "Two words"}}"#,
    ];
    let text: String = pieces.iter().map(|text| piece(text, None)).collect();
    text + &end()
}

/// A server with one module, and a service that always gives the same answer.
fn start(more: &[&str]) -> (TestServer, Home) {
    let (mut command, home) = serve(&[&["--quiet"], more].concat());
    (TestServer::spawn(&mut command), home)
}

fn serve(more: &[&str]) -> (Command, Home) {
    let home = home();
    home.module("words", MANIFEST, "Find the words.", &serde_json::from_str(SCHEMA).unwrap());
    let url = FakeModel::script(vec![Act::stream(answer())]).url();
    let usual =
        ["serve", "--port", "0", "--rate", "0", "--streams", "0", "--provider", "openai", "--model", "stub"];
    (home.command(&[&usual[..], &["--base-url", &url], more].concat(), &[]), home)
}

/// Returns the output of a program that must succeed; `None` if it is not installed.
fn output(mut command: Command) -> Option<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::piped()).output().ok()?;
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns chunks without the values that differ between runs.
fn timeless(chunks: &Value) -> Vec<Value> {
    let mut chunks = chunks.as_array().unwrap().clone();
    for chunk in &mut chunks {
        let members = chunk.as_object_mut().unwrap();
        members.shift_remove("session_id");
        members.shift_remove("id");
        if let Some(meta) = members.get_mut("meta").and_then(Value::as_object_mut) {
            meta.shift_remove("trace_id");
            meta.shift_remove("latency_ms");
            meta.shift_remove("processing_time_ms");
        }
    }
    chunks
}

fn by_curl(server: &TestServer, accept: &str) -> Option<String> {
    let mut curl = Command::new("curl");
    curl.args(["-sN", "--noproxy", "*", "-H", "content-type: application/json", "-H"]);
    curl.arg(format!("accept: {accept}")).args(["-d", r#"{"text": "winter snow"}"#]);
    curl.arg(format!("{}/api/run/words", server.url()));
    let output = output(curl);
    if output.is_none() {
        skip(Lack::Curl);
    }
    output
}

/// Returns the chunks that every client must get, as read by curl.
fn expected(server: &TestServer) -> Option<Vec<Value>> {
    let lines = by_curl(server, "application/x-ndjson")?;
    let chunks: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(check_log(&chunks).is_empty(), "{:?}", check_log(&chunks));
    assert_eq!(chunks.last().unwrap()["data"]["words"], json!(["winter", "snow"]));
    let deltas: String = chunks
        .iter()
        .filter(|chunk| chunk["chunk"]["field"] == "data.rationale")
        .filter_map(|chunk| chunk["chunk"]["delta"].as_str())
        .collect();
    assert_eq!(deltas, "It is \u{2615} short");
    Some(timeless(&Value::Array(chunks)))
}

// STREAM-018
#[test]
fn curl_sees_the_same_chunks_as_events_and_as_lines() {
    let (server, _home) = start(&[]);
    let Some(expected) = expected(&server) else { return };
    let events = by_curl(&server, "text/event-stream").unwrap();
    let data: Vec<Value> = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(timeless(&Value::Array(data)), expected);
}

// STREAM-018
#[test]
fn python_sees_the_same_chunks_over_all_three_transports() {
    let (server, _home) = start(&[]);
    let Some(expected) = expected(&server) else { return };
    let able = python_with("import httpx, httpx_sse, websockets");
    let Some(python) = able else { return skip(Lack::PythonClients) };
    let mut script = Command::new(python);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/clients/clients.py")).arg(server.url());
    let seen: Value = serde_json::from_str(&output(script).unwrap()).unwrap();
    for transport in ["events", "lines", "socket"] {
        assert_eq!(timeless(&seen[transport]), expected, "{transport}");
    }
}

/// Returns a program from one of the configured Pythons; `None` if none has it.
fn of_python(program: &str) -> Option<Command> {
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_default();
    let programs = std::env::split_paths(&pythons).map(|python| python.with_file_name(program));
    programs.filter(|path| path.exists()).map(Command::new).next()
}

// Random requests that are generated from `/openapi.json`: none breaks the server, and every answer matches the
// description. The embedded model accepts no media, so modules that need them answer 501, as described.
#[test]
fn requests_made_from_the_description_get_answers_as_described() {
    let (server, _home) = start(&[]);
    let as_described =
        "status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method";
    let unbroken = format!("not_a_server_error,{as_described}");
    let media = "image|audio|video";
    for (filter, checks) in
        [("--exclude-path-regex", unbroken.as_str()), ("--include-path-regex", as_described)]
    {
        let Some(mut fuzzer) = of_python("schemathesis") else { return skip(Lack::PythonClients) };
        let home = tempfile::tempdir().unwrap();
        fuzzer.current_dir(home.path()).args(["run", "--no-color", "--seed", "1", "--max-examples", "10"]);
        fuzzer.args(["--checks", checks, filter, media]);
        let report = fuzzer.arg(format!("{}/openapi.json", server.url())).output().unwrap();
        assert!(report.status.success(), "{filter}: {}", String::from_utf8_lossy(&report.stdout));
    }
}

// An unread log blocks neither the requests nor the shutdown.
#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_reads_does_not_hold_up_the_server() {
    let (mut command, _home) = serve(&[]);
    let server = TestServer::spawn_without_reader(&mut command).unwrap();
    // Each line is longer than its path; a pipe buffers 64 KiB.
    let path = "x".repeat(250);
    for _ in 0..1_000 {
        assert_eq!(server.ask(&format!("GET /{path}"), &[], "").0, 404);
    }
    server.terminate();
    assert_eq!(server.wait_for_end().0, Some(0));
}

/// Serves the page from another origin than the server's. The requests have what the page posts.
fn serve_page() -> FakeModel {
    let page = include_str!("clients/page.html");
    FakeModel::start(move |_, _| FakeReply::Raw(Act::reply(200, "content-type: text/html\r\n", page)))
}

/// A process that is killed when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// STREAM-018, and CORS as a browser implements it.
#[test]
fn a_browser_sees_the_same_chunks_from_another_origin() {
    let page = serve_page();
    let origin = format!("http://{}", page.address);
    let (server, _home) = start(&["--cors", &origin]);
    let Some(expected) = expected(&server) else { return };
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    browser.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    browser.arg("--remote-debugging-port=0").stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(browser) = browser.arg(format!("{origin}/?server={}", server.url())).spawn() else {
        return skip(Lack::Browser);
    };
    let _browser = Running(browser);
    let is_report = |request: &FakeRequest| request.path.starts_with("/seen");
    let found = page.wait_until(|requests| requests.iter().any(is_report));
    let report = found.into_iter().find(is_report).unwrap();
    assert_eq!(timeless(&report.body), expected);
}
