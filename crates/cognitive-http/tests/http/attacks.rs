//! Hostile requests: slow, huge, truncated or odd. The server answers or disconnects, and its state does not change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_http::ApiKey;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{ANSWER, Script, Server, ask, client, endless, head, json_of, roomy, time_passes};

/// A limit that no test waits for, and what lets it pass.
const LIMIT: Duration = Duration::from_hours(1);
const BEYOND: Duration = Duration::from_hours(2);

/// A connection on which this was sent.
async fn sending(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// The head of what comes next.
async fn until_blank_line(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Returns the bytes until the server closes the connection.
async fn until_closed(mut stream: TcpStream) -> String {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard).await;
    String::from_utf8(heard).unwrap()
}

// A connection that sends nothing, or too little, is closed: at its beginning and between two requests.
#[tokio::test]
async fn slow_headers_are_not_waited_for() {
    let mut config = roomy();
    config.read_timeout = LIMIT;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let silent = sending(&server, b"").await;
    let torn = sending(&server, b"GET /health HTTP/1.1\r\nhos").await;
    let mut kept = sending(&server, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        assert!(kept.read_buf(&mut answer).await.unwrap() > 0);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
    server.is_up_to_date().await;
    time_passes(BEYOND).await;
    assert_eq!(until_closed(silent).await, "");
    assert!(!until_closed(torn).await.contains("200 OK"));
    assert_eq!(until_closed(kept).await, "");
}

#[tokio::test]
async fn slow_bodies_are_not_waited_for() {
    let mut config = roomy();
    config.read_timeout = LIMIT;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let mut torn = sending(&server, head(100, "expect: 100-continue\r\n").as_bytes()).await;
    // Said when the server begins to wait for the body.
    assert!(until_blank_line(&mut torn).await.starts_with("HTTP/1.1 100 "));
    torn.write_all(b"{\"te").await.unwrap();
    server.is_up_to_date().await;
    time_passes(BEYOND).await;
    let answer = until_blank_line(&mut torn).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("cogn-error-code: E2002\r\n"), "{answer}");
}

#[tokio::test]
async fn bodies_without_a_length_have_a_limit_and_torn_ones_are_called_torn() {
    let mut config = roomy();
    config.body_limit = 1_000;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let chunked = "POST /api/run/words HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let large = chunked.to_owned() + &format!("64\r\n{}\r\n", " ".repeat(100)).repeat(20);
    let answer = server.raw(large.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("E1005"), "{answer}");
    let answer = server.raw(format!("{chunked}not a length\r\n").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("E1000"), "{answer}");
}

// The response must not be lost because the client is still sending the refused body.
#[tokio::test]
async fn a_body_that_is_too_large_is_answered_while_it_is_sent() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    for _ in 0..10 {
        let (mut read, mut write) = TcpStream::connect(server.address).await.unwrap().into_split();
        let size = 8 << 20;
        write.write_all(head(size, "").as_bytes()).await.unwrap();
        let sending = tokio::spawn(async move { write.write_all(&vec![b' '; size]).await });
        sending.await.unwrap().unwrap();
        let mut answer = String::new();
        read.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }
}

#[tokio::test]
async fn huge_headers_are_refused() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let long = format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    assert!(!server.raw(long.as_bytes()).await.contains("200 OK"));
    let many = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(5_000));
    assert!(!server.raw(many.as_bytes()).await.contains("200 OK"));
    assert_eq!(client().get(server.url("/health")).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
    let body = r#"{"text": "a"}"#;
    let requests = [
        get("/ready", ""),
        head(body.len(), "") + body,
        get("/nothing", ""),
        get("/ready", "connection: close\r\n"),
    ];
    let answer = server.raw(requests.concat().as_bytes()).await;
    let statuses: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).map(|part| &part[..3]).collect();
    assert_eq!(statuses, ["200", "200", "404", "200"], "{answer}");
}

