//! A home with a module, servers that share their state, and a model service that answers completely or stops in the
//! middle.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use cognitive_testkit::PATIENCE;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A key of the servers.
pub(crate) const ANN: &str = "authorization: Bearer ann-0123456789abcdef\r\n";

/// Another key.
pub(crate) const BOB: &str = "authorization: Bearer bob-0123456789abcdef\r\n";

/// A third key, which may change modules.
pub(crate) const EVE: &str = "authorization: Bearer eve-0123456789abcdef\r\n";

/// A home with one module, three keys and this configuration.
pub(crate) struct Home {
    dir: TempDir,
    /// Additional environment variables of the program.
    env: Vec<(&'static str, String)>,
}

impl Home {
    pub(crate) fn new(config: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let module = home.path().join("cognitive/modules/talk");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::create_dir_all(home.path().join(".cognitive")).unwrap();
        let manifest = json!({ "name": "talk", "version": "1.0.0", "responsibility": "Talk", "tier": "decision",
            "excludes": [], "response": { "mode": "both" } });
        let schema = json!({
            "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
            "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
        });
        std::fs::write(module.join("module.yaml"), manifest.to_string()).unwrap();
        std::fs::write(module.join("prompt.md"), "Talk.").unwrap();
        std::fs::write(module.join("schema.json"), schema.to_string()).unwrap();
        // A run that waits ends by what a test does, and never by a time limit.
        let config = format!("timeout_seconds: 86400\n{config}");
        std::fs::write(home.path().join(".cognitive/config.yaml"), config).unwrap();
        std::fs::write(
            home.path().join("keys"),
            "ann ann-0123456789abcdef\nbob bob-0123456789abcdef\neve eve-0123456789abcdef run,author\n",
        )
        .unwrap();
        Self { dir: home, env: Vec::new() }
    }

    /// Adds an environment variable.
    pub(crate) fn with_env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// Adds a second module, which emits and accepts context.
    pub(crate) fn with_memory(self) -> Self {
        let modules = self.path().join("cognitive/modules");
        let memo = modules.join("memo");
        std::fs::create_dir(&memo).unwrap();
        for file in ["prompt.md", "schema.json"] {
            std::fs::copy(modules.join("talk").join(file), memo.join(file)).unwrap();
        }
        let manifest = json!({ "name": "memo", "version": "1.0.0", "responsibility": "Talk", "tier": "decision",
            "excludes": [], "response": { "mode": "both" },
            "context": { "accepts": [{ "type": "session_state" }], "emits": [{ "type": "analysis_cache", "ttl": 3_600, "key_pattern": "${module}:${input_hash}" }] } });
        std::fs::write(memo.join("module.yaml"), manifest.to_string()).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Prepares the program in this home, isolated from this machine.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
        command.args(args).current_dir(self.path()).env_clear();
        command.env("HOME", self.path()).env("OPENAI_API_KEY", "sk-test").stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
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

/// A model service, one thread per connection. It answers a text that begins with `half` only half the first time, and
/// then waits until its client disconnects.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) url: String,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Service {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let service = Self { url, asked: Arc::default() };
        let own = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let own = own.clone();
                std::thread::spawn(move || own.serve(stream.unwrap()));
            }
        });
        service
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read_request(&mut stream) else { return };
        let text = request.split('<').nth(1).and_then(|rest| rest.split('>').next()).unwrap().to_owned();
        let times = {
            let mut asked = self.asked.lock().unwrap();
            let times = asked.entry(text.clone()).or_default();
            *times += 1;
            *times
        };
        let is_half = text.starts_with("half") && times == 1;
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let first = format!(
            r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "e"}}, "data": {{"rationale": "Said of {text}: one, two, "#
        );
        let _ = stream.write_all(event(&json!({ "content": first }), None).as_bytes());
        if is_half {
            while stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            return;
        }
        let rest = event(&json!({ "content": r#"three."}}"# }), None)
            + &event(&json!({}), Some("stop"))
            + "data: [DONE]\n\n";
        let _ = stream.write_all(rest.as_bytes());
    }

    /// Returns the number of requests with a text.
    pub(crate) fn times(&self, text: &str) -> usize {
        self.asked.lock().unwrap().get(text).copied().unwrap_or(0)
    }

    /// Returns the number of all requests.
    pub(crate) fn total(&self) -> usize {
        self.asked.lock().unwrap().values().sum()
    }
}

fn event(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "model": "stub", "choices": [choice] }))
}

/// Reads one request, head and body; `None` if the client disconnected before its end.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[start..].to_lowercase();
        length = line.strip_prefix("content-length: ").map_or(length, |text| text.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// A started server. It is killed when this value is dropped, if it is still running.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    said: Arc<(Mutex<String>, Condvar)>,
}

impl Server {
    pub(crate) fn start(home: &Home, service: &Service, more: &[&str]) -> Self {
        let mut command =
            home.command(&["serve", "--port", "0", "--streams", "0", "--keys", "keys", "--quiet"]);
        command.args(["--provider", "openai", "--base-url", &service.url, "--model", "stub"]).args(more);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("http://") && stderr.read_line(&mut said).unwrap() > 0 {}
        let address = said.split("http://").nth(1).unwrap_or_else(|| panic!("{said}"));
        let address = address.split([',', ' ', '\u{1b}']).next().unwrap().trim().to_owned();
        let said = Arc::new((Mutex::new(said), Condvar::new()));
        let heard = Arc::clone(&said);
        // An unread pipe would eventually block the server.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                heard.0.lock().unwrap().push_str(&line);
                heard.1.notify_all();
            }
        });
        Self { child, address, said }
    }

    /// Waits until it has printed this text on stderr.
    pub(crate) fn wait_for(&self, words: &str) {
        let said = self.said.0.lock().unwrap();
        let (said, _) = self.said.1.wait_timeout_while(said, PATIENCE, |said| !said.contains(words)).unwrap();
        assert!(said.contains(words), "{said}");
    }

    /// Sends SIGTERM, and waits until it has written everything.
    pub(crate) fn stop(mut self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success() && self.child.wait().unwrap().success());
    }

    /// Kills the server.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
