//! The same reply gives the same envelope, however it arrives: 500 generated replies over real connections, at once, in
//! deltas of 16 bytes, and with real pauses of up to 30 ms; sync and as a stream. Measures only its duration;
//! `crates/cognitive-runtime/tests/live/timing.rs` does the same for 10,000 replies on a simulated clock.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "in a benchmark, a panic is the report, and its figures are printed"
)]

#[path = "../../cognitive-runtime/tests/live/made_up.rs"]
mod made_up;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::ports::NullSink;
use cognitive_contract::stream::assemble;
use cognitive_library::{Library, ModuleCache};
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_runtime::{Host, RunRequest, run, stream};
use made_up::{Dice, deltas, reply, settled};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const MANIFEST: &str = "name: m\nversion: 1.0.0\ntier: decision\nresponse:\n  mode: both\n";
const SCHEMA: &str = r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["rationale", "answer"],
  "properties": {"rationale": {"type": "string"}, "answer": {"type": "string"}, "severity": {"enum": ["minor", "major"]},
    "count": {"type": "integer", "minimum": 0}, "items": {"type": "array", "items": {"type": "string"}}}}}"#;

/// The number of concurrent runs; nearly all of their time is pauses.
const AT_ONCE: usize = 50;

fn event(text: &str, finish: &str) -> String {
    let text = Value::from(text);
    format!(
        "data: {{\"model\":\"stub\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

/// Answers one request; its input selects the reply and the pace.
async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut asked, mut buffer) = (String::new(), [0; 8 << 10]);
    let words = loop {
        let read = stream.read(&mut buffer).await?;
        asked.push_str(&String::from_utf8_lossy(&buffer[..read]));
        let wanted = asked.split_once("WANTED ").and_then(|(_, rest)| rest.split_once(" END"));
        if let Some((words, _)) = wanted {
            break words.to_owned();
        }
        if read == 0 {
            return Ok(());
        }
    };
    let (number, pace) = words.split_once(' ').unwrap();
    let number: u64 = number.parse().unwrap();
    let (text, mut dice) = (reply(number), Dice::new(number));
    let pieces = if pace == "at-once" { vec![text.as_str()] } else { deltas(&text) };
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        .await?;
    for piece in pieces {
        stream.write_all(event(piece, "null").as_bytes()).await?;
        if pace == "pauses" {
            tokio::time::sleep(Duration::from_millis(dice.below(31) as u64)).await;
        }
    }
    stream.write_all((event("", "\"stop\"") + "data: [DONE]\n\n").as_bytes()).await
}

/// Checks that all envelopes of one reply are the same.
async fn check(host: Arc<Host>, number: u64) {
    let mut seen: Option<String> = None;
    for pace in ["at-once", "deltas", "pauses"] {
        let request = || RunRequest::new("m", json!({ "words": format!("WANTED {number} {pace} END") }));
        let sync = run(&host, request(), &mut NullSink).await;
        let sync = settled(serde_json::to_value(&sync).unwrap());
        let mut log = Vec::new();
        stream(&host, request(), |chunk| log.push(serde_json::to_value(chunk).unwrap())).await;
        assert_eq!(settled(serde_json::to_value(assemble(log)).unwrap()), sync, "{}", reply(number));
        assert_eq!(*seen.get_or_insert_with(|| sync.clone()), sync, "{}", reply(number));
    }
}

async fn check_all(count: u64) {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("cognitive/modules/m");
    std::fs::create_dir_all(&module).unwrap();
    for (name, text) in [("module.yaml", MANIFEST), ("prompt.md", "Answer."), ("schema.json", SCHEMA)] {
        std::fs::write(module.join(name), text).unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream));
        }
    });
    let provider = ProviderConfig::new(Kind::parse("openai").unwrap())
        .with_key(Secret::new("sk-test".to_owned()))
        .with_base_url(url);
    let modules = Arc::new(ModuleCache::new(Library::new(folder.path(), None, &[])));
    let host = Arc::new(Host::new(modules, cognitive_net::provider(provider).unwrap()));
    let numbers: Vec<u64> = (0..count).collect();
    for some in numbers.chunks(AT_ONCE) {
        let checks: Vec<_> =
            some.iter().map(|number| tokio::spawn(check(Arc::clone(&host), *number))).collect();
        for check in checks {
            check.await.unwrap();
        }
    }
}

fn main() {
    // Cargo also runs benchmarks as tests, which only check that they finish.
    let count = if std::env::args().any(|each| each == "--bench") { 500 } else { 5 };
    let started = Instant::now();
    tokio::runtime::Runtime::new().unwrap().block_on(check_all(count));
    println!(
        "{count} replies, three ways, sync and streamed: the same envelope each time ({:.1?})",
        started.elapsed()
    );
}
