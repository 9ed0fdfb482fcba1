//! Runs every example as a process, with a local stub model, no key and no network. The first example is also the first
//! page of the documentation, word for word.
#![cfg(all(feature = "net", feature = "store"))]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test, a panic is the report")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

/// Returns an example that `cargo test` has built next to this test.
fn example(name: &str, home: &Path) -> Command {
    let own = std::env::current_exe().unwrap();
    let built: PathBuf = own.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(built.exists(), "`cargo test -p cogn` builds the examples: {}", built.display());
    let mut command = Command::new(built);
    // Isolated from this machine: no key, no configuration and no database of the user.
    command.env_clear().env("HOME", home).env("COGN_OFFLINE", "1").current_dir(home);
    command
}

/// Runs an example to its end.
fn output(mut command: Command) -> (bool, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// Starts a stub model that answers every request with this envelope.
fn model(data: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    let text = json!({ "ok": true, "meta": meta, "data": data }).to_string();
    let event = |delta: Value, end: Value| json!({ "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] });
    let body = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        event(json!({ "content": text }), Value::Null),
        event(json!({}), json!("stop"))
    );
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            read_request(&connection);
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            let _the_client_may_have_left = connection.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}/v1")
}

fn read_request(connection: &TcpStream) {
    let mut reader = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.take(length).read_to_end(&mut Vec::new()).unwrap();
}

/// Prepares an example that calls the stub model of this test.
fn asking(name: &str, home: &Path, url: &str) -> Command {
    let mut command = example(name, home);
    command
        .env("LLM_PROVIDER", "openai")
        .env("OPENAI_API_KEY", "none-that-counts")
        .env("OPENAI_BASE_URL", url);
    command
}

fn summary() -> Value {
    json!({ "rationale": "One topic.", "summary": "Short." })
}

#[test]
fn hello_says_what_the_model_says() {
    let home = tempfile::tempdir().unwrap();
    let url = model(&json!({ "rationale": "r", "sentiment": "positive", "label": "day" }));
    assert_eq!(
        output(asking("hello", home.path(), &url)),
        (true, "\"positive\"\n".to_owned(), String::new())
    );
}

// The contract of `Runtime::from_env`: it prints nothing, downloads nothing, and the envelope names what is missing.
#[test]
fn hello_without_weights_says_how_to_get_them() {
    let home = tempfile::tempdir().unwrap();
    let mut command = example("hello", home.path());
    command.env_remove("COGN_OFFLINE");
    let (good, out, err) = output(command);
    assert!(good && err.is_empty(), "{err}");
    assert!(out.starts_with("E4001: the embedded model has no weights: "), "{out}");
    assert!(out.contains("(hint: Either run `cogn model pull`"), "{out}");
    assert!(!home.path().join(".cache").exists(), "nothing was fetched");
}

#[test]
fn typed_reads_the_answer_as_a_struct_and_fails_as_programs_do() {
    let home = tempfile::tempdir().unwrap();
    let url = model(&summary());
    assert_eq!(
        output(asking("typed_answer", home.path(), &url)),
        (true, "Short. (0.9)\n".to_owned(), String::new())
    );
    let (good, out, err) = output(example("typed_answer", home.path()));
    assert!(!good && out.is_empty() && err.starts_with("Error: E4001: "), "{err}");
}

#[test]
fn stream_ends_with_the_envelope() {
    let home = tempfile::tempdir().unwrap();
    let url = model(&summary());
    let (good, out, err) = output(asking("stream", home.path(), &url));
    assert!(good && err.is_empty(), "{err}");
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["data"], summary(), "{out}");
    let (good, out, _) = output(example("stream", home.path()));
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert!(good && last["error"]["code"] == "E4001", "{out}");
}

#[test]
fn own_provider_answers_without_anything_else() {
    let home = tempfile::tempdir().unwrap();
    let (good, out, err) = output(example("own_provider", home.path()));
    assert!(good && err.is_empty(), "{err}");
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(envelope["data"]["sentiment"], "positive");
    assert_eq!(envelope["meta"]["model"], "enthusiast/v1");
    assert_eq!(
        std::fs::read_dir(home.path()).unwrap().count(),
        0,
        "a builder keeps nothing that it was not given"
    );
}

#[test]
fn own_tool_is_called_for_the_module_that_requests_it() {
    let home = tempfile::tempdir().unwrap();
    let (good, out, err) = output(example("own_tool", home.path()));
    assert!(good && err.is_empty(), "{err}");
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(envelope["data"]["rationale"], r#"The order book says {"status":"on its way"}"#, "{out}");
}

/// A server that is killed at the end of the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().expect("it runs until it is ended");
        self.0.wait().unwrap();
    }
}

fn post(url: &str, body: &str) -> (String, Value) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        connection,
        "POST /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn axum_server_answers_with_envelopes() {
    let home = tempfile::tempdir().unwrap();
    let mut command = asking("axum_server", home.path(), &model(&summary()));
    let mut served = Served(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(served.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (status, envelope) = post(line.trim(), r#"{"text": "A long text."}"#);
    assert_eq!((status.as_str(), &envelope["data"]), ("HTTP/1.1 200 OK", &summary()));
    let (status, envelope) = post(line.trim(), "{");
    assert!(status.starts_with("HTTP/1.1 422"), "{status}");
    assert_eq!(envelope["error"]["code"], "E1000");
}

#[test]
fn the_first_page_shows_the_first_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let page = read("src/lib.rs");
    let shown: Vec<&str> = page
        .lines()
        .skip_while(|line| *line != "//! ```")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| line.strip_prefix("//!").unwrap().strip_prefix(' ').unwrap_or_default())
        .collect();
    let program = read("examples/hello.rs");
    let program: Vec<&str> = program.lines().skip_while(|line| !line.starts_with("use ")).collect();
    assert_eq!(shown, program);
}
