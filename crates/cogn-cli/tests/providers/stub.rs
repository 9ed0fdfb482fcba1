//! A local service that a test scripts: it answers, stalls, breaks off or never ends. It uses the OpenAI wire format,
//! with TLS or without. One request per connection; judges nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use serde_json::{Value, json};

/// The certificate of the service and its key. It is untrusted by default.
pub(crate) const SELF_SIGNED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/providers/self-signed.pem");

/// The pause of a slow model between two events.
const MOMENT: Duration = Duration::from_millis(5);

/// The reaction of the service to a request.
#[derive(Clone)]
pub(crate) struct Act {
    /// The status line and the headers; without them nothing is sent.
    head: Option<String>,
    body: String,
    /// True if each letter of the body stands for one byte.
    latin: bool,
    then: Then,
}

/// The action after the body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The response is complete.
    End,
    /// Closes the connection, although more was announced.
    Close,
    /// Resets the connection.
    Reset,
    /// Sends nothing, until the client disconnects.
    Silence,
    /// Repeats the body, until the client disconnects.
    Repeat,
}

impl Act {
    /// Returns a complete response.
    pub(crate) fn reply(status: u16, headers: &str, body: impl Into<String>) -> Self {
        let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}");
        Self { head: Some(head), body: body.into(), latin: false, then: Then::End }
    }

    /// Returns a response in bytes, each given as the letter with its code.
    pub(crate) fn latin(status: u16, headers: &str, body: String) -> Self {
        Self { latin: true, ..Self::reply(status, headers, body) }
    }

    /// Returns the body in bytes.
    fn bytes(&self) -> Vec<u8> {
        let byte = |letter: char| u8::try_from(u32::from(letter)).unwrap();
        if self.latin { self.body.chars().map(byte).collect() } else { self.body.clone().into_bytes() }
    }

    /// Returns a response as an event stream.
    pub(crate) fn stream(body: impl Into<String>) -> Self {
        Self::reply(200, "content-type: text/event-stream\r\n", body)
    }

    /// Returns an error in the format of the service.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        let body = json!({ "error": { "message": message, "type": code, "code": code } });
        Self::reply(status, "content-type: application/json\r\n", body.to_string())
    }

    /// Returns no response at all.
    pub(crate) fn nothing(then: Then) -> Self {
        Self { head: None, body: String::new(), latin: false, then }
    }

    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// Returns the head of the response. An endless body has no length; a truncated one announces more.
    fn opening(&self) -> Option<String> {
        let length = match self.then {
            Then::End => self.bytes().len(),
            _ => self.bytes().len() + 1_000_000_000,
        };
        self.head.as_ref().map(|head| format!("{head}content-length: {length}\r\n\r\n"))
    }
}

/// Returns the answer of every successful run.
pub(crate) fn good() -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
            "data": { "rationale": "One topic.", "summary": "Short." } })
}

/// Returns an event with a piece of an answer.
pub(crate) fn piece(text: &str, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "model": "stub-1", "choices": [choice] }))
}

