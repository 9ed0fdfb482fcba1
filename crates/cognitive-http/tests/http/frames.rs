//! WebSocket at frame level, with frames that no proper client sends.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{ANSWER, Script, Server, roomy};

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A socket below the protocol.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::over(TcpStream::connect(server.address).await.unwrap()).await
    }

    pub(crate) async fn over(mut stream: TcpStream) -> Self {
        let hello = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(hello.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
        Self(stream)
    }

    pub(crate) async fn send(&mut self, first: u8, payload: &[u8]) {
        self.0.write_all(&frame(first, payload)).await.unwrap();
    }

    /// Reads the next frame: its first byte and its payload.
    async fn hear(&mut self) -> (u8, Vec<u8>) {
        let first = self.0.read_u8().await.unwrap();
        let length = match self.0.read_u8().await.unwrap() {
            126 => usize::from(self.0.read_u16().await.unwrap()),
            127 => usize::try_from(self.0.read_u64().await.unwrap()).unwrap(),
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).await.unwrap();
        (first, payload)
    }

    /// Reads up to the close frame and returns its code.
    async fn close_code(&mut self) -> u16 {
        loop {
            let (first, payload) = self.hear().await;
            if first == CLOSE {
                return u16::from_be_bytes([payload[0], payload[1]]);
            }
        }
    }
}

/// Builds a masked frame; the mask is zero, which is allowed.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..=125 => bytes.push(0x80 | u8::try_from(short).unwrap()),
        long => {
            bytes.push(0xfe);
            bytes.extend(u16::try_from(long).unwrap().to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

// S-17: a protocol violation closes the socket with the matching code and an orderly end.
#[tokio::test]
async fn broken_frames_are_told_what_was_wrong() {
    let mut config = roomy();
    config.body_limit = 100_000;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let unmasked = vec![TEXT, 2, b'{', b'}'];
    let oversized = [&[TEXT, 0xff][..], &(1_u64 << 40).to_be_bytes(), &[0; 4], &[b'x'; 4_000]].concat();
    let half = vec![b' '; 60_000];
    let table: [(&str, Vec<u8>, u16); 13] = [
        ("not UTF-8", frame(TEXT, b"\xff\xfe"), 1007),
        ("a torn character", [frame(0x01, b"\xe2\x98"), frame(0x80, b"x")].concat(), 1007),
        ("unmasked", unmasked, 1002),
        ("a reserved bit", frame(TEXT | 0x40, b"{}"), 1002),
        ("a reserved kind", frame(0x83, b"{}"), 1002),
        ("a reserved kind of control", frame(0x8b, b""), 1002),
        ("an end without a beginning", frame(0x80, b"{}"), 1002),
        ("a beginning inside another", [frame(0x01, b"{"), frame(0x81, b"}")].concat(), 1002),
        ("a ping in parts", frame(0x09, b""), 1002),
        ("a ping that is too long", frame(PING, &[0; 126]), 1002),
        ("a message that is too long", oversized, 1009),
        ("too long in parts", [frame(0x01, &half), frame(0x80, &half)].concat(), 1009),
        ("a goodbye", frame(CLOSE, &1000_u16.to_be_bytes()), 1000),
    ];
    for (what, bytes, expected) in table {
        let mut raw = Raw::open(&server).await;
        raw.0.write_all(&bytes).await.unwrap();
        assert_eq!(raw.close_code().await, expected, "{what}");
        let mut rest = Vec::new();
        raw.0.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "{what}: nothing follows a goodbye");
    }
}

#[tokio::test]
async fn a_message_in_parts_with_pings_between_is_one_message() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let mut raw = Raw::open(&server).await;
    let parts = [
        frame(0x01, br#"{"type": "p"#),
        frame(PING, b"one"),
        frame(0x00, b"in"),
        frame(PING, b"two"),
        frame(0x80, br#"g"}"#),
    ];
    raw.0.write_all(&parts.concat()).await.unwrap();
    let mut heard = Vec::new();
    while heard.last().is_none_or(|(first, _)| *first != TEXT) {
        heard.push(raw.hear().await);
    }
    assert_eq!(heard.pop().unwrap().1, br#"{"type":"pong"}"#);
    assert_eq!(heard.pop().unwrap(), (PONG, b"two".to_vec()));
}

// A flood of pings is answered as far as the client reads; the socket keeps working.
#[tokio::test]
async fn a_flood_of_pings_drowns_nobody() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let mut raw = Raw::open(&server).await;
    let flood = frame(PING, &[7; 125]).repeat(20_000);
    let (mut read, mut write) = raw.0.split();
    let sending = async {
        write.write_all(&flood).await.unwrap();
        write.write_all(&frame(TEXT, br#"{"type":"ping"}"#)).await.unwrap();
    };
    let hearing = async {
        let mut heard = Vec::with_capacity(4 << 20);
        while !heard.ends_with(br#"{"type":"pong"}"#) {
            read.read_buf(&mut heard).await.unwrap();
        }
    };
    tokio::join!(sending, hearing);
}
