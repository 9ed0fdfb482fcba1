//! `cogn serve` as a process: the offered streaming transports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::support::{PROMPT, Place, Running, SCHEMA, endless_service, manifest};

/// Starts a server and returns its address.
fn serve(place: &Place, more: &[&str]) -> (Running, String) {
    let service = endless_service();
    let args = [
        "serve",
        "--port",
        "0",
        "--quiet",
        "--provider",
        "openai",
        "--model",
        "stub",
        "--base-url",
        &service,
    ];
    let mut child = Running(place.command(&args).args(more).spawn().unwrap());
    let mut said = String::new();
    BufReader::new(child.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.split("http://").nth(1).unwrap_or_else(|| panic!("{said}"));
    (child, address.split([',', ' ', '\u{1b}']).next().unwrap().trim().to_owned())
}

/// Returns the status line, the headers and the body of a response.
fn asked(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn json_in(answer: &str) -> Value {
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap_or_else(|_| panic!("{answer}"))
}

// CLI-008, CAP-002: an operator restricts the transports of streams, and the declaration is correct.
#[test]
fn cli_008_a_server_can_be_kept_to_some_transports() {
    let place = Place::new();
    let manifest = manifest("words", "response: {mode: both}\n");
    place.module("words", &[("module.yaml", &manifest), ("prompt.md", PROMPT), ("schema.json", SCHEMA)]);
    let (_server, address) = serve(&place, &["--transport", "ndjson"]);
    let told =
        json_in(&asked(&address, "GET /capabilities HTTP/1.1\nhost: localhost\nconnection: close\n\n"));
    assert_eq!(told["capabilities"]["supported_transports"], json!(["ndjson"]), "{told}");
    let socket = "GET /ws HTTP/1.1\nhost: localhost\nconnection: upgrade\nupgrade: websocket\nsec-websocket-version: 13\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\n\n";
    let refused = asked(&address, &socket.replace("connection: upgrade", "connection: close, upgrade"));
    assert!(refused.starts_with("HTTP/1.1 501 "), "{refused}");
    let refusal = json_in(&refused);
    assert_eq!(refusal["error"]["code"], "E4010");
    assert_eq!(refusal["error"]["details"]["supported_transports"], json!(["ndjson"]));
    let run = |accept: &str, body: &Value| {
        let body = body.to_string();
        let length = body.len();
        format!(
            "POST /api/run/words HTTP/1.1\nhost: localhost\nconnection: close\ncontent-type: application/json\naccept: {accept}\ncontent-length: {length}\n\n{body}"
        )
    };
    let wish = json!({ "input": { "text": "x" }, "_options": { "require_streaming": true } });
    let events = json_in(&asked(&address, &run("text/event-stream", &wish)));
    assert_eq!(events["error"]["code"], "E4010", "events are switched off: {events}");
    let mut lines = TcpStream::connect(&address).unwrap();
    lines.write_all(run("application/x-ndjson", &wish).replace('\n', "\r\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(lines).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("It is")), "lines still stream");
    let usage = place.run(&["serve", "--transport", "carrier-pigeon"]);
    assert_eq!(usage.code, 2, "{}", usage.err);
}
