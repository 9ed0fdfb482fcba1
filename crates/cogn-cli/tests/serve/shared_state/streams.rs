//! Streams, limits and the audit over three servers.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_testkit::{TestPostgres, TestRedis};
use serde_json::{Value, json};

use super::service::{Home, Server, Service, answer, ask};

/// The streams of the server that is killed; half of them have ended.
const STREAMS: usize = 200;
/// The number of concurrent clients.
const CLIENTS: usize = 8;

/// The chunks of a stream as they arrive.
pub(crate) struct Chunks(BufReader<TcpStream>);

impl Chunks {
    /// Starts a stream, or resumes one.
    pub(crate) fn open(address: &str, text: &str, options: &Value, session: Option<&str>) -> Self {
        let mut body = json!({ "text": format!("<{text}>"), "_options": options });
        if let Some(session) = session {
            body["_recovery"] = json!({ "session_id": session, "last_seq": 0 });
        }
        Self(BufReader::new(ask(address, "talk", "accept: application/x-ndjson\r\n", &body)))
    }

    /// Returns the next chunk; `None` after the last.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // The head, the sizes of the body chunks, and heartbeats are no stream chunks.
            match serde_json::from_str::<Value>(line.trim()) {
                Ok(chunk @ Value::Object(_))
                    if chunk.as_object().is_some_and(|members| !members.is_empty()) =>
                {
                    return Some(chunk);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Reads until a chunk has a part of the text.
    pub(crate) fn until_text(&mut self) -> Vec<Value> {
        let mut chunks = Vec::new();
        while let Some(chunk) = self.next() {
            let is_text =
                chunk.pointer("/chunk/delta").is_some_and(|delta| delta.to_string().contains("two"));
            chunks.push(chunk);
            if is_text {
                break;
            }
        }
        chunks
    }
}

pub(crate) fn session(chunks: &[Value]) -> String {
    chunks[0]["session_id"].as_str().unwrap_or_else(|| panic!("{chunks:?}")).to_owned()
}

/// Returns the text of all deltas of a stream.
pub(crate) fn text(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk.pointer("/chunk/delta")?.as_str()).collect()
}

/// Calls `work` for each number, several concurrently.
fn each(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    work(number);
                }
            });
        }
    });
}

pub(crate) fn shared(redis: &TestRedis, rate: &str) -> Vec<String> {
    ["--shared", &redis.address(), "--rate", rate].map(str::to_owned).to_vec()
}

pub(crate) fn three(home: &Home, service: &Service, args: &[String]) -> [Server; 3] {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    [0; 3].map(|_| Server::start(home, service, &args))
}

