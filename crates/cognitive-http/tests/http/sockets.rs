//! Sockets with too many requests, idle sockets, and sockets with runs in flight when the server stops.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::frames::Raw;
use crate::streams::{hear, say, socket};
use crate::support::{ANSWER, Script, Server, endless, roomy, time_passes};

fn run(id: impl Into<Value>) -> Value {
    json!({ "type": "run", "id": id.into(), "module": "words", "input": { "text": "a" } })
}

fn is_last(chunk: &Value) -> bool {
    chunk.get("final").is_some() || chunk.get("error").is_some()
}

// STREAM-004, STREAM-023: each of many runs on one socket ends exactly once; most are refused.
#[tokio::test]
async fn many_runs_on_one_socket_each_end_once() {
    const MANY: u64 = 1_000;
    let mut config = roomy();
    config.streams_per_client = 4;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let (mut write, mut read) = socket(&server).await.split();
    let sending = async {
        for id in 0..MANY {
            write.send(Message::text(run(id).to_string())).await.unwrap();
        }
    };
    let hearing = async {
        let mut ends = HashMap::new();
        while ends.len() < usize::try_from(MANY).unwrap() {
            let Message::Text(text) = read.next().await.unwrap().unwrap() else { continue };
            let chunk: Value = serde_json::from_str(&text).unwrap();
            if is_last(&chunk) {
                let code = chunk["error"]["code"].as_str().map(str::to_owned);
                assert!(ends.insert(chunk["id"].as_u64().unwrap(), code).is_none(), "{chunk}");
            }
        }
        ends
    };
    let ((), ends) = tokio::join!(sending, hearing);
    assert!(ends.values().all(|code| code.as_deref().is_none_or(|code| code == "E4002")));
    assert!(ends.values().any(Option::is_none), "some ran");
}

#[tokio::test]
async fn a_socket_that_never_reads_is_let_go() {
    let script = endless();
    let mut config = roomy();
    config.write_timeout = Duration::from_millis(50);
    config.grace = Duration::ZERO;
    let server = Server::start(&script, "both", config).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut raw = Raw::over(socket.connect(server.address).await.unwrap()).await;
    raw.send(0x81, run(1).to_string().as_bytes()).await;
    script.until_open(1).await;
    script.until_open(0).await;
}

// An idle client that answers no pings does not keep its connection for ever.
#[tokio::test]
async fn a_socket_without_a_sign_of_life_is_closed() {
    let mut config = roomy();
    config.heartbeat = Duration::from_millis(5);
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let mut raw = Raw::open(&server).await;
    let mut heard = Vec::new();
    raw.0.read_to_end(&mut heard).await.unwrap();
    assert!(heard.starts_with(&[0x89, 0]), "it is asked first: {heard:?}");
    let goodbye = [&1008_u16.to_be_bytes()[..], b"the client sent nothing, not even a pong"].concat();
    assert!(heard.ends_with(&goodbye), "{heard:?}");
    // Another that answers pings, as every client does by itself, stays. The clock waits for its answers.
    let hour = Duration::from_hours(1);
    let mut config = roomy();
    config.heartbeat = hour;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let mut alive = socket(&server).await;
    // A server that answers waits for the next message.
    say(&mut alive, &json!({ "type": "ping" })).await;
    assert_eq!(hear(&mut alive).await, json!({ "type": "pong" }));
    for _ in 0..50 {
        server.is_up_to_date().await;
        time_passes(hour).await;
        assert!(matches!(alive.next().await.unwrap().unwrap(), Message::Ping(_)));
        alive.flush().await.unwrap();
    }
    say(&mut alive, &json!({ "type": "ping" })).await;
    assert_eq!(hear(&mut alive).await, json!({ "type": "pong" }));
}

