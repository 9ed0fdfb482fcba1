//! A home with a module, servers that share their state, and a model service that answers completely or stops in the
//! middle.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use cognitive_testkit::{Act, FakeModel, FakeReply, FakeRequest, TestServer, Then, piece};
use serde_json::{Value, json};

/// A key of the servers.
pub(crate) const ANN: &str = "authorization: Bearer ann-0123456789abcdef\r\n";

/// Another key.
pub(crate) const BOB: &str = "authorization: Bearer bob-0123456789abcdef\r\n";

/// A third key, which may change modules.
pub(crate) const EVE: &str = "authorization: Bearer eve-0123456789abcdef\r\n";

/// A home with one module, three keys and this configuration.
pub(crate) struct Home(cognitive_testkit::Home);

impl Home {
    pub(crate) fn new(config: &str) -> Self {
        let home = cognitive_testkit::Home::new(env!("CARGO_BIN_EXE_cogn")).with("OPENAI_API_KEY", "sk-test");
        write_module(&home, "talk", &json!({ "response": { "mode": "both" } }));
        // A run that waits ends by what a test does, and never by a time limit.
        home.user_config(&format!("timeout_seconds: 86400\n{config}"));
        home.write(
            "keys",
            "ann ann-0123456789abcdef\nbob bob-0123456789abcdef\neve eve-0123456789abcdef run,author\n",
        );
        Self(home)
    }

    /// Adds an environment variable.
    pub(crate) fn with_env(self, name: &'static str, value: &str) -> Self {
        Self(self.0.with(name, value))
    }

    /// Adds a second module, which emits and accepts context.
    pub(crate) fn with_memory(self) -> Self {
        let context = json!({ "accepts": [{ "type": "session_state" }],
            "emits": [{ "type": "analysis_cache", "ttl": 3_600, "key_pattern": "${module}:${input_hash}" }] });
        write_module(&self.0, "memo", &json!({ "response": { "mode": "both" }, "context": context }));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.folder()
    }

    /// Prepares the program in this home, isolated from this machine.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args, &[]);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn cogn(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs `audit verify` and returns its report.
    pub(crate) fn verified(&self) -> Value {
        let verified = self.cogn(&["audit", "verify", "--json"]);
        serde_json::from_slice(&verified.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&verified.stderr)))
    }

    /// Returns all records, the oldest first.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = String::from_utf8(self.cogn(&["audit", "export", "--jsonl"]).stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A module with a text as input and a rationale as output.
fn write_module(home: &cognitive_testkit::Home, name: &str, more: &Value) {
    home.simple_module(name, more);
    let schema = json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
        "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
    });
    home.write(&format!("cognitive/modules/{name}/schema.json"), schema.to_string());
}

/// A model service. It answers a text that begins with `half` only half the first time, and then waits until its client
/// disconnects.
pub(crate) struct Service {
    pub(crate) url: String,
    model: FakeModel,
}

/// The text of a request, which is between `<` and `>`.
fn text_of(request: &FakeRequest) -> String {
    // The input is the last text in angle brackets; the format of the answer has placeholders in them.
    request.text.rsplit('>').nth(1).and_then(|before| before.rsplit('<').next()).unwrap().to_owned()
}

impl Service {
    pub(crate) fn start() -> Self {
        let known = Mutex::new(BTreeSet::new());
        let model = FakeModel::start(move |_, request| {
            let text = text_of(request);
            let first = format!(
                r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "e"}}, "data": {{"rationale": "Said of {text}: one, two, "#
            );
            let is_new = known.lock().unwrap().insert(text.clone());
            if text.starts_with("half") && is_new {
                return FakeReply::Raw(Act::stream(piece(&first, None)).then(Then::Silence));
            }
            let rest = piece(r#"three."}}"#, None) + &piece("", Some("stop")) + "data: [DONE]\n\n";
            FakeReply::Raw(Act::stream(piece(&first, None) + &rest))
        });
        Self { url: model.url(), model }
    }

    /// Returns the number of requests with a text.
    pub(crate) fn times(&self, text: &str) -> usize {
        self.model.requests().iter().filter(|request| text_of(request) == text).count()
    }

    /// Returns the number of all requests.
    pub(crate) fn total(&self) -> usize {
        self.model.requests().len()
    }
}

/// A started server. It is killed when this value is dropped, if it is still running.
pub(crate) struct Server {
    served: TestServer,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(home: &Home, service: &Service, more: &[&str]) -> Self {
        let mut command =
            home.command(&["serve", "--port", "0", "--streams", "0", "--keys", "keys", "--quiet"]);
        command.args(["--provider", "openai", "--base-url", &service.url, "--model", "stub"]).args(more);
        let served = TestServer::spawn(&mut command);
        Self { address: served.address.clone(), served }
    }

    /// Waits until it has printed this text on stderr.
    pub(crate) fn wait_for(&self, words: &str) {
        self.served.wait_for(words);
    }

    /// Sends SIGTERM, and waits until it has written everything.
    pub(crate) fn stop(self) {
        let _said = self.served.stop();
    }
}

/// Sends a request; the response can be read from the returned stream.
pub(crate) fn request(address: &str, operation: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{operation} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads the status and the whole response.
fn whole(mut stream: TcpStream) -> (u16, String) {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    // A page may be compressed.
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

/// Sends a run; the response can be read from the returned stream.
pub(crate) fn ask(address: &str, module: &str, headers: &str, body: &Value) -> TcpStream {
    request(address, &format!("POST /api/run/{module}"), &format!("{ANN}{headers}"), &body.to_string())
}

/// Sends a request with a key and returns the status and the whole response.
pub(crate) fn send(address: &str, operation: &str, key: &str, body: &str) -> (u16, String) {
    whole(request(address, operation, key, body))
}

/// Sends a run and returns the status and the whole response.
pub(crate) fn answer(address: &str, module: &str, body: &Value) -> (u16, String) {
    whole(ask(address, module, "", body))
}