#[test]
fn a_server_that_is_killed_under_two_hundred_streams_costs_nobody_an_answer() {
    let (Some(postgres), Some(redis)) = (TestPostgres::durable(), TestRedis::start()) else { return };
    let home = Home::new(&format!("audit: {{path: '{}', keep: {{records: 300}}}}\n", postgres.database()));
    let service = Service::start();
    let [first, second, third] = three(&home, &service, &shared(&redis, "0"));
    let finished: Vec<std::sync::OnceLock<(String, Vec<Value>)>> =
        vec![std::sync::OnceLock::new(); STREAMS / 2];
    // The complete streams: a client of another server follows, and gets the same.
    each(STREAMS / 2, |number| {
        let name = format!("full-{number}");
        let chunks = Chunks::open(&first.address, &name, &json!({}), None).rest();
        let id = session(&chunks);
        let followed = Chunks::open(&third.address, &name, &json!({}), Some(&id)).rest();
        assert_eq!(followed.last(), chunks.last(), "{name}");
        finished[number].set((id, chunks)).unwrap();
    });
    // The incomplete streams: each has two clients that wait for more, one of them at another server.
    let waiting: Vec<std::sync::Mutex<Option<(String, Chunks, Chunks)>>> =
        (0..STREAMS / 2).map(|_| std::sync::Mutex::new(None)).collect();
    each(STREAMS / 2, |number| {
        let name = format!("half-{number}");
        let mut own = Chunks::open(&first.address, &name, &json!({}), None);
        let id = session(&own.until_text());
        let mut other = Chunks::open(&third.address, &name, &json!({}), Some(&id));
        assert!(text(&other.until_text()).contains("one, two"), "{name}");
        *waiting[number].lock().unwrap() = Some((id, own, other));
    });
    assert_eq!(service.total(), STREAMS, "nobody asked twice so far");
    drop(first);
    // A server that never saw a finished stream replays it.
    each(STREAMS / 2, |number| {
        let (id, chunks) = finished[number].get().unwrap();
        let again = Chunks::open(&second.address, &format!("full-{number}"), &json!({}), Some(id)).rest();
        assert_eq!((again[0]["resumed"].as_bool(), again.last()), (Some(true), chunks.last()));
        assert_eq!(text(&again), text(chunks));
    });
    // An unfinished stream ends with its parts, for waiting and for new clients.
    each(STREAMS / 2, |number| {
        let (id, _own, mut other) = waiting[number].lock().unwrap().take().unwrap();
        let name = format!("half-{number}");
        let followed = other.rest();
        let asked = Chunks::open(&second.address, &name, &json!({}), Some(&id)).rest();
        for chunks in [&followed, &asked] {
            let last = chunks.last().unwrap_or_else(|| panic!("{name}: no last word"));
            assert_eq!(last["error"]["code"], "E2010", "{last}");
            let part = last["partial_data"]["rationale"].as_str().unwrap();
            assert!(part.starts_with(&format!("Said of {name}: one, two")), "{part}");
        }
    });
    assert_eq!(service.total(), STREAMS, "no model was asked a second time");
    // A client without the session id gets a new answer.
    let (name, id) = ("half-0", {
        let again = Chunks::open(&second.address, "half-0", &json!({}), None).rest();
        session(&again)
    });
    assert!(!id.is_empty() && service.times(name) == 2);
    // The audit has every call, and its chain is intact, with three writers and with limits that evicted the oldest
    // records.
    each(60, |number| {
        let server = [&second, &third][number % 2];
        assert_eq!(answer(&server.address, "talk", &json!({ "text": format!("<more-{number}>") })).0, 200);
    });
    second.stop();
    third.stop();
    let verified = home.verified();
    assert_eq!(verified["breaches"], json!([]), "{verified}");
    let kept = verified["records"].as_u64().unwrap() + verified["dropped"].as_u64().unwrap();
    // Each call was recorded before it was made, and each end if its server survived.
    assert!(kept >= 2 * (STREAMS as u64 / 2) + STREAMS as u64 / 2 + 2 * 61, "{verified}");
    assert!(verified["dropped"].as_u64().unwrap() > 0, "{verified}");
}

#[test]
fn a_stream_that_was_cut_off_is_asked_again_where_its_client_says_so() {
    let (Some(postgres), Some(redis)) = (TestPostgres::start(), TestRedis::start()) else { return };
    let home = Home::new(&format!("audit: {{path: '{}'}}\n", postgres.database()));
    let service = Service::start();
    let [first, second, third] = three(&home, &service, &shared(&redis, "0"));
    let mut own = Chunks::open(&first.address, "half-a", &json!({}), None);
    let id = session(&own.until_text());
    // Once another server has the part, all servers find it there.
    Chunks::open(&third.address, "half-a", &json!({}), Some(&id)).until_text();
    drop(first);
    // The third server follows it, and first reports that its server is gone; then no server treats it as alive.
    let gone = Chunks::open(&third.address, "half-a", &json!({}), Some(&id)).rest();
    assert_eq!(gone.last().unwrap()["error"]["code"], "E2010");
    assert_eq!(service.times("half-a"), 1);
    let again = Chunks::open(&second.address, "half-a", &json!({ "ask_again": true }), Some(&id)).rest();
    assert_eq!(again.last().unwrap()["final"], true, "{again:?}");
    assert_eq!(service.times("half-a"), 2);
}

#[test]
fn a_limit_holds_over_all_three_servers() {
    let Some(redis) = TestRedis::start() else { return };
    let home = Home::new("");
    let service = Service::start();
    let servers = three(&home, &service, &shared(&redis, "60"));
    let (let_in, started) = (AtomicUsize::new(0), std::time::Instant::now());
    each(240, |number| {
        let (status, said) = answer(&servers[number % 3].address, "absent", &json!({}));
        match status {
            404 => drop(let_in.fetch_add(1, Ordering::Relaxed)),
            other => assert_eq!(other, 429, "{said}"),
        }
    });
    // One more for each elapsed second.
    let (let_in, allowed) = (let_in.into_inner(), 60 + usize::try_from(started.elapsed().as_secs()).unwrap());
    assert!(let_in >= 60 && let_in * 100 <= allowed * 105, "{let_in} of {allowed} within five percent");
}
