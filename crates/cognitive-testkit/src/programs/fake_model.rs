//! A model service on loopback that answers as a test decides, in the wire format of chat completions or of the
//! Responses API, whole or streamed, with TLS or without. It records every request before it answers. Judges nothing.

#![expect(clippy::expect_used, reason = "in a test, a panic is the report")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use serde_json::{Value, json};

use crate::PATIENCE;

use super::act::{Act, Then, until_the_client_leaves};
use super::wire::{completion, events, response, response_events};

/// A request as the service received it.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeRequest {
    /// The path, such as `/v1/chat/completions`.
    pub path: String,
    /// The body; null if it is not JSON.
    pub body: Value,
    /// All of it: the first line, the headers and the body.
    pub text: String,
}

/// The reaction of the service to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FakeReply {
    /// The text of the model.
    Text(String),
    /// Nothing, until the client disconnects.
    Silence,
    /// An error with this status.
    Status(u16),
    /// A raw response.
    Raw(Act),
}

type Answer = dyn Fn(usize, &FakeRequest) -> FakeReply + Send + Sync;

enum FakeScript {
    /// One response per connection; the last one repeats.
    Acts(Vec<Act>),
    /// The response to the request of this number, from 0.
    Function(Box<Answer>),
}

#[derive(Default)]
struct RequestLog {
    lists: Mutex<RequestLists>,
    changed: Condvar,
    connections: AtomicUsize,
}

#[derive(Default)]
struct RequestLists {
    requests: Vec<FakeRequest>,
    /// The requests whose client disconnected before the end of the response.
    left: Vec<FakeRequest>,
}

/// The service. Its threads end with the process of the test.
#[derive(Clone)]
pub struct FakeModel {
    /// `127.0.0.1:PORT`.
    pub address: String,
    log: Arc<RequestLog>,
}

impl FakeModel {
    /// A service that answers each request with the result of this function, which gets its number, from 0.
    #[must_use]
    pub fn start(answer: impl Fn(usize, &FakeRequest) -> FakeReply + Send + Sync + 'static) -> Self {
        Self::serve(FakeScript::Function(Box::new(answer)), None)
    }

    /// A service that always answers with this value, as text.
    #[must_use]
    pub fn with_answer(answer: &Value) -> Self {
        let text = answer.to_string();
        Self::start(move |_, _| FakeReply::Text(text.clone()))
    }

    /// A service that follows a script, one response per connection, and repeats the last one.
    #[must_use]
    pub fn script(acts: Vec<Act>) -> Self {
        Self::serve(FakeScript::Acts(acts), None)
    }

    /// The same with TLS, and with the certificate and the key in this file.
    #[must_use]
    pub fn script_tls(acts: Vec<Act>, certificate: &str) -> Self {
        Self::serve(FakeScript::Acts(acts), Some(Arc::new(server_config(certificate))))
    }

    /// A service that knows the reply to each of these prompts.
    #[must_use]
    pub fn with_known_replies(replies: Vec<(String, String)>) -> Self {
        Self::start(move |_, request| {
            let asked = |prompt: &str| {
                let quoted = Value::from(prompt).to_string();
                request.text.contains(quoted.trim_matches('"'))
            };
            let reply = replies.iter().find(|(prompt, _)| asked(prompt));
            FakeReply::Text(reply.map_or("no such module", |(_, reply)| reply).to_owned())
        })
    }

