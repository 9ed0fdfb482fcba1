//! Requests that are small on the wire and large in memory, or large and never complete: their memory limits on every
//! transport.

use std::time::Duration;

use cognitive_testkit::PATIENCE;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::frames::Raw;
use crate::streams::{hear, say, socket};
use crate::support::{ANSWER, Script, Server, ask, client, endless, head, json_of, roomy, time_passes};

/// Returns a body of this many bytes, made of small values.
fn values(piece: &str, bytes: usize) -> String {
    format!("{{\"text\": [{}0]}}", piece.repeat(bytes / piece.len()))
}

async fn posted(server: &Server, path: &str, body: String) -> (u16, Value) {
    let request = client().post(server.url(path)).header("content-type", "application/json");
    let response = request.body(body).send().await.unwrap();
    (response.status().as_u16(), json_of(response).await)
}

// H2, S-28: a body within its limit may still be a hundred times as large when parsed. It is refused before that.
#[tokio::test]
async fn a_body_of_too_many_values_is_refused_before_they_are_built() {
    let script = Script::free(&ANSWER);
    let mut config = roomy();
    config.body_limit = 400 << 10;
    let server = Server::start(&script, "both", config).await;
    for piece in ["{\"\":0},", "[0],", "0,", "\"\",", "{\"a\":{\"b\":0}},"] {
        let (status, envelope) = posted(&server, "/api/run/words", values(piece, 390 << 10)).await;
        assert_eq!((status, &envelope["error"]["code"]), (413, &json!("E1005")), "{piece}: {envelope}");
        let named = format!("{{\"module\": \"words\", \"input\": {}}}", values(piece, 390 << 10));
        let (status, envelope) = posted(&server, "/run", named.clone()).await;
        assert_eq!((status, &envelope["error"]["code"]), (413, &json!("E1005")), "{piece}: {envelope}");
        let mut socket = socket(&server).await;
        let message = named.replacen('{', "{\"type\": \"run\", ", 1);
        futures_util::SinkExt::send(&mut socket, Message::text(message)).await.unwrap();
        assert_eq!(hear(&mut socket).await["error"]["code"], "E1005", "{piece}");
    }
    assert_eq!(script.calls(), 0);
}

// H2: realistic bodies pass: three-digit numbers, records, and text up to the limit.
#[tokio::test]
async fn an_ordinary_body_of_the_largest_size_is_never_too_many_values() {
    let mut config = roomy();
    config.body_limit = 400 << 10;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let record = "{\"id\": 17, \"name\": \"winter snow\"},";
    for piece in ["123,", "0.25, ", record, "\"a word or two\",", "[1.5, 2.5, 3.5],"] {
        let (status, envelope) = posted(&server, "/api/run/words", values(piece, 390 << 10)).await;
        assert_eq!((status, &envelope["error"]["code"]), (400, &json!("E1001")), "{piece}");
    }
    let text = json!({ "text": "x".repeat(390 << 10) }).to_string();
    assert_eq!(posted(&server, "/api/run/words", text).await.0, 200);
}

// H2: parsed values are counted in addition to the body.
#[tokio::test]
async fn values_take_room_besides_their_text() {
    let mut config = roomy();
    config.large_bodies = 4 << 20;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let (status, envelope) = posted(&server, "/api/run/words", values("123,", 200 << 10)).await;
    assert_eq!((status, &envelope["error"]["code"]), (429, &json!("E4002")), "{envelope}");
    let text = json!({ "text": "x".repeat(1 << 20) }).to_string();
    assert_eq!(posted(&server, "/api/run/words", text).await.0, 200);
}

// H2, S-29: a rate-limited client is refused before a large body is read.
#[tokio::test]
async fn the_rate_is_asked_before_a_large_body_is_read() {
    let mut config = roomy();
    config.runs_per_minute = 1;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let first = ask(&server, "application/json").send().await.unwrap();
    assert_eq!(first.status(), 200);
    // No byte of the body is ever sent.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head(1 << 20, "").as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 429");
    let mut socket = socket(&server).await;
    let text = "x".repeat(100 << 10);
    say(&mut socket, &json!({ "type": "run", "id": 1, "module": "words", "input": { "text": text } })).await;
    assert_eq!(hear(&mut socket).await["error"]["code"], "E4002");
}

// EXT-REC, S-29: resuming a stream does not count as a run, with any recovery method.
#[tokio::test]
async fn coming_back_does_not_count_as_a_run() {
    let mut config = roomy();
    config.runs_per_minute = 2;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let whole = ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap();
    let session = whole.split("\"session_id\":\"").nth(1).unwrap().split('"').next().unwrap();
    let body = json!({ "text": "a", "_recovery": { "session_id": session, "last_seq": 1 } }).to_string();
    let come_back = async || {
        let again = client().post(server.url("/api/run/words")).header("content-type", "application/json");
        let again = again.header("accept", "text/event-stream").body(body.clone()).send().await.unwrap();
        assert_eq!(again.status(), 200);
        assert!(again.text().await.unwrap().contains("resumed"));
    };
    come_back().await;
    come_back().await;
    assert_eq!(ask(&server, "application/json").send().await.unwrap().status(), 200);
    assert_eq!(ask(&server, "application/json").send().await.unwrap().status(), 429);
    come_back().await;
}

