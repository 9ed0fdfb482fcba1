//! A server whose answers are a function of the request, one request per connection, and helpers for tests. Contains
//! no assertions about behaviour.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cognitive_contract::failure::Failure;
use cognitive_contract::ports::PortFuture;
use cognitive_net::fetch::Lookup;
use cognitive_net::registry::{Credentials, OciClient};
use cognitive_net::{Proxies, Secret};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const USER: &str = "ann";
pub(crate) const PASSWORD: &str = "pa55word-0f-ann-0123";
pub(crate) const REPOSITORY: &str = "team/modules";

pub(crate) use crate::support::{NoPause, run, run_without_waiting};

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Method and path.
    pub(crate) line: String,
    /// The headers: names in lower case, values unchanged.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn is(&self, beginning: &str) -> bool {
        self.line.starts_with(beginning)
    }

    pub(crate) fn authorization(&self) -> Option<&str> {
        self.headers.get("authorization").map(String::as_str)
    }
}

/// The end of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Close,
    /// The body is sent repeatedly.
    Endless,
    /// No more bytes are sent.
    Stall,
    /// The body is sent in ten pieces, each after this many seconds.
    Slowly(u64),
    /// The body is sent byte by byte, each after this many seconds.
    Dripping(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    head: String,
    body: Vec<u8>,
    announced: Option<usize>,
    ending: Ending,
}

impl Answer {
    pub(crate) fn new(status: u16) -> Self {
        let head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\n");
        Self { head, body: Vec::new(), announced: Some(0), ending: Ending::Close }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head = format!("{}{name}: {value}\r\n", self.head);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.announced = Some(self.body.len());
        self
    }

    /// Announces this length instead of the real one.
    pub(crate) fn announcing(mut self, length: usize) -> Self {
        self.announced = Some(length);
        self
    }

    /// Announces no length; the connection is closed at the end.
    pub(crate) fn unannounced(mut self) -> Self {
        self.announced = None;
        self
    }

    pub(crate) fn then(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Creates a challenge for a token from this URL.
    pub(crate) fn token_wanted(realm: &str) -> Self {
        let challenge =
            format!("Bearer realm=\"{realm}\",service=\"stub\",scope=\"repository:{REPOSITORY}:pull\"");
        Self::new(401).header("www-authenticate", &challenge)
    }

    pub(crate) fn redirect(status: u16, place: &str) -> Self {
        Self::new(status).header("location", place)
    }
}

/// A stub server.
pub(crate) struct Stub {
    /// The host and port, such as `127.0.0.1:41234`.
    pub(crate) host: String,
    seen: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
}

impl Stub {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (shared, count, answer) = (Arc::clone(&seen), Arc::clone(&connections), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (seen, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                tokio::spawn(async move {
                    let _ = serve(stream, &seen, answer.as_ref()).await;
                });
            }
        });
        Self { host, seen, connections }
    }

    /// Starts a server that must not be contacted.
    pub(crate) async fn trap() -> Self {
        Self::start(|_| Answer::new(200).body("inside")).await
    }

    /// Returns the number of connections, including silent ones. Connections are accepted in order, so the test's own
    /// final connection shows that none is pending.
    pub(crate) async fn touched(&self) -> usize {
        let mut own = TcpStream::connect(&self.host).await.unwrap();
        own.write_all(b"GET /own HTTP/1.1\r\n\r\n").await.unwrap();
        own.read_to_end(&mut Vec::new()).await.unwrap();
        self.connections.load(Ordering::SeqCst) - 1
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|asked| asked.line).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Asked>>,
    answer: &(impl Fn(&Asked) -> Answer + Send + Sync),
) -> io::Result<()> {
    let Some(asked) = read(&mut stream).await? else {
        return stream.write_all(b"HTTP/1.1 400 this is no HTTP\r\n\r\n").await;
    };
    seen.lock().unwrap().push(asked.clone());
    let answer = answer(&asked);
    let length = answer.announced.map(|length| format!("content-length: {length}\r\n")).unwrap_or_default();
    stream.write_all(format!("{}{length}\r\n", answer.head).as_bytes()).await?;
    if asked.is("HEAD ") {
        return Ok(());
    }
    if let Ending::Slowly(seconds) = answer.ending {
        for piece in answer.body.chunks(answer.body.len().div_ceil(10)) {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            stream.write_all(piece).await?;
        }
        return Ok(());
    }
    if let Ending::Dripping(seconds) = answer.ending {
        for byte in &answer.body {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            stream.write_all(&[*byte]).await?;
        }
        return Ok(());
    }
    stream.write_all(&answer.body).await?;
    if answer.ending == Ending::Endless {
        loop {
            stream.write_all(&answer.body).await?;
        }
    }
    if answer.ending == Ending::Stall {
        while stream.read(&mut [0; 64]).await? > 0 {}
    }
    Ok(())
}

/// Reads a request; `None` if the client starts TLS.
async fn read(stream: &mut TcpStream) -> io::Result<Option<Asked>> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..count]);
        if bytes.starts_with(&[0x16]) {
            return Ok(None);
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let (line, rest) = head.split_once("\r\n").unwrap_or((&head, ""));
    let headers: HashMap<String, String> = rest
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        let count = stream.read(&mut piece).await?;
        body.extend_from_slice(&piece[..count]);
    }
    Ok(Some(Asked { line: line.trim_end_matches(" HTTP/1.1").to_owned(), headers, body }))
}

/// Resolves every name to one address.
pub(crate) struct Everywhere(pub(crate) &'static str);

impl Lookup for Everywhere {
    fn lookup(&self, _: String) -> PortFuture<'static, io::Result<Vec<IpAddr>>> {
        let address = self.0.parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    }
}

/// Creates a client for a stub, without waits and without a proxy.
pub(crate) fn client(stub: &Stub, credentials: Option<Credentials>) -> OciClient {
    let client = OciClient::new(&stub.host, credentials, false).unwrap();
    client.with_proxies(Proxies::None).with_pause(Arc::new(NoPause::default()))
}

pub(crate) fn ann() -> Credentials {
    Credentials::basic(USER, Secret::new(PASSWORD).unwrap())
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", cognitive_contract::text::hex(&Sha256::digest(bytes)))
}

/// Returns the error as a caller sees it. Asserts that it shows no secret and ends with its subject.
pub(crate) fn error_of<T>(outcome: Result<T, Failure>) -> Value {
    let failure = outcome.err().unwrap_or_else(|| panic!("it worked"));
    let error = serde_json::to_value(failure.into_envelope()).unwrap()["error"].take();
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with('`') && message.contains(": `"), "{message}");
    for secret in [PASSWORD, "YW5uOnBhNTV3b3JkLTBmLWFubi0wMTIz", "t0ken-0f-the-registry"] {
        assert!(!error.to_string().contains(secret), "{error}");
    }
    error
}

/// Returns the code and the reason of an error.
pub(crate) fn reason<T>(outcome: Result<T, Failure>) -> (String, String) {
    let error = error_of(outcome);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&error["code"]), text(&error["details"]["reason"]))
}
