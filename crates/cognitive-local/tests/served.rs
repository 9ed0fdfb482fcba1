//! The embedded model behind the real server, with a tiny model that is built here. Tests many parallel clients that
//! each get the same answer as alone, a full queue, and a client that disconnects.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

#[expect(dead_code, reason = "the tests of the engine damage the file in many ways")]
#[path = "../../cognitive-llama/tests/engine/toy.rs"]
mod toy;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use cognitive_http::{App, ServerConfig};
use cognitive_library::{Library, ModuleCache};
use cognitive_local::EmbeddedProvider;
use cognitive_runtime::Host;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A model with a long context that never ends a string by greedy choice.
fn weights(folder: &Path) -> EmbeddedProvider {
    let mut tokens = toy::vocabulary();
    let count = tokens.len();
    tokens[count - 2..].clone_from_slice(&["<|im_start|>".to_owned(), "<|im_end|>".to_owned()]);
    let quote = tokens.iter().position(|token| token == "\"").unwrap();
    let silent = |tensor: &mut toy::Tensor| {
        let row = tensor.bytes.len() / count;
        // A logit of zero; some other letter always has more.
        tensor.bytes[quote * row..(quote + 1) * row].fill(0);
    };
    let file = toy::Toy::default()
        .with("tokenizer.ggml.tokens", toy::Value::Texts(tokens))
        .with("llama.context_length", toy::Value::U32(1 << 20))
        .change("token_embd.weight", silent);
    let path = folder.join("toy.gguf");
    fs::write(&path, file.bytes()).unwrap();
    EmbeddedProvider::open(&path).unwrap().for_server()
}

/// A module with a label and a text of at most `letters` characters.
fn write_module(folder: &Path, name: &str, tier: &str, letters: usize) {
    let module = folder.join("cognitive/modules").join(name);
    fs::create_dir_all(&module).unwrap();
    let manifest = format!("name: {name}\nversion: 1.0.0\ntier: {tier}\nresponse: {{mode: both}}\n");
    fs::write(module.join("module.yaml"), manifest).unwrap();
    fs::write(module.join("prompt.md"), "Say something about the text, and what mood it is in.").unwrap();
    let schema = json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
        "data": {
            "type": "object", "required": ["rationale", "mood"], "additionalProperties": false,
            "properties": {
                "rationale": { "type": "string", "maxLength": letters },
                "mood": { "enum": ["good", "bad", "mixed"] },
            },
        },
    });
    fs::write(module.join("schema.json"), schema.to_string()).unwrap();
}

/// A server with a model that runs `at_once` requests in parallel and queues `waiting` more.
async fn server(at_once: usize, waiting: usize) -> (tempfile::TempDir, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    write_module(folder.path(), "remark", "exploration", 80);
    write_module(folder.path(), "novel", "exec", 1_000_000);
    let modules = ModuleCache::new(Library::new(folder.path(), None, &[]));
    let provider = weights(folder.path()).with_places(at_once, waiting);
    let mut config = ServerConfig::default();
    (config.runs_per_minute, config.streams_per_client) = (0, 0);
    let app = App::new(Host::new(Arc::new(modules), Arc::new(provider)), config);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(cognitive_http::serve(app, listener, std::future::pending()));
    (folder, address)
}

/// Sends a request; the caller reads the answer.
async fn send(address: SocketAddr, first_line: &str, accept: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let head =
        format!("{first_line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {accept}\r\n");
    let rest = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all((head + &rest).as_bytes()).await.unwrap();
    stream
}

/// Returns the head of an answer in lower case, and its envelope.
async fn ask(address: SocketAddr, module: &str, body: &Value) -> (String, Value) {
    let line = format!("POST /api/run/{module}");
    let mut answer = String::new();
    send(address, &line, "application/json", body).await.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    (head.to_ascii_lowercase(), serde_json::from_str(body).unwrap())
}

/// Reads until a word has arrived.
async fn read_until(stream: &mut TcpStream, word: &str) -> String {
    let (mut read, mut buffer) = (String::new(), [0; 4 << 10]);
    while !read.contains(word) {
        let length = stream.read(&mut buffer).await.unwrap();
        assert!(length > 0, "no `{word}`: {read}");
        read.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    read
}

fn remark(number: usize) -> Value {
    json!({ "text": format!("Number {number} came late."), "_options": { "seed": number } })
}

/// The parts that are equal in two answers to the same question.
fn said(envelope: &Value) -> [&Value; 4] {
    let usage = &envelope["meta"]["usage"];
    [&envelope["ok"], &envelope["data"], &envelope["meta"]["confidence"], usage]
}

// D-05: every answer obeys the contract, for any number of parallel requests.
#[tokio::test]
async fn d_05_sixteen_clients_at_once_get_the_answers_that_each_gets_alone() {
    let (_folder, address) = server(16, 16).await;
    let asked = |address, number| async move { ask(address, "remark", &remark(number)).await };
    let tasks: Vec<_> = (0..16).map(|number| tokio::spawn(asked(address, number))).collect();
    let (_other, alone) = server(1, 0).await;
    let mut texts = Vec::new();
    for (number, task) in tasks.into_iter().enumerate() {
        let (head, envelope) = task.await.unwrap();
        assert!(head.starts_with("http/1.1 200"), "{head} {envelope}");
        let (_, expected) = asked(alone, number).await;
        assert_eq!(said(&envelope), said(&expected));
        let text = envelope["data"]["rationale"].as_str().unwrap();
        assert!(text.chars().count() <= 80 && envelope["data"]["mood"].is_string(), "{envelope}");
        texts.push(text.to_owned());
    }
    texts.sort();
    texts.dedup();
    assert!(texts.len() > 8, "they are answers to different questions: {texts:?}");
}

// API-004, PIPE-010
#[tokio::test]
async fn api_004_a_full_house_is_429_with_a_time_and_who_goes_leaves_a_place() {
    let (_folder, address) = server(1, 0).await;
    // An answer that takes minutes unless it is cancelled.
    let long = json!({ "text": "Tell it all.", "_options": { "max_output_tokens": 500_000 } });
    let begin = || send(address, "POST /api/run/novel", "text/event-stream", &long);
    let mut first = begin().await;
    let opening = read_until(&mut first, "\"type\":\"delta\"").await;
    let (head, refused) = ask(address, "remark", &remark(1)).await;
    assert!(head.starts_with("http/1.1 429") && head.contains("retry-after: 1\r\n"), "{head}");
    assert_eq!((&refused["ok"], &refused["error"]["code"]), (&json!(false), &json!("E4002")), "{refused}");
    assert_eq!(refused["error"]["details"]["retry_after_seconds"], 1, "{refused}");
    let session = opening.to_ascii_lowercase();
    let session = session.lines().find_map(|line| line.strip_prefix("x-cognitive-recovery-session: "));
    let line = format!("DELETE /v1/streams/{}", session.unwrap());
    let mut ended = String::new();
    let none = json!({});
    send(address, &line, "application/json", &none).await.read_to_string(&mut ended).await.unwrap();
    assert!(ended.starts_with("HTTP/1.1 2"), "{ended}");
    // The last event of the stream: by now the model has noticed the disconnect.
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("E2010"));
    let (head, envelope) = ask(address, "remark", &remark(1)).await;
    assert!(head.starts_with("http/1.1 200"), "{head} {envelope}");
}
