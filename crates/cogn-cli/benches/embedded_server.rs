//! The embedded model behind `cogn serve`: what sixteen clients at once get together, against one client alone on the same
//! server. Every answer is valid and is the one that its question gets alone; ends with 1 if not. `COGN_MODEL` names the
//! weights; without it, those in the cache.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "in a benchmark, a panic is the report, and its figures are printed"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

const CLIENTS: usize = 16;
/// How many questions each of them asks, one after the other.
const ROUNDS: usize = 2;
/// The longest answer, in tokens.
const LIMIT: usize = 96;
/// What is asked about, one for each client.
const EVENTS: [&str; CLIENTS] = [
    "The delivery came two weeks late",
    "I was charged twice this month",
    "The app closes when I open a file",
    "Ten more seats are needed by Friday",
    "The new colour of the buttons is hard to read",
    "Nobody answers the phone in Geneva",
    "The report has last year's numbers in it",
    "My password was changed and not by me",
    "The printer on the third floor is on fire",
    "We love the new search",
    "The invoice has the wrong address",
    "The export stops after a thousand rows",
    "Two users see each other's messages",
    "The battery lasts for an hour",
    "The contract ends in March",
    "The meeting was moved to Oslo",
];

fn main() -> ExitCode {
    let Some(weights) = weights_path() else {
        println!("skipped: no weights; `cogn model pull` fetches them");
        return ExitCode::SUCCESS;
    };
    let quick = std::env::args().any(|argument| argument == "--test");
    let server = Server::start(&weights);
    server.answer(0);
    let count = if quick { 2 } else { CLIENTS };
    let began = Instant::now();
    let alone: Vec<Answer> = (0..count).map(|number| server.answer(number)).collect();
    let alone_rate = rate(&alone, began);
    let began = Instant::now();
    let together = server.together(count);
    let together_rate = rate(&together, began);
    let same = together.iter().enumerate().filter(|(at, answer)| **answer == alone[at % count]).count();
    println!("{}, {count} clients, {} answers", weights.display(), together.len());
    println!("one client      {alone_rate:8.1} tokens/s");
    println!(
        "{count:2} clients      {together_rate:8.1} tokens/s, {:.2} times one",
        together_rate / alone_rate
    );
    println!("valid and equal to the answer alone: {same} of {}", together.len());
    if same == together.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Data, confidence and tokens of an answer.
#[derive(Debug, PartialEq)]
struct Answer(Value, Value, u64);

fn rate(answers: &[Answer], began: Instant) -> f64 {
    answers.iter().map(|answer| answer.2).sum::<u64>() as f64 / began.elapsed().as_secs_f64()
}

/// A running server. It ends when this value does.
struct Server {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(weights: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_module(folder.path());
        let program =
            std::env::var_os("COGN_BENCH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_cogn").into());
        let words = "serve --port 0 --quiet --rate 0 --streams 0 --per-address 0 --provider embedded --model";
        let mut child = Command::new(program)
            .args(words.split(' '))
            .arg(weights)
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .env("COGN_OFFLINE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut lines, mut said) = (BufReader::new(child.stderr.take().unwrap()), String::new());
        while !said.contains("http://") {
            assert!(lines.read_line(&mut said).unwrap() > 0, "it ended before it listened: {said}");
        }
        let address =
            said.split("http://").nth(1).unwrap().split([' ', ',', '\n']).next().unwrap().to_owned();
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address, _folder: folder }
    }

    fn send(&self, line: &str, accept: &str, body: &Value) -> TcpStream {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {accept}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream
    }

    fn answer(&self, number: usize) -> Answer {
        let options = json!({ "max_output_tokens": LIMIT, "seed": number });
        let body = json!({ "event": EVENTS[number], "_options": options });
        let mut answer = String::new();
        self.send("POST /api/run/remark", "application/json", &body).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        let envelope: Value = serde_json::from_str(body).unwrap();
        let tokens = envelope["meta"]["usage"]["output_tokens"].as_u64().unwrap();
        Answer(envelope["data"].clone(), envelope["meta"]["confidence"].clone(), tokens)
    }

    /// The answers to all questions, each asked in every round, by another client each time.
    fn together(&self, clients: usize) -> Vec<Answer> {
        std::thread::scope(|scope| {
            let ask = |client: usize| {
                scope.spawn(move || {
                    let questions = (0..ROUNDS).map(|round| (client + round) % clients);
                    questions.map(|number| (number, self.answer(number))).collect::<Vec<_>>()
                })
            };
            let threads: Vec<_> = (0..clients).map(ask).collect();
            let mut all: Vec<Vec<Option<Answer>>> =
                (0..ROUNDS).map(|_| (0..clients).map(|_| None).collect()).collect();
            for thread in threads {
                for (round, (number, answer)) in thread.join().unwrap().into_iter().enumerate() {
                    all[round][number] = Some(answer);
                }
            }
            all.into_iter().flatten().flatten().collect()
        })
    }
}

/// A module whose answers have to be written, word by word.
fn write_module(folder: &Path) {
    let module = folder.join("cognitive/modules/remark");
    fs::create_dir_all(&module).unwrap();
    fs::write(module.join("module.yaml"), "name: remark\nversion: 1.0.0\ntier: exploration\n").unwrap();
    let prompt = "You read what happened in an office. Say in `rationale` what should be done about it and why, in two full \
                  sentences, and in `urgency` how soon. Be kind, be exact, and do not repeat what happened.";
    fs::write(module.join("prompt.md"), prompt).unwrap();
    let schema = json!({
        "input": { "type": "object", "required": ["event"], "properties": { "event": { "type": "string" } } },
        "data": {
            "type": "object", "required": ["rationale", "urgency"], "additionalProperties": false,
            "properties": {
                "rationale": { "type": "string", "maxLength": 300 },
                "urgency": { "enum": ["now", "today", "later"] },
            },
        },
    });
    fs::write(module.join("schema.json"), schema.to_string()).unwrap();
}

fn weights_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("COGN_MODEL") {
        return Some(path.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("cogn/models/smollm2-135m-instruct-q4_1.gguf")).filter(|path| path.exists())
}
