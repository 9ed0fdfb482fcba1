//! Streams over three transports: the same chunks on each, and every stream ends.

use cognitive_contract::stream::{assemble, check_log};
use cognitive_schema::accepts;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{ANSWER, Script, Server, ask, client, events, json_of, roomy, timeless};

async fn over_events(server: &Server) -> Vec<Value> {
    let response = ask(server, "text/event-stream").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    events(&response.text().await.unwrap()).into_iter().map(|event| event.data).collect()
}

async fn over_lines(server: &Server) -> Vec<Value> {
    let response = ask(server, "application/x-ndjson").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let body = response.text().await.unwrap();
    assert!(body.ends_with('\n'));
    body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

pub(crate) async fn socket(server: &Server) -> Socket {
    let url = format!("ws://{}/ws", server.address);
    tokio_tungstenite::connect_async(url).await.unwrap().0
}

pub(crate) async fn say(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

pub(crate) async fn hear(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

fn is_last(chunk: &Value) -> bool {
    chunk.get("final").is_some() || chunk.get("error").is_some()
}

async fn over_socket(server: &Server) -> Vec<Value> {
    let mut socket = socket(server).await;
    say(
        &mut socket,
        &json!({ "type": "run", "id": "a", "module": "words", "input": { "text": "winter snow" } }),
    )
    .await;
    let mut chunks = Vec::new();
    while !chunks.last().is_some_and(is_last) {
        let chunk = hear(&mut socket).await;
        assert_eq!(chunk["id"], "a", "S-17: a chunk carries the id of the client");
        chunks.push(chunk);
    }
    chunks
}

// STREAM-018: each transport delivers the same chunk list.
#[tokio::test]
async fn stream_018_three_transports_carry_the_same_chunks() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let by_events = over_events(&server).await;
    assert!(check_log(&by_events).is_empty(), "{:?}", check_log(&by_events));
    let deltas: String = by_events
        .iter()
        .filter(|chunk| chunk["chunk"]["field"] == "data.rationale")
        .filter_map(|chunk| chunk["chunk"]["delta"].as_str())
        .collect();
    assert_eq!(deltas, "It is short ☕.");
    let second: String = by_events
        .iter()
        .filter(|chunk| chunk["chunk"]["field"] == "data.words.1.text")
        .filter_map(|chunk| chunk["chunk"]["delta"].as_str())
        .collect();
    assert_eq!(second, "snow");
    let by_events = timeless(by_events);
    assert_eq!(timeless(over_lines(&server).await), by_events);
    assert_eq!(timeless(over_socket(&server).await), by_events);
}

// STREAM-012: both forms use one pipeline, so the stream assembles to the sync answer.
#[tokio::test]
async fn stream_012_a_stream_assembles_to_the_sync_answer() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let sync = json_of(ask(&server, "application/json").send().await.unwrap()).await;
    let streamed = serde_json::to_value(assemble(over_lines(&server).await)).unwrap();
    assert_eq!(timeless(vec![streamed]), timeless(vec![sync]));
}

// D-07, ENV-009: a sync answer has its tokens in `meta`, a last chunk next to it, on every transport.
#[tokio::test]
async fn tokens_are_in_meta_of_an_answer_and_beside_that_of_a_last_chunk() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let tokens = json!({ "input_tokens": 7, "output_tokens": 5, "total_tokens": 12 });
    let sync = json_of(ask(&server, "application/json").send().await.unwrap()).await;
    assert_eq!((sync.get("usage"), &sync["meta"]["usage"]), (None, &tokens), "{sync}");
    for chunks in [over_events(&server).await, over_lines(&server).await, over_socket(&server).await] {
        let last = chunks.last().unwrap();
        assert_eq!((&last["usage"], last["meta"].get("usage")), (&tokens, None), "{last}");
    }
}

