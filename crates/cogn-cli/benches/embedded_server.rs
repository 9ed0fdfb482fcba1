//! Throughput of the embedded model behind `cogn serve`: sixteen concurrent clients against one client on the same
//! server. Every answer must be valid and equal to the answer of a single client; otherwise the exit code is 1.
//! `COGN_MODEL` names the weights; the default is the cache.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "in a benchmark, a panic is the report, and its figures are printed"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};

mod served;

use served::EmbeddedServer;

const CLIENTS: usize = 16;
/// The number of questions per client, one after the other.
const ROUNDS: usize = 2;
/// The maximum length of an answer, in tokens.
const LIMIT: usize = 96;
/// The topics, one for each client.
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
    let folder = tempfile::tempdir().unwrap();
    write_module(folder.path());
    let server = EmbeddedServer::start(&weights, folder.path());
    answer(&server, 0);
    let count = if quick { 2 } else { CLIENTS };
    let began = Instant::now();
    let alone: Vec<Answer> = (0..count).map(|number| answer(&server, number)).collect();
    let alone_rate = rate(&alone, began);
    let began = Instant::now();
    let together = together(&server, count);
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

fn answer(server: &EmbeddedServer, number: usize) -> Answer {
    let options = json!({ "max_output_tokens": LIMIT, "seed": number });
    let envelope = server.run("remark", &json!({ "event": EVENTS[number], "_options": options }));
    assert_eq!(envelope["ok"], true, "{envelope}");
    let tokens = envelope["meta"]["usage"]["output_tokens"].as_u64().unwrap();
    Answer(envelope["data"].clone(), envelope["meta"]["confidence"].clone(), tokens)
}

/// Returns the answers to all questions. In every round another client asks each of them.
fn together(server: &EmbeddedServer, clients: usize) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let ask = |client: usize| {
            scope.spawn(move || {
                let questions = (0..ROUNDS).map(|round| (client + round) % clients);
                questions.map(|number| (number, answer(server, number))).collect::<Vec<_>>()
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

/// Writes a module whose answers have to be generated word by word.
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
