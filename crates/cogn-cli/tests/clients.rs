//! `cogn serve` as a process, with real clients: curl, Python and a browser. All of them get the same chunks, over all
//! three transports. A test is skipped if its client is not installed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use cognitive_contract::stream::check_log;
use cognitive_testkit::{Lack, PATIENCE, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "providers/stub.rs"]
mod stub;

use stub::{Act, Stub, piece};

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
    text + &piece("", Some("stop")) + "data: [DONE]\n\n"
}

/// A server with one module. It is killed when this value is dropped.
struct Server {
    child: Child,
    base: String,
    _home: TempDir,
    _service: Stub,
}

impl Server {
    fn start(more: &[&str]) -> Self {
        Self::with_log(&[&["--quiet"], more].concat())
    }

    /// Starts a server that logs to a pipe of which only the first line is read.
    fn with_log(more: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let module = home.path().join("cognitive/modules/words");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::write(module.join("module.yaml"), MANIFEST).unwrap();
        std::fs::write(module.join("prompt.md"), "Find the words.").unwrap();
        std::fs::write(module.join("schema.json"), SCHEMA).unwrap();
        let service = Stub::start(vec![Act::stream(answer())]);
        let url = service.url();
        let mut child = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
            .args(["serve", "--port", "0", "--rate", "0", "--streams", "0"])
            .args(["--provider", "openai", "--base-url", &url, "--model", "stub"])
            .args(more)
            .current_dir(home.path())
            .env_clear()
            .env("HOME", home.path())
            .env("OPENAI_API_KEY", "sk-test")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        let base = said.split_whitespace().find(|word| word.starts_with("http://"));
        let base = base.unwrap_or_else(|| panic!("{said}")).trim_end_matches(',').to_owned();
        Self { child, base, _home: home, _service: service }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

fn by_curl(server: &Server, accept: &str) -> Option<String> {
    let mut curl = Command::new("curl");
    curl.args(["-sN", "--noproxy", "*", "-H", "content-type: application/json", "-H"]);
    curl.arg(format!("accept: {accept}")).args(["-d", r#"{"text": "winter snow"}"#]);
    curl.arg(format!("{}/api/run/words", server.base));
    let output = output(curl);
    if output.is_none() {
        skip(Lack::Curl);
    }
    output
}

/// Returns the chunks that every client must get, as read by curl.
fn expected(server: &Server) -> Option<Vec<Value>> {
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
    let server = Server::start(&[]);
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
    let server = Server::start(&[]);
    let Some(expected) = expected(&server) else { return };
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let able = std::env::split_paths(&pythons).find(|python| {
        let mut check = Command::new(python);
        check.args(["-c", "import httpx, httpx_sse, websockets"]).stderr(Stdio::null());
        check.status().is_ok_and(|status| status.success())
    });
    let Some(python) = able else { return skip(Lack::PythonClients) };
    let mut script = Command::new(python);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/clients.py")).arg(&server.base);
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
    let server = Server::start(&[]);
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
        let report = fuzzer.arg(format!("{}/openapi.json", server.base)).output().unwrap();
        assert!(report.status.success(), "{filter}: {}", String::from_utf8_lossy(&report.stdout));
    }
}

// An unread log blocks neither the requests nor the shutdown.
#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_reads_does_not_hold_up_the_server() {
    let mut server = Server::with_log(&[]);
    let address = server.base.strip_prefix("http://").unwrap().to_owned();
    // Each line is longer than its path; a pipe buffers 64 KiB.
    let path = "x".repeat(250);
    for _ in 0..1_000 {
        let mut connection = TcpStream::connect(&address).unwrap();
        write!(connection, "GET /{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
    let kill = format!("kill -TERM {}", server.child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert!(server.child.wait().unwrap().success());
}

/// Serves the page from another origin than the server's, and forwards what the page posts.
fn serve_page() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            if let Some(seen) = answer_browser(connection)
                && tell.send(seen).is_err()
            {
                return;
            }
        }
    });
    (origin, told)
}

/// Answers one request with the page; returns the posted value.
fn answer_browser(mut connection: TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).ok()?;
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let page = include_str!("clients/page.html");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
    let _ = write!(connection, "{head}content-length: {}\r\n\r\n{page}", page.len());
    first.starts_with("POST /seen").then(|| serde_json::from_slice(&body).unwrap())
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
    let (origin, told) = serve_page();
    let server = Server::start(&["--cors", &origin]);
    let Some(expected) = expected(&server) else { return };
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    browser.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    browser.arg("--remote-debugging-port=0").stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(browser) = browser.arg(format!("{origin}/?server={}", server.base)).spawn() else {
        return skip(Lack::Browser);
    };
    let _browser = Running(browser);
    let chunks = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(timeless(&chunks), expected);
}