// S-18: a half-closed connection counts as closed. A client that shuts down its side before the answer is gone, and
// the call ends.
#[tokio::test]
async fn a_half_closed_connection_takes_its_call_along() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "both", roomy()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all((head(13, "") + r#"{"text": "a"}"#).as_bytes()).await.unwrap();
    script.until_open(1).await;
    stream.shutdown().await.unwrap();
    script.until_open(0).await;
}

#[tokio::test]
async fn a_client_that_never_reads_is_let_go() {
    let script = endless();
    let mut config = roomy();
    config.write_timeout = Duration::from_millis(50);
    config.grace = Duration::ZERO;
    let server = Server::start(&script, "both", config).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let request = head(13, "accept: application/x-ndjson\r\n") + r#"{"text": "a"}"#;
    stream.write_all(request.as_bytes()).await.unwrap();
    script.until_open(1).await;
    script.until_open(0).await;
}

#[tokio::test]
async fn json_that_is_too_deep_is_an_error_like_any_other() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let bombs = ["[".repeat(1_000_000), r#"{"a":"#.repeat(200_000), r#"{"input":"#.repeat(200_000)];
    for (bomb, path) in bombs.iter().flat_map(|bomb| [(bomb, "/api/run/words"), (bomb, "/run")]) {
        let request = client().post(server.url(path)).header("content-type", "application/json");
        let response = request.body(bomb.clone()).send().await.unwrap();
        assert_eq!(response.status(), 400);
        assert_eq!(json_of(response).await["ok"], false);
    }
}

// Invalid UTF-8, dots, zeros and long names: an envelope on every route.
#[tokio::test]
async fn names_that_no_module_can_have_are_not_found() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let long = "a".repeat(5_000);
    for name in ["%ff", "%00", "..%2fa", "%c3%a9", "a%0d%0ab", "a%20b", &long] {
        let run =
            client().post(server.url(&format!("/api/run/{name}"))).header("content-type", "application/json");
        let run = run.body("{}").send().await.unwrap();
        let info = client().get(server.url(&format!("/api/modules/{name}"))).send().await.unwrap();
        for response in [run, info] {
            assert_eq!(response.status(), 404, "{name:.20}");
            assert_eq!(response.headers()["cogn-error-code"], "E4006", "{name:.20}");
            let body = response.text().await.unwrap();
            assert!(body.len() < 1_000, "{body:.100}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap()["ok"], false);
        }
    }
}

// S-29: the client is identified by the connection, not by a forged header.
#[tokio::test]
async fn an_address_in_a_header_is_not_believed() {
    let mut config = roomy();
    config.runs_per_minute = 2;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    for (number, expected) in [200, 200, 429].into_iter().enumerate() {
        let request = ask(&server, "application/json");
        let request = request.header("x-forwarded-for", format!("10.0.0.{number}"));
        let request = request.header("forwarded", format!("for=10.0.1.{number}"));
        assert_eq!(request.send().await.unwrap().status(), expected);
    }
}

// Looking up missing modules costs as much as running existing ones.
#[tokio::test]
async fn guessing_names_is_limited_like_running() {
    let mut config = roomy();
    config.runs_per_minute = 2;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    for (name, expected) in [("absent", 404), ("words", 200), ("missing", 429), ("words", 429)] {
        let request = client().post(server.url(&format!("/api/run/{name}")));
        let request = request.header("content-type", "application/json").body(r#"{"text": "a"}"#);
        assert_eq!(request.send().await.unwrap().status(), expected, "{name}");
    }
}

// S-19: without a key no method reveals what exists.
#[tokio::test]
async fn the_key_comes_before_everything_else() {
    let mut config = roomy();
    config.keys = vec![ApiKey::new("anna", "a-key-of-some-length").unwrap()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    for path in ["/api/run/words", "/api/run/absent", "/nothing", "/openapi.json", "/ws"] {
        for method in ["GET", "HEAD", "POST", "OPTIONS", "DELETE", "PUT"] {
            let response = client().request(method.parse().unwrap(), server.url(path)).send().await.unwrap();
            assert_eq!(response.status(), 401, "{method} {path}");
            assert!(!response.headers().contains_key("allow"), "{method} {path}");
        }
    }
    let request = ask(&server, "application/json").header("authorization", "BEARER  a-key-of-some-length");
    assert_eq!(request.send().await.unwrap().status(), 200, "the scheme has no case");
}

#[tokio::test]
async fn methods_that_are_not_the_usual_ones() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let send = async |method: &str, path: &str| {
        client().request(method.parse().unwrap(), server.url(path)).send().await.unwrap()
    };
    let health = send("HEAD", "/health").await;
    assert_eq!(health.status(), 200);
    assert_eq!(health.text().await.unwrap(), "");
    let run = send("HEAD", "/api/run/words").await;
    assert_eq!((run.status().as_u16(), run.headers()["allow"].to_str().unwrap()), (405, "POST"));
    let options = send("OPTIONS", "/api/run/words").await;
    assert_eq!(options.status(), 405);
    assert_eq!(json_of(options).await["error"]["code"], "E1006");
}

#[tokio::test]
async fn the_page_for_people_runs_no_script_but_its_own() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let page = client().get(server.url("/docs")).send().await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("script-src 'self';"), "{policy}");
    let page = page.text().await.unwrap();
    assert!(page.contains(r#"<script src="docs.js"></script>"#) && page.matches("<script").count() == 1);
    let script = client().get(server.url("/docs.js")).send().await.unwrap();
    assert!(script.headers()["content-type"].to_str().unwrap().starts_with("text/javascript"));
    assert!(script.text().await.unwrap().contains("textContent"));
}

/// A library that counts its folder scans.
#[derive(Default)]
struct Walked(AtomicUsize);

impl ModuleSource for Walked {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        Err(Failure::new(ErrorCode::ModuleNotFound, "none"))
    }

    fn names(&self) -> Vec<String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        vec!["a".to_owned()]
    }
}

// A hundred health checks do not make the server scan its folders a hundred times.
#[tokio::test]
async fn folders_are_not_walked_for_every_request() {
    let walked = Arc::new(Walked::default());
    let modules: Arc<dyn ModuleSource> = Arc::clone(&walked) as Arc<dyn ModuleSource>;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_modules(folder, modules, &Script::free(&ANSWER), roomy()).await;
    let client = client();
    let started = std::time::Instant::now();
    for path in ["/health", "/api/modules", "/openapi.json"] {
        let asked = (0..100).map(|_| client.get(server.url(path)).send());
        for response in futures_util::future::join_all(asked).await {
            assert_eq!(response.unwrap().status(), 200);
        }
    }
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
    let walks = walked.0.load(Ordering::SeqCst);
    assert!((1..=1 + seconds).contains(&walks), "{walks} walks in {seconds} s");
    assert_eq!(
        json_of(client.get(server.url("/health")).send().await.unwrap()).await["modules_count"],
        json!(1)
    );
}