#[tokio::test]
async fn stream_019_events_have_names_and_numbered_ids() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let body = ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap();
    // Clients cannot read an event without data.
    assert!(body.starts_with("retry: 3000\nevent: meta\nid: "), "S-16: {body:.200}");
    assert!(body.split_terminator("\n\n").all(|event| event.contains("\ndata: {")), "{body}");
    let events = events(&body);
    let session = events[0].data["session_id"].as_str().unwrap().to_owned();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event.id, format!("{session}:{}", index + 1));
        let expected = match &event.data {
            data if data.get("final").is_some() => "final",
            data if data.get("chunk").is_some() => "chunk",
            data if data.get("progress").is_some() => "progress",
            _ => "meta",
        };
        assert_eq!(event.name, expected);
    }
    assert_eq!(events.last().unwrap().name, "final");
}

// The chunk schemas in `/openapi.json` accept every kind of chunk, and nothing else.
#[tokio::test]
async fn chunks_are_as_described() {
    let script = Script::free(&ANSWER);
    let server = Server::start(&script, "both", roomy()).await;
    let document = json_of(client().get(server.url("/openapi.json")).send().await.unwrap()).await;
    let described = &json!({ "$ref": "#/components/schemas/Chunk", "components": document["components"] });
    let mut chunks = over_events(&server).await;
    let again = ask(&server, "application/x-ndjson")
        .header("x-cognitive-recovery-session", chunks[0]["session_id"].as_str().unwrap())
        .header("x-cognitive-recovery-seq", "2");
    let again = again.send().await.unwrap().text().await.unwrap();
    chunks.extend(again.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    let snapshots = json!({ "input": { "text": "a" }, "_options": { "chunk_type": "snapshot" } }).to_string();
    let request = ask(&server, "application/x-ndjson").body(snapshots).send().await.unwrap();
    let snapshots = request.text().await.unwrap();
    assert!(snapshots.contains(r#""type":"snapshot""#), "{snapshots}");
    chunks.extend(snapshots.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    let mut config = roomy();
    config.drain = std::time::Duration::ZERO;
    let mut stopped = Server::start(&Script::with_leave(&ANSWER, 2), "both", config).await;
    let mut response = ask(&stopped, "application/x-ndjson").send().await.unwrap();
    let mut body = String::new();
    while !body.contains(r#""seq":2"#) {
        body.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    stopped.stop();
    body.push_str(&response.text().await.unwrap());
    let broken: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // EXT-REC: an error that may be temporary says how to resume.
    let recovery = &broken.last().unwrap()["error"]["recovery"];
    assert_eq!((&recovery["last_seq"], &recovery["last_checkpoint"]["offset"]), (&json!(2), &json!(8)));
    chunks.extend(broken);
    for chunk in &chunks {
        assert!(accepts(described, chunk), "{chunk}");
    }
    for other in [json!({ "a": 1 }), json!([]), json!({ "chunk": {} }), json!({ "final": true })] {
        assert!(!accepts(described, &other), "{other}");
    }
}

// STREAM-017: nothing was sent yet, so the response is an ordinary one.
#[tokio::test]
async fn stream_017_a_failure_before_the_first_chunk_is_an_envelope() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let request = client().post(server.url("/api/run/words")).header("content-type", "application/json");
    let response = request.header("accept", "text/event-stream").body("{}").send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(json_of(response).await["error"]["code"], "E1001");
}

// STREAM-016: chunks that were sent were provisional.
#[tokio::test]
async fn stream_016_an_invalid_answer_ends_in_an_error_chunk() {
    let pieces = [
        r#"{"ok": true, "data": {"rationale": "It is"#,
        r#" so."}, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}}"#,
    ];
    let server = Server::start(&Script::free(&pieces), "both", roomy()).await;
    let chunks = over_lines(&server).await;
    let last = chunks.last().unwrap();
    assert_eq!(last["error"]["code"], "E3001");
    assert_eq!(last["partial_data"]["rationale"], "It is so.");
    assert_eq!(chunks.iter().filter(|chunk| is_last(chunk)).count(), 1, "STREAM-004");
}

// CAP-010, EXT-NEG: over HTTP also in a header.
#[tokio::test]
async fn cap_010_a_module_that_does_not_stream_answers_whole_with_a_warning() {
    let server = Server::start(&Script::free(&ANSWER), "sync", roomy()).await;
    let response = ask(&server, "text/event-stream").send().await.unwrap();
    let warning = response.headers()["x-cognitive-warning"].to_str().unwrap().to_owned();
    assert!(warning.starts_with("STREAMING_UNAVAILABLE; fallback=sync; reason="), "{warning}");
    let envelope = json_of(response).await;
    assert_eq!(envelope["ok"], true);
    assert_eq!(envelope["meta"]["warnings"][0]["code"], "E4010");
    let strict = client().post(server.url("/api/run/words")).header("content-type", "application/json");
    let body = json!({ "input": { "text": "a" }, "_options": { "response_mode": "streaming", "require_streaming": true } });
    let response = strict.body(body.to_string()).send().await.unwrap();
    assert_eq!(response.status(), 501, "CAP-013");
}

// STREAM-006: a silent model does not look like a dead connection.
#[tokio::test]
async fn stream_006_silence_is_filled_with_heartbeats() {
    let script = Script::with_leave(&ANSWER, 1);
    let mut config = roomy();
    config.heartbeat = std::time::Duration::from_millis(1);
    let server = Server::start(&script, "both", config).await;
    for (accept, beat) in [("text/event-stream", "\n\n:\n\n"), ("application/x-ndjson", "\n{}\n")] {
        let mut response = ask(&server, accept).send().await.unwrap();
        let mut body = String::new();
        while !body.contains(beat) {
            body.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
        }
        script.allow(9);
    }
}

// Several runs on one socket, distinguished by their ids; one of them is cancelled.
#[tokio::test]
async fn api_006_a_socket_carries_several_runs_and_cancels_one() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "both", roomy()).await;
    let mut socket = socket(&server).await;
    say(&mut socket, &json!({ "type": "ping" })).await;
    assert_eq!(hear(&mut socket).await, json!({ "type": "pong" }));
    say(&mut socket, &json!({ "type": "run", "id": 1, "module": "words", "input": { "text": "a" } })).await;
    let opened = hear(&mut socket).await;
    script.until_open(1).await;
    say(&mut socket, &json!({ "type": "cancel", "session_id": opened["session_id"] })).await;
    let mut last = opened;
    while !is_last(&last) {
        last = hear(&mut socket).await;
    }
    assert_eq!((&last["error"]["code"], &last["id"]), (&json!("E2010"), &json!(1)));
    script.until_open(0).await;
    script.allow(9);
    say(&mut socket, &json!({ "type": "run", "id": 2, "module": "words", "input": { "text": "a" } })).await;
    while !last.get("final").is_some_and(Value::is_boolean) {
        last = hear(&mut socket).await;
    }
    assert_eq!(last["id"], 2);
    for odd in
        [json!({ "type": "dance", "id": 3 }), json!([]), json!({ "type": "run", "id": 3, "module": "../x" })]
    {
        say(&mut socket, &odd).await;
        let answer = hear(&mut socket).await;
        assert_eq!(answer["ok"], false, "{odd}");
        assert!(answer["session_id"].is_string(), "{odd}");
    }
}

#[tokio::test]
async fn routing_comes_in_trailers_where_they_are_asked_for() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let body = r#"{"text": "a"}"#;
    let request = format!(
        "POST /api/run/words HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/x-ndjson\r\nte: trailers\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (_, trailers) = answer.rsplit_once("\r\n0\r\n").unwrap();
    assert!(
        trailers.contains("cogn-ok: true\r\n") && trailers.contains("cogn-confidence: 0.9\r\n"),
        "{trailers}"
    );
}
