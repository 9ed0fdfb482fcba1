//! A stub model in the OpenAI wire format. It answers each bundled module with the recorded reply of its first
//! successful golden test, in small pieces. An input with the word `HOLD` gets the first pieces and then nothing, until
//! the server disconnects. It counts both, so that a test can wait for it.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use cognitive_testkit::PATIENCE;
use serde_json::{Value, json};

/// The number of letters per piece.
const PIECE: usize = 16;
/// The number of pieces for a held call.
const HELD: usize = 3;

/// A module, the input of a successful golden test, and the reply of the model.
pub(crate) struct Recorded {
    pub(crate) module: String,
    pub(crate) input: Value,
    /// The prompt, which identifies the module.
    pub(crate) prompt: String,
    pub(crate) reply: String,
}

#[derive(Default)]
struct Counts {
    /// The number of equal requests.
    calls: HashMap<String, usize>,
    held: usize,
    left: usize,
}

#[derive(Default)]
struct Counter {
    counts: Mutex<Counts>,
    changed: Condvar,
}

/// The service.
pub(crate) struct Model {
    port: u16,
    counter: Arc<Counter>,
}

impl Model {
    pub(crate) fn start(recorded: Vec<Recorded>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let counter = Arc::new(Counter::default());
        let (known, kept) = (Arc::new(recorded), Arc::clone(&counter));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (known, counter) = (Arc::clone(&known), Arc::clone(&kept));
                // Some tests are about a client that disconnects early.
                std::thread::spawn(move || answer(connection, &known, &counter).unwrap_or_default());
            }
        });
        Self { port, counter }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until this number of calls is held, or was.
    pub(crate) fn until_held(&self, expected: usize) {
        self.until(|counts| counts.held, expected, "calls of the model that were to be held");
    }

    /// Waits until so many of the calls that it held were left. The servers of these tests wait for hours until a client comes back, so
    /// that a call ends only because it is not wanted any more.
    pub(crate) fn until_left(&self, expected: usize) {
        self.until_held(expected);
        let what = "calls of the model that ended because nobody wanted them any more";
        self.until(|counts| counts.left, expected, what);
    }

    fn until(&self, count: fn(&Counts) -> usize, expected: usize, what: &str) {
        let counts = self.counter.counts.lock().unwrap();
        let waited =
            self.counter.changed.wait_timeout_while(counts, PATIENCE, |counts| count(counts) < expected);
        let (counts, _) = waited.unwrap();
        assert_eq!(count(&counts), expected, "{what}");
    }

    /// Returns the number of different requests, and the maximum number of equal ones.
    pub(crate) fn calls(&self) -> (usize, usize) {
        let counts = self.counter.counts.lock().unwrap();
        (counts.calls.len(), counts.calls.values().copied().max().unwrap_or(0))
    }
}

/// Returns the recordings of all bundled modules. The reply of a composition's part belongs to the part.
pub(crate) fn recorded() -> Vec<Recorded> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(modules).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join("module.yaml").is_file());
    folders.sort();
    folders.iter().map(|folder| of_module(folder)).collect()
}

/// Returns the recording of the module in a folder.
pub(crate) fn of_module(folder: &Path) -> Recorded {
    let prompt = fs::read_to_string(folder.join("prompt.md")).unwrap();
    let module = folder.file_name().unwrap().to_string_lossy().into_owned();
    let mut inputs: Vec<PathBuf> =
        fs::read_dir(folder.join("tests")).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.retain(|path| path.to_string_lossy().ends_with(".input.json"));
    inputs.sort();
    let with_reply = inputs.iter().map(|input| {
        let reply = input.to_string_lossy().replace(".input.json", ".reply.txt");
        (input, fs::read_to_string(reply).unwrap_or_default())
    });
    let succeeds = |reply: &str| reply.replace(' ', "").contains("\"ok\":true");
    let first = with_reply.clone().find(|(_, reply)| succeeds(reply)).or_else(|| with_reply.clone().next());
    let (input, reply) = first.unwrap();
    let input = serde_json::from_str(&fs::read_to_string(input).unwrap()).unwrap();
    Recorded { module, input, prompt: prompt.lines().next().unwrap().to_owned(), reply }
}

/// Returns a test module that streams.
pub(crate) fn words() -> Recorded {
    let reply = json!({
        "ok": true,
        "data": { "rationale": "It is ☕ short, and \"quoted\".", "words": ["winter", "snow"] },
        "meta": { "confidence": 1.0, "risk": "low", "explain": "Two words" },
    });
    Recorded {
        module: "words".to_owned(),
        input: json!({ "text": "winter snow" }),
        prompt: "Find the words.".to_owned(),
        reply: reply.to_string(),
    }
}

fn answer(mut tcp: TcpStream, known: &[Recorded], counter: &Counter) -> std::io::Result<()> {
    let body = read_request(&mut tcp)?;
    *counter.counts.lock().unwrap().calls.entry(body.clone()).or_default() += 1;
    let asked = |each: &&Recorded| {
        let prompt = Value::from(each.prompt.as_str()).to_string();
        body.contains(prompt.trim_matches('"'))
    };
    let reply = known.iter().find(asked).map_or("no such module", |each| each.reply.as_str());
    let letters: Vec<char> = reply.chars().collect();
    let pieces = letters.chunks(PIECE).map(|piece| piece.iter().collect::<String>());
    let event = |choice: Value| format!("data: {}\n\n", json!({ "model": "stand-in", "choices": [choice] }));
    let pieces = pieces.map(|text| event(json!({ "index": 0, "delta": { "content": text } })));
    write!(tcp, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n")?;
    if body.contains("HOLD") {
        for piece in pieces.take(HELD) {
            tcp.write_all(piece.as_bytes())?;
        }
        counter.counts.lock().unwrap().held += 1;
        counter.changed.notify_all();
        while tcp.read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
        counter.counts.lock().unwrap().left += 1;
        counter.changed.notify_all();
        return Ok(());
    }
    for piece in pieces {
        tcp.write_all(piece.as_bytes())?;
    }
    let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 });
    let last = event(json!({ "index": 0, "delta": {}, "finish_reason": "stop" }));
    let end = json!({ "model": "stand-in", "choices": [], "usage": usage });
    write!(tcp, "{last}data: {end}\n\ndata: [DONE]\n\n")
}

fn read_request(tcp: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") {
        tcp.read_exact(&mut byte)?;
        head.push(char::from(byte[0]));
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    tcp.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}
