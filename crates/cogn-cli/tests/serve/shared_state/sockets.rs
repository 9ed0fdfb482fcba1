//! Streams that started on a WebSocket: another server can continue them like any others.

use std::io::{Read, Write};
use std::net::TcpStream;

use cognitive_testkit::TestRedis;
use serde_json::{Value, json};

use super::service::{ANN, Home, Service};
use super::streams::{Chunks, session, shared, text, three};

/// The client side of a WebSocket.
struct Socket(TcpStream);

impl Socket {
    fn open(address: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        let hello = format!(
            "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{ANN}\r\n"
        );
        stream.write_all(hello.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
        Self(stream)
    }

    fn run(&mut self, text: &str) {
        let wish =
            json!({ "type": "run", "id": 1, "module": "talk", "input": { "text": format!("<{text}>") } });
        let wish = wish.to_string();
        // A masked text frame; the mask is zero, which is allowed.
        let mut frame = vec![0x81, 0x80 | u8::try_from(wish.len()).unwrap(), 0, 0, 0, 0];
        frame.extend(wish.bytes());
        self.0.write_all(&frame).unwrap();
    }

    /// Returns the next message with content.
    fn next(&mut self) -> Value {
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head).unwrap();
            let length = match head[1] {
                126 => {
                    let mut long = [0; 2];
                    self.0.read_exact(&mut long).unwrap();
                    usize::from(u16::from_be_bytes(long))
                }
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).unwrap();
            if head[0] == 0x81 {
                return serde_json::from_slice(&payload).unwrap();
            }
        }
    }

    /// Reads until a chunk matches and returns all chunks.
    fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut chunks = Vec::new();
        while !chunks.last().is_some_and(&is_wanted) {
            chunks.push(self.next());
        }
        chunks
    }
}

#[test]
fn a_stream_of_a_socket_is_taken_up_at_another_server() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new("audit: {enabled: false}\n"), Service::start());
    let [first, second, third] = three(&home, &service, &shared(&redis, "0"));
    let mut socket = Socket::open(&first.address);
    socket.run("full-a");
    let whole = socket.until(|chunk| chunk["final"] == true);
    socket.run("half-a");
    let half = socket.until(|chunk| chunk.to_string().contains("two"));
    let (whole_id, half_id) = (session(&whole), session(&half));
    // Both are followed while their server runs, so the others have its chunks.
    assert_eq!(
        text(&Chunks::open(&third.address, "full-a", &json!({}), Some(&whole_id)).rest()),
        text(&whole)
    );
    let mut waiting = Chunks::open(&third.address, "half-a", &json!({}), Some(&half_id));
    assert!(text(&waiting.until_text()).contains("one, two"));
    drop(first);
    let again = Chunks::open(&second.address, "full-a", &json!({}), Some(&whole_id)).rest();
    assert_eq!((again[0]["resumed"].as_bool(), text(&again)), (Some(true), text(&whole)));
    for chunks in [waiting.rest(), Chunks::open(&second.address, "half-a", &json!({}), Some(&half_id)).rest()]
    {
        let last = chunks.last().unwrap();
        assert_eq!(last["error"]["code"], "E2010", "{last}");
        assert!(last["partial_data"]["rationale"].as_str().unwrap().contains("one, two"), "{last}");
    }
    assert_eq!(service.total(), 2, "no model was asked a second time");
}
