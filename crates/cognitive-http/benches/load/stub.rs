//! A model that answers at once (`/v1`), or one piece every half second (`/slow/v1`), in the wire format of OpenAI.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const PIECES: [&str; 6] = [
    r#"{"ok": true, "data": {"rationale": "It is "#,
    "short and easy to ",
    r#"read.", "words": ["win"#,
    r#"ter", "snow"]}, "#,
    r#""meta": {"confidence": 0.9, "#,
    r#""risk": "low", "explain": "Two words"}}"#,
];

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of connections so far.
pub(crate) fn connections() -> usize {
    CONNECTIONS.load(Ordering::Relaxed)
}

/// Starts the stub and returns its address.
pub(crate) async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            CONNECTIONS.fetch_add(1, Ordering::Relaxed);
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream));
        }
    });
    address
}

fn event(text: &str, finish: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        "data: {{\"model\":\"stub\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

async fn serve(mut stream: TcpStream) {
    let mut kept = Vec::new();
    while let Some(slow) = read(&mut stream, &mut kept).await {
        let mut events: Vec<String> = PIECES.iter().map(|piece| event(piece, "null")).collect();
        events.push(event("", "\"stop\"") + "data: [DONE]\n\n");
        let length: usize = events.iter().map(String::len).sum();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
        if !slow {
            let whole = head + &events.concat();
            if stream.write_all(whole.as_bytes()).await.is_err() {
                return;
            }
            continue;
        }
        let _ = stream.write_all(head.as_bytes()).await;
        for event in events {
            if stream.write_all(event.as_bytes()).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Reads one request; returns whether it asks for the slow answer. `None` when the client is gone.
async fn read(stream: &mut TcpStream, kept: &mut Vec<u8>) -> Option<bool> {
    let head = loop {
        if let Some(at) = kept.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        fill(stream, kept).await?;
    };
    let text = String::from_utf8_lossy(&kept[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    while kept.len() < head + length {
        fill(stream, kept).await?;
    }
    let slow = text.starts_with("post /slow");
    kept.drain(..head + length);
    Some(slow)
}

async fn fill(stream: &mut TcpStream, kept: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 4096];
    let count = stream.read(&mut piece).await.ok()?;
    kept.extend_from_slice(&piece[..count]);
    (count > 0).then_some(())
}
