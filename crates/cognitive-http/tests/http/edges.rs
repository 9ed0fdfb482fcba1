//! Edge cases of the connection: invalid requests, too many connections from one address, and keys sent by browsers.

use cognitive_http::ApiKey;
use futures_util::StreamExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::streams::{hear, say};
use crate::support::{ANSWER, Script, Server, roomy};

const KEY: &str = "0123456789abcdef0123";

// The HTTP library itself answers unreadable requests: with a status only, and it closes the connection.
#[tokio::test]
async fn what_is_no_request_is_answered_with_a_status_and_closed() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let get = "GET /health HTTP/1.1\r\nhost: localhost\r\n";
    let cases = [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400),
        ("GET /\u{1} HTTP/1.1\r\n\r\n".to_owned(), 400),
        (format!("{get}a b: c\r\n\r\n"), 400),
        (format!("{get}x: {}\r\n\r\n", "y".repeat(1 << 20)), 431),
        (format!("{get}{}\r\n", "x: y\r\n".repeat(5_000)), 431),
        (format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "y".repeat(70_000)), 414),
    ];
    for (request, status) in cases {
        let answer = server.raw(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.60}: {answer}");
        assert_eq!(answer.find("\r\n\r\n"), Some(answer.len() - 4), "{request:.60}: {answer}");
    }
    let after_a_good_one = server.raw(format!("{get}\r\nnonsense\r\n\r\n").as_bytes()).await;
    assert!(after_a_good_one.starts_with("HTTP/1.1 200 OK"), "{after_a_good_one}");
    assert!(after_a_good_one.contains("HTTP/1.1 400 "), "{after_a_good_one}");
}

// One address cannot use up all connections. A closed connection releases its permit.
#[tokio::test]
async fn an_address_may_have_so_many_connections() {
    let mut config = roomy();
    config.connections_per_address = 2;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let health = async |stream: &mut TcpStream| {
        let sent = stream.write_all(b"GET /ready HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        let mut answer = [0; 12];
        sent.is_ok() && stream.read_exact(&mut answer).await.is_ok() && &answer == b"HTTP/1.1 200"
    };
    let mut two = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        assert!(health(&mut stream).await);
        two.push(stream);
    }
    let mut third = TcpStream::connect(server.address).await.unwrap();
    assert!(!health(&mut third).await, "it is closed at once");
    drop(two);
    let free = async {
        while !health(&mut TcpStream::connect(server.address).await.unwrap()).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(cognitive_testkit::PATIENCE, free).await.unwrap();
}

// S-19: a page cannot set headers of a WebSocket, so it sends its key as a subprotocol. The key is never sent back.
#[tokio::test]
async fn a_browser_shows_its_key_as_a_subprotocol() {
    let mut config = roomy();
    config.keys = vec![ApiKey::new("anna", KEY).unwrap()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let connect = async |protocols: &str| {
        let mut request = format!("ws://{}/ws", server.address).into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
        tokio_tungstenite::connect_async(request).await
    };
    let (mut socket, response) = connect(&format!("cogn, cogn.bearer.{KEY}")).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "cogn");
    say(&mut socket, &json!({ "type": "ping" })).await;
    assert_eq!(hear(&mut socket).await, json!({ "type": "pong" }));
    drop(socket.next());
    for wrong in ["cogn", "cogn, cogn.bearer.", "cogn, cogn.bearer.0123456789abcdef0124", KEY] {
        let Err(Error::Http(refusal)) = connect(wrong).await else { panic!("{wrong} was let in") };
        assert_eq!(refusal.status(), 401, "{wrong}");
    }
    // Other endpoints ignore the subprotocol.
    let run = format!(
        "POST /api/run/words HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\nsec-websocket-protocol: cogn.bearer.{KEY}\r\n\r\n"
    );
    assert!(server.raw(run.as_bytes()).await.starts_with("HTTP/1.1 401 "));
}