#[tokio::test]
async fn a_socket_takes_a_place_among_the_connections() {
    let mut config = roomy();
    config.connections = 1;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let mut open = socket(&server).await;
    say(&mut open, &json!({ "type": "ping" })).await;
    hear(&mut open).await;
    let mut second = TcpStream::connect(server.address).await.unwrap();
    let mut nothing = Vec::new();
    second.read_to_end(&mut nothing).await.unwrap();
    assert!(nothing.is_empty(), "there is no place left");
}

// The id of a run is repeated in every chunk, so its length is limited.
#[tokio::test]
async fn an_id_is_a_number_or_a_short_string() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let mut socket = socket(&server).await;
    for odd in [json!("x".repeat(129)), json!({ "a": 1 }), json!([1]), json!(true)] {
        for message in [run(odd.clone()), json!({ "type": "dance", "id": odd })] {
            say(&mut socket, &message).await;
            let answer = hear(&mut socket).await;
            assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!("E1001"), None), "{message}");
        }
    }
    say(&mut socket, &run("x".repeat(128))).await;
    assert_eq!(hear(&mut socket).await["streaming"], true);
}

// CAP-013: the same option as over HTTP.
#[tokio::test]
async fn cap_013_a_socket_can_forbid_the_fallback() {
    let server = Server::start(&Script::free(&ANSWER), "sync", roomy()).await;
    let mut socket = socket(&server).await;
    let mut message = run(1);
    say(&mut socket, &message).await;
    let mut whole = hear(&mut socket).await;
    while !is_last(&whole) {
        whole = hear(&mut socket).await;
    }
    assert_eq!((&whole["final"], &whole["meta"]["warnings"][0]["code"]), (&json!(true), &json!("E4010")));
    message["options"] = json!({ "require_streaming": true });
    say(&mut socket, &message).await;
    assert_eq!(hear(&mut socket).await["error"]["code"], "E4010");
}

// S-05: a run has the trace of its message, or that of its socket, or a new one.
#[tokio::test]
async fn s_05_runs_on_a_socket_have_a_trace() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let [of_socket, of_run] = ["4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"];
    let parent = |id: &str| format!("00-{id}-00f067aa0ba902b7-01");
    let trace = async |socket: &mut _, message: &Value| {
        say(socket, message).await;
        loop {
            let chunk = hear(socket).await;
            if is_last(&chunk) {
                return chunk["meta"]["trace_id"].as_str().unwrap().to_owned();
            }
        }
    };
    let mut request = format!("ws://{}/ws", server.address).into_client_request().unwrap();
    request.headers_mut().insert("traceparent", parent(of_socket).parse().unwrap());
    let (mut traced, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    assert_eq!(trace(&mut traced, &run(1)).await, of_socket);
    let mut own = run(2);
    own["traceparent"] = json!(parent(of_run));
    assert_eq!(trace(&mut traced, &own).await, of_run);
    let mut plain = socket(&server).await;
    assert_ne!(trace(&mut plain, &run(1)).await, trace(&mut plain, &run(2)).await);
}

// During shutdown runs may end, new ones are refused, and incoming messages break nothing.
#[tokio::test]
async fn a_socket_that_talks_while_the_server_stops_hears_every_run_end() {
    let script = Script::with_leave(&ANSWER, 0);
    let mut config = roomy();
    config.drain = Duration::from_hours(1);
    let mut server = Server::start(&script, "both", config).await;
    let mut socket = socket(&server).await;
    say(&mut socket, &run(1)).await;
    let mut opened = hear(&mut socket).await;
    while opened.get("session_id").is_none() {
        opened = hear(&mut socket).await;
    }
    say(&mut socket, &run(2)).await;
    script.until_open(2).await;
    server.stop();
    while takes_connections(&server).await {}
    let mut ends = Vec::new();
    let mut listen = async |socket: &mut _, wanted: &str| loop {
        let chunk = hear(socket).await;
        if is_last(&chunk) {
            ends.push((chunk["id"].clone(), chunk["error"]["code"].clone()));
        }
        if chunk["type"] == wanted || (is_last(&chunk) && wanted == "end") {
            return;
        }
    };
    say(&mut socket, &json!({ "type": "cancel", "session_id": opened["session_id"] })).await;
    listen(&mut socket, "end").await;
    for _ in 0..3 {
        say(&mut socket, &json!({ "type": "ping" })).await;
        listen(&mut socket, "pong").await;
    }
    say(&mut socket, &run(3)).await;
    listen(&mut socket, "end").await;
    script.allow(ANSWER.len());
    listen(&mut socket, "end").await;
    assert_eq!(ends, [(json!(1), json!("E2010")), (json!(3), json!("E4001")), (json!(2), Value::Null)]);
    let Message::Close(Some(goodbye)) = socket.next().await.unwrap().unwrap() else { panic!("no goodbye") };
    assert_eq!(u16::from(goodbye.code), 1001);
    drop(socket);
    (&mut server.task).await.unwrap();
}

