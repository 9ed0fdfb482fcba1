//! A home with a module, a server, runs as processes, and a model service that records its requests and blocks where a
//! test needs it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use cognitive_testkit::{TestServer, good_answer, piece};
use serde_json::{Value, json};

pub(crate) const ANN: &str = "ann-0123456789abcdef";
pub(crate) const BOB: &str = "bob-0123456789abcdef";

/// A home with one module, two keys and this configuration.
pub(crate) struct Home(cognitive_testkit::Home);

impl Home {
    pub(crate) fn new(config: &str) -> Self {
        let home = cognitive_testkit::Home::new(env!("CARGO_BIN_EXE_cogn")).with("OPENAI_API_KEY", "sk-test");
        home.simple_module(
            "talk",
            &json!({ "response": { "mode": "both" }, "tools": { "allowed": ["current_time"] } }),
        );
        let schema = json!({
            "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
            "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
        });
        home.write("cognitive/modules/talk/schema.json", schema.to_string());
        // A run that is held ends by its signal or its client, and never by a time limit, however slow the machine is.
        home.user_config(&format!("timeout_seconds: 86400\n{config}"));
        home.write("keys", format!("ann {ANN}\nbob {BOB}\n"));
        Self(home)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.folder()
    }

    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.path().join(".cognitive/cognitive.db")
    }

    /// Prepares the program in this home, isolated from this machine.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args, &[]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program and returns its output.
    pub(crate) fn cogn(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Returns all records, the oldest first.
    pub(crate) fn records(&self) -> Vec<Value> {
        let exported = self.cogn(&["audit", "export", "--jsonl"]);
        let text = String::from_utf8(exported.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the result of `audit verify`.
    pub(crate) fn verified(&self) -> (bool, Value) {
        let verified = self.cogn(&["audit", "verify", "--json"]);
        (verified.status.success(), serde_json::from_slice(&verified.stdout).unwrap())
    }

    /// Starts a run of the module as a process.
    pub(crate) fn run(&self, service: &Service, text: &str, user: &str) -> Child {
        let text = format!("text={text}");
        let args = ["run", "talk", "--set", &text, "--provider", "openai", "--model", "stub", "--user", user];
        self.command(&args)
            .args(["--base-url", &service.url])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Sends a signal.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// The reaction of the service to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// It answers.
    Answer,
    /// It waits until the client disconnects.
    Hold,
    /// It disconnects in the middle of its answer.
    Cut,
    /// It calls as many tools as possible, forever.
    Tools,
}

#[derive(Debug, Default)]
struct Seen {
    /// The number of requests by text.
    asked: BTreeMap<String, usize>,
    /// The requests whose client disconnected.
    left: BTreeMap<String, usize>,
    /// True if no more requests are expected.
    over: bool,
}

/// A model service, one thread per connection.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(crate) url: String,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Service {
    /// Starts the service. `act` gets the text of a request, which is between `<` and `>`, and returns the reaction.
    pub(crate) fn start(act: impl Fn(&str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let service = Self { url, seen: Arc::default() };
        let (own, act) = (service.clone(), Arc::new(act));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (own, act) = (own.clone(), Arc::clone(&act));
                std::thread::spawn(move || own.serve(stream.unwrap(), act.as_ref()));
            }
        });
        service
    }

    fn serve(&self, mut stream: TcpStream, act: &dyn Fn(&str) -> Act) {
        let Some(request) = read_request(&mut stream) else { return };
        // The input is the last text in angle brackets; the format of the answer has placeholders in them.
        let text =
            request.rsplit('>').nth(1).and_then(|before| before.rsplit('<').next()).unwrap().to_owned();
        self.note(|seen| *seen.asked.entry(text.clone()).or_default() += 1);
        let act = act(&text);
        let body = match act {
            Act::Answer => answer(),
            Act::Hold => String::new(),
            Act::Cut => piece(r#"{"ok": true, "data": {"rationale": "It is"#, None),
            Act::Tools => tools(),
        };
        let more = usize::from(matches!(act, Act::Hold | Act::Cut));
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len() + more
        );
        let written = stream.write_all((head + &body).as_bytes());
        if act == Act::Hold && written.is_ok() {
            while stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        }
        self.note(|seen| *seen.left.entry(text).or_default() += 1);
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.0.lock().unwrap());
        self.seen.1.notify_all();
    }

    fn wait(&self, until: impl Fn(&Seen) -> bool) -> bool {
        let seen = self.seen.0.lock().unwrap();
        let seen = self.seen.1.wait_while(seen, |seen| !until(seen) && !seen.over).unwrap();
        until(&seen)
    }

    /// Waits until a text was requested; false if no more requests are expected.
    pub(crate) fn was_asked(&self, text: &str) -> bool {
        self.wait(|seen| seen.asked.contains_key(text))
    }

    /// Waits until this number of texts was requested in total.
    pub(crate) fn were_asked(&self, count: usize) -> bool {
        self.wait(|seen| seen.asked.values().sum::<usize>() >= count)
    }

    /// Waits until the client of a text has disconnected.
    pub(crate) fn was_left(&self, text: &str) -> bool {
        self.wait(|seen| seen.left.contains_key(text))
    }

    /// Ends all waiting, or allows it again.
    pub(crate) fn over(&self, over: bool) {
        self.note(|seen| seen.over = over);
    }

    /// Returns the number of requests by text.
    pub(crate) fn asked(&self) -> BTreeMap<String, usize> {
        self.seen.0.lock().unwrap().asked.clone()
    }
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

fn answer() -> String {
    let text = good_answer(&json!({ "rationale": "r" })).to_string();
    piece(&text, None) + &piece("", Some("stop")) + "data: [DONE]\n\n"
}

fn tools() -> String {
    let call = |index: usize| {
        json!({ "index": index, "id": format!("call_{index}"), "type": "function",
                "function": { "name": "current_time", "arguments": "{}" } })
    };
    let calls: Vec<Value> = (0..200).map(call).collect();
    let choice = json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": null });
    let calls = json!({ "model": "stub", "choices": [choice] });
    format!("data: {calls}\n\n{}data: [DONE]\n\n", piece("", Some("tool_calls")))
}

/// A started server. It is killed when this value is dropped, if it is still running.
pub(crate) struct Server(TestServer);

impl Deref for Server {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut TestServer {
        &mut self.0
    }
}

impl Server {
    pub(crate) fn start(home: &Home, service: &Service, more: &[&str]) -> Self {
        let args =
            ["serve", "--port", "0", "--rate", "0", "--streams", "0", "--quiet", "--provider", "openai"];
        let mut command = home.command(&args);
        command.args(["--base-url", &service.url, "--model", "stub"]).args(more);
        Self::begin(&mut command)
    }

    pub(crate) fn begin(command: &mut Command) -> Self {
        Self(TestServer::spawn_without_reader(command).unwrap())
    }

    /// Sends a run; the response can be read from the returned stream.
    pub(crate) fn ask(&self, headers: &str, body: &Value) -> std::io::Result<TcpStream> {
        ask(&self.address, headers, body)
    }

    /// Sends a run and returns the whole response.
    pub(crate) fn answer(&self, headers: &str, body: &Value) -> String {
        let mut answer = String::new();
        let _ = self.ask(headers, body).unwrap().read_to_string(&mut answer);
        answer
    }

    /// Status and body of another request.
    pub(crate) fn get_text(&self, first_line: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        self.0.ask(first_line, headers, body)
    }

    pub(crate) fn stop(self) -> String {
        self.0.stop()
    }
}

pub(crate) fn ask(address: &str, headers: &str, body: &Value) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST /api/run/talk HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}