/// Returns an answer as a stream of two pieces.
pub(crate) fn streamed(answer: &Value) -> String {
    let text = answer.to_string();
    let (first, second) = text.split_at(text.len() / 2);
    let usage = json!({ "model": "stub-1", "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 } });
    let end = format!("data: {usage}\n\ndata: [DONE]\n\n");
    piece(first, None) + &piece(second, None) + &piece("", Some("stop")) + &end
}

/// The service.
pub(crate) struct Stub {
    /// `127.0.0.1:PORT`.
    pub(crate) place: String,
    asked: Asked,
}

/// The requests to the service, one text per connection. Recorded before the response, so that a client with the
/// response can read them.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    fn with<T>(&self, look: impl FnOnce(&mut Vec<String>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Stub {
    /// Starts a service that follows the script, one act per connection, and repeats the last one.
    pub(crate) fn start(script: Vec<Act>) -> Self {
        Self::serve(script, converse)
    }

    /// Starts a slow service: after each event it waits briefly and checks whether the client has disconnected.
    pub(crate) fn start_slow(script: Vec<Act>) -> Self {
        Self::serve(script, dawdle)
    }

    /// Starts the service with TLS.
    pub(crate) fn start_tls(script: Vec<Act>) -> Self {
        Self::start_tls_with(script, SELF_SIGNED)
    }

    /// Starts the service with the certificate of this file.
    pub(crate) fn start_tls_with(script: Vec<Act>, file: &str) -> Self {
        let config = Arc::new(certified(file));
        Self::serve(script, move |tcp, act, asked| {
            let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            converse(&mut rustls::Stream::new(&mut tls, tcp), act, asked)
        })
    }

    fn serve(
        script: Vec<Act>,
        talk: impl Fn(&mut TcpStream, &Act, &Asked) -> std::io::Result<()> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let asked = Asked::default();
        let kept = asked.clone();
        std::thread::spawn(move || {
            for number in 0.. {
                let Ok((mut tcp, _)) = listener.accept() else { return };
                let act = script.get(number).or(script.last()).unwrap();
                kept.with(|asked| asked.push(String::new()));
                // Some tests are about a client that disconnects, or that refuses the certificate.
                let _ = talk(&mut tcp, act, &kept);
                // Closing with an unread byte resets the connection.
                drop(tcp);
            }
        });
        Self { place, asked }
    }

    /// Returns the address for `--base-url`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.place)
    }

    /// Returns the requests so far, one text per connection.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.with(|asked| asked.clone())
    }
}

fn certified(file: &str) -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(file).unwrap();
    let key = PrivateKeyDer::from_pem_file(file).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    builder.with_single_cert(vec![certificate], key).unwrap()
}

/// Handles one request as the script says.
fn converse<S: Read + Write>(stream: &mut S, act: &Act, asked: &Asked) -> std::io::Result<()> {
    let request = match read_request(stream, usize::from(act.then == Then::Reset)) {
        // A TLS handshake gets a plain answer.
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
            return until_the_client_leaves(stream);
        }
        read => read?,
    };
    asked.with(|asked| *asked.last_mut().unwrap() = request);
    let Some(opening) = act.opening() else {
        return if act.then == Then::Silence { until_the_client_leaves(stream) } else { Ok(()) };
    };
    stream.write_all(opening.as_bytes())?;
    stream.write_all(&act.bytes())?;
    stream.flush()?;
    match act.then {
        Then::End | Then::Close | Then::Reset => Ok(()),
        Then::Silence => until_the_client_leaves(stream),
        Then::Repeat => loop {
            stream.write_all(&act.bytes())?;
        },
    }
}

/// Handles one request, and answers it event by event.
fn dawdle(tcp: &mut TcpStream, act: &Act, asked: &Asked) -> std::io::Result<()> {
    let request = read_request(tcp, 0)?;
    asked.with(|asked| *asked.last_mut().unwrap() = request);
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(MOMENT))?;
    tcp.write_all(act.opening().unwrap_or_default().as_bytes())?;
    for event in act.body.split_inclusive("\n\n") {
        tcp.write_all(event.as_bytes())?;
        // No data is expected; the end of the stream means that the client has disconnected.
        if let Ok(0) = tcp.peek(&mut [0]) {
            return Ok(());
        }
    }
    Ok(())
}

fn until_the_client_leaves(stream: &mut impl Read) -> std::io::Result<()> {
    while stream.read(&mut [0; 64])? > 0 {}
    Ok(())
}

/// Reads a request except for its last bytes.
fn read_request(stream: &mut impl Read, spare: usize) -> std::io::Result<String> {
    let (mut asked, mut byte) = (String::new(), [0]);
    while !asked.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        asked.push(char::from(byte[0]));
        // The first byte of a TLS handshake.
        if asked.as_bytes() == [0x16] {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    let head = asked.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let mut body = vec![0; length.saturating_sub(spare)];
    stream.read_exact(&mut body)?;
    asked.push_str(&String::from_utf8_lossy(&body));
    Ok(asked)
}