/// Returns whether the server still accepts connections.
async fn takes_connections(server: &Server) -> bool {
    TcpStream::connect(server.address).await.is_ok()
}

// The process ends when `serve` returns, so every client must have been notified by then.
#[test]
fn a_server_that_stopped_has_told_its_sockets() {
    let [outside, inside] = [(); 2].map(|()| tokio::runtime::Runtime::new().unwrap());
    let script = Script::with_leave(&ANSWER, 1);
    let mut config = roomy();
    config.drain = Duration::from_millis(20);
    let mut server = inside.block_on(Server::start(&script, "both", config));
    let mut socket = outside.block_on(async {
        let mut socket = socket(&server).await;
        say(&mut socket, &run(1)).await;
        script.until_open(1).await;
        socket
    });
    let (heard, hearing) = std::sync::mpsc::channel();
    outside.spawn(async move {
        let mut last = Value::Null;
        while !is_last(&last) {
            last = hear(&mut socket).await;
        }
        let goodbye = matches!(socket.next().await, Some(Ok(Message::Close(Some(_)))));
        let _ = heard.send((last["error"]["code"].clone(), goodbye));
    });
    server.stop();
    inside.block_on(async { (&mut server.task).await.unwrap() });
    drop(server);
    inside.shutdown_background();
    assert_eq!(hearing.recv().unwrap(), (json!("E2010"), true));
}

// ERR-008: the failure names the client's own cancel as the reason. The provider is not blamed, and the stream cannot
// be resumed.
#[tokio::test]
async fn a_cancel_of_the_client_is_explained_as_its_own() {
    let script = Script::with_leave(&ANSWER, 2);
    let server = Server::start(&script, "both", roomy()).await;
    let mut socket = socket(&server).await;
    say(&mut socket, &run(1)).await;
    let session = hear(&mut socket).await["session_id"].clone();
    script.until_open(1).await;
    say(&mut socket, &json!({ "type": "cancel", "session_id": session })).await;
    let mut last = hear(&mut socket).await;
    while !is_last(&last) {
        last = hear(&mut socket).await;
    }
    assert_eq!(last["error"]["code"], "E2010", "{last}");
    assert_eq!(
        last["meta"]["explain"], "Cancelled by the caller: the run was cancelled by the client",
        "{last}"
    );
    assert_eq!(last["error"]["details"]["kind"], "cancelled", "{last}");
    assert!(last["error"].get("recovery").is_none(), "{last}");
}

// CAP-010: the missing stream is reported once.
#[tokio::test]
async fn cap_010_a_socket_says_once_that_a_module_does_not_stream() {
    let server = Server::start(&Script::free(&ANSWER), "sync", roomy()).await;
    let mut socket = socket(&server).await;
    say(&mut socket, &run(1)).await;
    let mut last = hear(&mut socket).await;
    while !is_last(&last) {
        last = hear(&mut socket).await;
    }
    let warnings = last["meta"]["warnings"].as_array().unwrap();
    let codes: Vec<&Value> = warnings.iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["E4010"], "{last}");
}
