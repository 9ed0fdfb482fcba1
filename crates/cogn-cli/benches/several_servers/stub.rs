//! A model that answers at once, in the OpenAI wire format, on persistent connections.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &str = r#"{"ok": true, "data": {"rationale": "It is short and easy to read.", "words": ["winter", "snow"]}, "meta": {"confidence": 0.9, "risk": "low", "explain": "Two words"}}"#;

/// Starts the stub and returns its address.
pub(crate) async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream));
        }
    });
    address
}

async fn serve(mut stream: TcpStream) {
    let (mut kept, mut piece) = (Vec::new(), [0; 8192]);
    let event = |content: &str, finish: &str| {
        let content = serde_json::Value::from(content);
        format!(
            "data: {{\"model\":\"stub\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{content}}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let body = event(ANSWER, "null") + &event("", "\"stop\"") + "data: [DONE]\n\n";
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    loop {
        if let Some(end) = whole_request(&kept) {
            kept.drain(..end);
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
            continue;
        }
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => kept.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
}

/// Returns the end of the first request, if it is complete.
fn whole_request(kept: &[u8]) -> Option<usize> {
    let head = kept.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&kept[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let end = head + length.trim().parse::<usize>().ok()?;
    (kept.len() >= end).then_some(end)
}