    fn serve(script: FakeScript, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port to listen at");
        let address = listener.local_addr().expect("the address of a listener").to_string();
        let (log, script) = (Arc::<RequestLog>::default(), Arc::new(script));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let number = kept.connections.fetch_add(1, Ordering::SeqCst);
                let (log, script, tls) = (Arc::clone(&kept), Arc::clone(&script), tls.clone());
                std::thread::spawn(move || {
                    // Some tests are about a client that disconnects, or that refuses the certificate.
                    drop(match tls {
                        None => converse(&mut &tcp, &tcp, number, &script, &log),
                        Some(tls) => {
                            ServerConnection::new(tls).map_err(std::io::Error::other).and_then(|mut tls| {
                                converse(
                                    &mut rustls::Stream::new(&mut tls, &mut &tcp),
                                    &tcp,
                                    number,
                                    &script,
                                    &log,
                                )
                            })
                        }
                    });
                });
            }
        });
        Self { address, log }
    }

    /// The base address for a client of chat completions.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    fn lists(&self) -> MutexGuard<'_, RequestLists> {
        self.log.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<FakeRequest> {
        self.lists().requests.clone()
    }

    /// The requests so far as they came over the connection.
    #[must_use]
    pub fn raw_requests(&self) -> Vec<String> {
        self.lists().requests.iter().map(|request| request.text.clone()).collect()
    }

    /// The number of connections so far, with those that brought no request.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.log.connections.load(Ordering::SeqCst)
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.lists().requests.clear();
    }

    /// Waits until so many requests have arrived.
    pub fn wait_for(&self, count: usize) {
        drop(self.wait(|lists| lists.requests.len() >= count));
    }

    /// Waits until the requests are as they should be, and returns them.
    #[must_use]
    pub fn wait_until(&self, holds: impl Fn(&[FakeRequest]) -> bool) -> Vec<FakeRequest> {
        self.wait(|lists| holds(&lists.requests)).requests.clone()
    }

    /// Waits until the clients of so many requests have disconnected, and returns those requests.
    #[must_use]
    pub fn wait_for_left(&self, count: usize) -> Vec<FakeRequest> {
        self.wait(|lists| lists.left.len() >= count).left.clone()
    }

    fn wait(&self, holds: impl Fn(&RequestLists) -> bool) -> MutexGuard<'_, RequestLists> {
        let waited = self.log.changed.wait_timeout_while(self.lists(), PATIENCE, |lists| !holds(lists));
        let (lists, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "waited for {PATIENCE:?} in vain");
        lists
    }
}

impl RequestLog {
    fn add(&self, request: &FakeRequest) -> usize {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.requests.push(request.clone());
        let number = lists.requests.len() - 1;
        self.changed.notify_all();
        number
    }

    fn add_left(&self, request: FakeRequest) {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).left.push(request);
        self.changed.notify_all();
    }
}

fn server_config(file: &str) -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(file).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions of TLS");
    builder
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate with its key")
}

/// Handles the requests of one connection.
fn converse<S: Read + Write>(
    stream: &mut S,
    tcp: &TcpStream,
    connection: usize,
    script: &FakeScript,
    log: &RequestLog,
) -> std::io::Result<()> {
    loop {
        let act = match script {
            FakeScript::Acts(acts) => acts.get(connection).or(acts.last()),
            FakeScript::Function(_) => None,
        };
        // Closing with an unread byte resets the connection.
        let spare = usize::from(act.is_some_and(|act| act.then == Then::Reset));
        let request = match read(stream, spare) {
            // A TLS handshake gets a plain answer.
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
                until_the_client_leaves(stream);
                return Ok(());
            }
            read => read?,
        };
        let number = log.add(&request);
        let reply = match script {
            FakeScript::Acts(_) => act.cloned().map(FakeReply::Raw),
            FakeScript::Function(answer) => Some(answer(number, &request)),
        };
        let is_stream = request.body.get("stream") == Some(&Value::Bool(true));
        let (status, media_type, body) = match reply {
            None => return Ok(()),
            Some(FakeReply::Silence) => {
                until_the_client_leaves(stream);
                log.add_left(request);
                return Ok(());
            }
            Some(FakeReply::Raw(act)) => {
                if act.send(stream, tcp).unwrap_or(true) {
                    log.add_left(request);
                }
                return Ok(());
            }
            Some(FakeReply::Status(status)) => {
                let error = json!({ "error": { "message": "refused by the test", "type": "test" } });
                (status, "application/json", error.to_string())
            }
            Some(FakeReply::Text(text)) => {
                let is_response =
                    request.path.split('?').next().is_some_and(|path| path.ends_with("/responses"));
                match (is_response, is_stream) {
                    (false, false) => (200, "application/json", completion(&text).to_string()),
                    (false, true) => (200, "text/event-stream", events(&text)),
                    (true, false) => (200, "application/json", response(&text).to_string()),
                    (true, true) => (200, "text/event-stream", response_events(&text)),
                }
            }
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        stream.flush()?;
    }
}

/// Reads a request except for its last bytes.
fn read(stream: &mut impl Read, spare: usize) -> std::io::Result<FakeRequest> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend(byte);
        // The first byte of a TLS handshake.
        if head == [0x16] {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0);
    let mut body = vec![0; length.saturating_sub(spare)];
    stream.read_exact(&mut body)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let text = head + &String::from_utf8_lossy(&body);
    Ok(FakeRequest { path, body: serde_json::from_slice(&body).unwrap_or_default(), text })
}
