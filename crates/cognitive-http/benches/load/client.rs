//! Clients that send requests as fast as they are answered, and clients that read streams.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The result of one round of load.
pub(crate) struct Load {
    pub(crate) count: f64,
    pub(crate) per_second: f64,
    /// The processor time of the server for one request; 0 until the caller has read it.
    pub(crate) processor_micros: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Returns a request as bytes.
pub(crate) fn request(path: &str, accept: &str) -> String {
    let body = r#"{"text": "winter snow"}"#;
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: {accept}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Runs this many connections for this long, each with one request after the other.
pub(crate) async fn load(address: &str, request: &str, connections: usize, time: Duration) -> Load {
    let started = Instant::now();
    let clients = (0..connections).map(|_| {
        let (address, request) = (address.to_owned(), request.to_owned());
        tokio::spawn(async move {
            let mut times = Vec::new();
            ask(&address, &request, |took| {
                times.push(took.as_secs_f64() * 1_000.0);
                started.elapsed() < time
            })
            .await;
            times
        })
    });
    let mut times: Vec<f64> = join_all(clients).await.into_iter().flat_map(|times| times.unwrap()).collect();
    let seconds = started.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    #[expect(clippy::cast_precision_loss, reason = "less than a million")]
    let count = times.len() as f64;
    Load { count, per_second: count / seconds, processor_micros: 0.0, p50: at(50), p99: at(99) }
}

/// Sends requests on one connection until the callback for latencies returns false.
pub(crate) async fn ask(address: &str, request: &str, mut heard: impl FnMut(Duration) -> bool) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut kept = Vec::new();
    loop {
        let started = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        answer(&mut stream, &mut kept).await;
        if !heard(started.elapsed()) {
            return;
        }
    }
}

/// Reads one response with a length, and asserts that it is a success.
async fn answer(stream: &mut TcpStream, kept: &mut Vec<u8>) {
    let mut piece = [0; 8192];
    loop {
        if let Some(at) = kept.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&kept[..at]).to_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let end = at + 4 + length.trim().parse::<usize>().unwrap();
            if kept.len() >= end {
                kept.drain(..end);
                return;
            }
        }
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the server closed the connection");
        kept.extend_from_slice(&piece[..count]);
    }
}

/// Returns the milliseconds until a response contains a text; the rest is read and dropped.
pub(crate) async fn time_to(address: &str, request: &str, text: &str) -> f64 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let started = Instant::now();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = String::new();
    let mut piece = [0; 8192];
    while !seen.contains(text) {
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the stream ended without `{text}`: {seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    started.elapsed().as_secs_f64() * 1_000.0
}

/// Runs this many streams at once; returns how many succeeded.
pub(crate) async fn streams(address: &str, request: &str, count: usize) -> usize {
    let clients = (0..count).map(|_| {
        let (address, request) =
            (address.to_owned(), request.replace("content-length", "connection: close\r\ncontent-length"));
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut seen = String::new();
            stream.read_to_string(&mut seen).await.is_ok() && seen.contains("event: final")
        })
    });
    join_all(clients).await.into_iter().filter(|ended| *ended.as_ref().unwrap_or(&false)).count()
}
