//! Interruptions with a real provider on a real socket: clients that disconnect at every chunk, a service that breaks
//! off at every byte, and clients that resume after every chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cognitive_contract::ports::PortFuture;
use cognitive_net::{Kind, Pause, ProviderConfig, Proxies, Secret, provider};
use cognitive_runtime::Host;
use cognitive_testkit::PATIENCE;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::breaks::read_events;
use crate::support::{ANSWER, Script, Server, ask, client, events, module_cache, roomy};

/// The behaviour of a service for a request, by its text.
struct Act {
    bytes: Vec<u8>,
    /// If true, it then waits for the client to disconnect instead of breaking off.
    waits: bool,
}

/// A model service in the wire format of OpenAI.
struct Service {
    base: String,
    calls: Arc<AtomicUsize>,
    /// The number of open connections.
    open: watch::Sender<usize>,
}

impl Service {
    async fn start(act: impl Fn(&str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let (calls, open, act) = (Arc::<AtomicUsize>::default(), watch::Sender::new(0), Arc::new(act));
        let service = Self { base, calls: Arc::clone(&calls), open: open.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (calls, open, act) = (Arc::clone(&calls), open.clone(), Arc::clone(&act));
                tokio::spawn(async move {
                    open.send_modify(|count| *count += 1);
                    converse(stream, &calls, act.as_ref()).await;
                    open.send_modify(|count| *count -= 1);
                });
            }
        });
        service
    }

    /// Starts a server whose model is this service.
    async fn server(&self, config: cognitive_http::ServerConfig) -> Server {
        let (folder, modules) = module_cache("both");
        let to = ProviderConfig::new(Kind::parse("openai").unwrap())
            .with_key(Secret::new("sk-test"))
            .with_base_url(&self.base)
            .with_model("stub")
            .with_proxies(Proxies::None)
            .with_pause(Arc::new(AtOnce));
        Server::with_host(folder, Host::new(Arc::new(modules), provider(to).unwrap()), config).await
    }
}

async fn converse(mut stream: TcpStream, calls: &AtomicUsize, act: &(dyn Fn(&str) -> Act + Send + Sync)) {
    let Some(request) = read_request(&mut stream).await else { return };
    calls.fetch_add(1, Ordering::SeqCst);
    let Act { bytes, waits } = act(&request);
    if stream.write_all(&bytes).await.is_ok() && waits {
        let _ = stream.read(&mut [0; 16]).await;
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut request, mut piece) = (String::new(), vec![0; 16 << 10]);
    loop {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        request.push_str(&String::from_utf8_lossy(&piece[..count]));
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() >= length.trim().parse().unwrap() {
            return Some(request);
        }
    }
}

/// Retries without a delay.
struct AtOnce;

impl Pause for AtOnce {
    fn sleep(&self, _: Duration) -> PortFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn jitter(&self) -> f64 {
        0.0
    }
}

fn event(text: &str, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "model": "stub", "choices": [choice] }))
}

/// Returns a whole response, and the offset after which the service has marked it as complete.
fn answer(pieces: &[&str]) -> (String, usize) {
    let pieces: String = pieces.iter().map(|piece| event(piece, None)).collect();
    let (finish, done) = (event("", Some("stop")), "data: [DONE]\n\n");
    let length = pieces.len() + finish.len() + done.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
    let complete = head.len() + pieces.len() + finish.len();
    (head + &pieces + &finish + done, complete)
}

/// Starts a stream of a client with a limit of one. The permit of the previous stream may be released a moment later.
async fn begin(server: &Server) -> reqwest::Response {
    let begin = async {
        loop {
            let response = ask(server, "text/event-stream").send().await.unwrap();
            if response.status() == 200 {
                return response;
            }
            assert_eq!(response.status(), 429);
        }
    };
    tokio::time::timeout(PATIENCE, begin).await.unwrap()
}

