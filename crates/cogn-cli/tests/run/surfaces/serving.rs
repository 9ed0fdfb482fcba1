//! `cogn serve` as a process: the offered streaming transports.

use std::io::BufRead;

use cognitive_testkit::TestServer;
use serde_json::json;

use super::support::{Place, endless_service};

// CLI-008, CAP-002: an operator restricts the transports of streams, and the declaration is correct.
#[test]
fn cli_008_a_server_can_be_kept_to_some_transports() {
    let place = Place::new();
    place.finder("words", "response: {mode: both}\n");
    let service = endless_service();
    let args = ["--provider", "openai", "--model", "stub", "--base-url", &service, "--transport", "ndjson"];
    let server = TestServer::start(&place, &args, &[]);
    let told = server.get("/capabilities");
    assert_eq!(told["capabilities"]["supported_transports"], json!(["ndjson"]), "{told}");
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let (status, refusal) = server.json("GET /ws", &upgrade, "");
    assert_eq!((status, &refusal["error"]["code"]), (501, &json!("E4010")), "{refusal}");
    assert_eq!(refusal["error"]["details"]["supported_transports"], json!(["ndjson"]));
    let wish = json!({ "input": { "text": "x" }, "_options": { "require_streaming": true } }).to_string();
    let (_, events) = server.json("POST /api/run/words", &[("accept", "text/event-stream")], &wish);
    assert_eq!(events["error"]["code"], "E4010", "events are switched off: {events}");
    let lines = server.open("POST /api/run/words", &[("accept", "application/x-ndjson")], &wish);
    assert!(lines.lines().map(Result::unwrap).any(|line| line.contains("It is")), "lines still stream");
    let usage = place.run(&["serve", "--transport", "carrier-pigeon"]);
    assert_eq!(usage.exit(), 2, "{}", usage.err);
}