// H2: the received part of a message counts, even if it never completes.
#[tokio::test]
async fn an_unfinished_message_takes_room_from_everybody() {
    let mut config = roomy();
    config.large_bodies = 2 << 20;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let large = || json!({ "text": "x".repeat(1_500 << 10) }).to_string();
    let mut raw = Raw::open(&server).await;
    for number in 0..30 {
        raw.send(u8::from(number == 0), &vec![b' '; 60_000]).await;
    }
    // The pong shows that everything before the ping was read.
    raw.send(0x89, b"").await;
    let mut pong = [0; 2];
    raw.0.read_exact(&mut pong).await.unwrap();
    assert_eq!(pong, [0x8a, 0]);
    assert_eq!(posted(&server, "/api/run/words", large()).await.0, 429);
    raw.send(0x88, &1000_u16.to_be_bytes()).await;
    raw.0.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(posted(&server, "/api/run/words", large()).await.0, 200);
}

// H2: a frame that announces many bytes and sends none reserves no memory; one above the limit is refused at once.
#[tokio::test]
async fn a_message_above_the_limit_closes_with_1009_before_it_is_sent() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let mut raw = Raw::open(&server).await;
    let announced = [&[0x81, 0xff][..], &(3_u64 << 20).to_be_bytes(), &[0; 4]].concat();
    raw.0.write_all(&announced).await.unwrap();
    let mut heard = Vec::new();
    raw.0.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard.get(2..4), Some(&1009_u16.to_be_bytes()[..]), "{heard:?}");
}

// H2: a message has the same deadline as a body.
#[tokio::test]
async fn a_message_that_does_not_arrive_is_not_waited_for() {
    let mut config = roomy();
    config.read_timeout = Duration::from_hours(1);
    config.heartbeat = Duration::from_hours(24);
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let mut quiet = socket(&server).await;
    let mut raw = Raw::open(&server).await;
    raw.send(0x01, b"{").await;
    // The answer to a ping says that everything before it was read.
    raw.send(0x89, b"").await;
    let mut pong = [0; 2];
    raw.0.read_exact(&mut pong).await.unwrap();
    assert_eq!(pong, [0x8a, 0]);
    time_passes(Duration::from_hours(2)).await;
    let mut heard = Vec::new();
    raw.0.read_to_end(&mut heard).await.unwrap();
    assert!(heard.ends_with(b"the message did not arrive in time"), "{heard:?}");
    // Between messages a socket may be quiet for longer.
    say(&mut quiet, &json!({ "type": "ping" })).await;
    assert_eq!(hear(&mut quiet).await, json!({ "type": "pong" }));
}

// S3: a socket whose client reads nothing is closed with all its runs, even if the client still sends.
#[tokio::test]
async fn a_socket_that_takes_nothing_is_closed_like_any_other_connection() {
    let script = endless();
    let mut config = roomy();
    config.write_timeout = Duration::from_millis(50);
    config.grace = Duration::ZERO;
    let server = Server::start(&script, "both", config).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut raw = Raw::over(socket.connect(server.address).await.unwrap()).await;
    let run = json!({ "type": "run", "module": "words", "input": { "text": "a" } });
    raw.send(0x81, run.to_string().as_bytes()).await;
    script.until_open(1).await;
    script.until_open(0).await;
    // A client that reads now gets the rest and then the end.
    let mut heard = Vec::new();
    let rest = raw.0.read_to_end(&mut heard);
    assert!(tokio::time::timeout(PATIENCE, rest).await.is_ok(), "the socket is still open");
}

// S2: when all streams together exceed their memory limit, the one without a reader ends with an error.
#[tokio::test]
async fn a_stream_that_nobody_reads_is_given_up_for_the_others() {
    let script = endless();
    let mut config = roomy();
    config.live_streams = 2 << 20;
    config.write_timeout = Duration::from_hours(1);
    config.stream_limit = Duration::from_hours(1);
    let server = Server::start(&script, "both", config).await;
    let lazy = TcpSocket::new_v4().unwrap();
    lazy.set_recv_buffer_size(4 << 10).unwrap();
    let mut lazy = lazy.connect(server.address).await.unwrap();
    let request = head(13, "accept: application/x-ndjson\r\nconnection: close\r\n") + r#"{"text": "a"}"#;
    lazy.write_all(request.as_bytes()).await.unwrap();
    script.until_open(1).await;
    // The model has not finished: the server cancels the run.
    script.until_open(0).await;
    let mut heard = String::new();
    lazy.read_to_string(&mut heard).await.unwrap();
    assert!(heard.contains("the client reads too slowly") && heard.contains("E2010"), "{heard:.200}");
    assert_eq!(server.sound().await, 200);
}

impl Server {
    /// Returns the status of an unrelated request.
    async fn sound(&self) -> u16 {
        client().get(self.url("/ready")).send().await.unwrap().status().as_u16()
    }
}

// S-17: a socket that the server closes gets a close code.
#[tokio::test]
async fn a_message_too_large_for_its_module_closes_with_1009() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let mut socket = socket(&server).await;
    let text = "x".repeat(3 << 20);
    say(&mut socket, &json!({ "type": "run", "module": "words", "input": { "text": text } })).await;
    let Some(Ok(Message::Close(Some(goodbye)))) = socket.next().await else { panic!("no goodbye") };
    assert_eq!(u16::from(goodbye.code), 1009);
}