// S-18, STREAM-023: wherever a client goes, the service sees it, and the client's place is free again.
#[tokio::test]
async fn a_client_that_goes_at_any_chunk_ends_the_call_at_the_service() {
    let (whole, complete) = answer(&ANSWER);
    let service = Service::start(move |_| Act { bytes: whole.clone().into_bytes(), waits: false }).await;
    let server = service.server(roomy()).await;
    let body = ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap();
    let names: Vec<String> = events(&body).into_iter().map(|event| event.name).collect();
    assert_eq!(names[names.len() - 2..], ["progress", "final"]);

    let (whole, _) = answer(&ANSWER);
    let unfinished = whole[..complete - event("", Some("stop")).len()].to_owned();
    let service = Service::start(move |_| Act { bytes: unfinished.clone().into_bytes(), waits: true }).await;
    let mut config = roomy();
    config.grace = Duration::ZERO;
    config.streams_per_client = 1;
    let server = service.server(config).await;
    for seen in 1..=names.len() - 2 {
        let mut response = begin(&server).await;
        read_events(&mut response, seen).await;
        assert_eq!(*service.open.borrow(), 1);
        drop(response);
        let closed = async { service.open.subscribe().wait_for(|open| *open == 0).await.map(|_| ()) };
        tokio::time::timeout(PATIENCE, closed).await.unwrap().unwrap();
    }
    assert_eq!(service.calls.load(Ordering::SeqCst), names.len() - 2, "one call for each stream");
    begin(&server).await;
}

// STREAM-004, STREAM-014: for every byte where the service breaks off, the stream has exactly one end, and never an
// invented one.
#[tokio::test]
async fn stream_004_a_service_that_breaks_off_at_any_byte_leaves_one_terminal_chunk() {
    let text = ANSWER.concat();
    let (first, second) = text.split_at(text.len() / 2);
    let (whole, complete) = answer(&[first, second]);
    let bytes = whole.clone();
    let service = Service::start(move |request| {
        let place = request.rsplit("cut at ").next().unwrap();
        let digits: String = place.chars().take_while(char::is_ascii_digit).collect();
        Act { bytes: bytes.as_bytes()[..digits.parse::<usize>().unwrap()].to_vec(), waits: false }
    })
    .await;
    let server = service.server(roomy()).await;
    let client = client();
    let run = async |at: usize| {
        let request = client.post(server.url("/api/run/words")).header("content-type", "application/json");
        let request = request.header("accept", "application/x-ndjson");
        let body = json!({ "text": format!("cut at {at}") }).to_string();
        let response = request.body(body).send().await.unwrap();
        (at, response.text().await.unwrap())
    };
    let mut runs = futures_util::stream::iter((0..=whole.len()).map(run)).buffer_unordered(16);
    while let Some((at, body)) = runs.next().await {
        let chunks: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_last = |chunk: &&Value| chunk.get("final").is_some() || chunk.get("error").is_some();
        assert_eq!(chunks.iter().filter(is_last).count(), 1, "{at}: {body}");
        let last = chunks.last().filter(is_last).unwrap_or_else(|| panic!("{at}: {body}"));
        if last.get("final").is_some() {
            assert!(at >= complete, "{at} of {complete}: {last}");
            continue;
        }
        assert!(at < whole.len(), "{last}");
        let code = last["error"]["code"].as_str().unwrap();
        assert!(["E2010", "E4001"].contains(&code), "{at}: {last}");
    }
}

// EXT-REC, S-16: a client that disconnects after any chunk while the model writes gets the rest, with either recovery
// method.
#[tokio::test]
async fn ext_rec_a_stream_is_taken_up_after_every_chunk_while_it_goes_on() {
    let whole = {
        let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
        events(&ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap())
    };
    let names = |events: &[crate::support::Event]| -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event.name, event.data["chunk"])).collect()
    };
    for (seen, by_header) in (1..=whole.len() - 3).flat_map(|seen| [(seen, true), (seen, false)]) {
        let script = Script::with_leave(&ANSWER, ANSWER.len() - 1);
        let server = Server::start(&script, "both", roomy()).await;
        let mut response = ask(&server, "text/event-stream").send().await.unwrap();
        let mut before = events(&read_events(&mut response, seen).await);
        before.truncate(seen);
        drop(response);
        let last = before.last().unwrap().clone();
        let again = if by_header {
            ask(&server, "text/event-stream").header("last-event-id", &last.id)
        } else {
            let Some(seq) = last.data["chunk"]["seq"].as_u64() else { continue };
            let recovery = json!({
                "session_id": before[0].data["session_id"],
                "last_seq": seq,
                "last_checkpoint": last.data["chunk"]["checkpoint"],
            });
            let body = json!({ "input": { "text": "winter snow" }, "_recovery": recovery });
            ask(&server, "text/event-stream").body(body.to_string())
        };
        let again = again.send().await.unwrap();
        script.allow(1);
        let rest = events(&again.text().await.unwrap());
        assert_eq!(rest[0].data["resumed"], true);
        before.extend_from_slice(&rest[1..]);
        assert_eq!(names(&before), names(&whole), "after {seen}, by header: {by_header}");
        assert_eq!(script.calls(), 1, "the model was asked once");
    }
}
