//! A server under a memory limit, with one hostile client and one normal client: 200 hostile requests, then 200 readers
//! that stop in the middle of long streams. The process must survive, serve the normal client, and return the memory.
//! Prints its findings; exits with 1 if a bound is broken.
//!
//! The limit is on data (`ulimit -d`): the address space would also count reserved memory and mapped files.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    reason = "in a benchmark, a panic is the report, and its figures are printed; tests use the rest of `process`"
)]

#[path = "../tests/pressure/process.rs"]
mod process;

use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use process::{KEY, LimitedServer, head, hostile, project, service};

/// The limit of the process for data.
const LIMIT: &str = "-d 1048576";
/// The number of requests of each kind.
const MANY: usize = 200;
/// The number of concurrent requests.
const AT_ONCE: usize = 8;
/// The bounds: the memory that may remain in use, and the latency of the normal client.
const STAYS: u64 = 50 << 20;
const P99: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    // `cargo test --benches` and `cargo bench -- --test` only check that it runs.
    let many = if std::env::args().any(|arg| arg == "--test") { 4 } else { MANY };
    let base = service(5 << 20, 100);
    let args = ["--rate", "0", "--streams", "0", "--per-address", "0", "--grace", "5", "--base-url", &base];
    let mut server = LimitedServer::start(project(), LIMIT, &args);
    warm(&server);
    let start = server.memory("VmRSS");
    println!("start: {} MB", start >> 20);
    let mut sound = true;
    sound &= under("200 hostile requests", &mut server, start, || attack(many));
    sound &= under("200 readers that stop", &mut server, start, || stop_reading(many));
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Brings a server to the state after some minutes of ordinary work.
fn warm(server: &LimitedServer) {
    for _ in 0..20 {
        server.ask("POST", "/api/run/summarizer", br#"{"text": "winter"}"#);
        server.ask("POST", "/api/run/image-analyzer", br#"{"images": 1}"#);
    }
}

type Attack = Box<dyn Fn(&LimitedServer)>;

/// Attacks the server while the normal client checks that it is ready. Returns whether all bounds held.
fn under(what: &str, server: &mut LimitedServer, start: u64, attack: impl FnOnce() -> Attack) -> bool {
    let attack = attack();
    let started = Instant::now();
    let done = AtomicBool::new(false);
    let mut waits = std::thread::scope(|scope| {
        let (server, done) = (&*server, &done);
        let other = scope.spawn(move || watch(server, done));
        attack(server);
        done.store(true, Ordering::SeqCst);
        other.join().unwrap()
    });
    waits.sort();
    let p99 = waits[waits.len() * 99 / 100];
    let most = server.memory("VmHWM");
    let stays = server.settled(start + STAYS, Duration::from_mins(1)).saturating_sub(start);
    let lives = server.lives();
    println!(
        "{what}: {:.1} s; the process {}; {} MB at most; {} MB more than at the start (at most {}); the other client: {} answers, p50 {:.1} ms, p99 {:.1} ms (under {})",
        started.elapsed().as_secs_f64(),
        if lives { "lives" } else { "is gone" },
        most >> 20,
        stays >> 20,
        STAYS >> 20,
        waits.len(),
        waits[waits.len() / 2].as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        P99.as_millis(),
    );
    lives && stays <= STAYS && p99 < P99
}

/// Sends a request every ten milliseconds on a separate connection and returns the latencies.
fn watch(server: &LimitedServer, done: &AtomicBool) -> Vec<Duration> {
    let mut stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let request = head("GET", "/ready", "", 0);
    let mut waits = Vec::new();
    let mut buffer = [0; 4 << 10];
    while !done.load(Ordering::SeqCst) {
        let started = Instant::now();
        stream.write_all(request.as_bytes()).unwrap();
        let count = stream.read(&mut buffer).unwrap();
        assert!(
            buffer[..count].starts_with(b"HTTP/1.1 200 "),
            "{}",
            String::from_utf8_lossy(&buffer[..count])
        );
        waits.push(started.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    waits
}

/// Sends hostile requests of all kinds, some concurrently.
fn attack(many: usize) -> Attack {
    Box::new(move |server| {
        std::thread::scope(|scope| {
            for thread in 0..AT_ONCE {
                scope.spawn(move || (thread..many).step_by(AT_ONCE).for_each(|number| hit(server, number)));
            }
        });
    })
}

fn hit(server: &LimitedServer, number: usize) {
    let size = 39 << 20;
    let body = match number % 8 {
        0 => hostile("{\"\":0},", size),
        1 => hostile("0,", size),
        2 => hostile("\"\",", size),
        3 => "[".repeat(size).into_bytes(),
        4 => hostile("{\"a\":{\"b\":[0]}},", size),
        5 => hostile("\"text of some length, as if it were one\",", size),
        6 => hostile("123,", 1 << 20),
        _ => return half_a_message(server, size),
    };
    let (status, _) = server.ask("POST", "/api/run/image-analyzer", &body);
    assert!(matches!(status, 400 | 413 | 429), "{status}");
}

/// Sends a WebSocket message that never ends.
fn half_a_message(server: &LimitedServer, size: usize) {
    let mut stream = server.connect();
    let hello = format!(
        "GET /ws HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(hello.as_bytes()).unwrap();
    let mut answer = [0; 1 << 10];
    let count = stream.read(&mut answer).unwrap();
    assert!(answer[..count].starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer[..count]));
    let mut frame = vec![0x01, 0xff];
    frame.extend((size as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(vec![b' '; size / 2]);
    // The server may close the connection before everything is sent.
    let _ = stream.write_all(&frame);
}

/// Opens readers that read the start of a stream and then stop, until the server disconnects them.
fn stop_reading(many: usize) -> Attack {
    Box::new(move |server| {
        let body = br#"{"text": "winter"}"#;
        let readers: Vec<_> = (0..many)
            .map(|_| {
                let mut stream = server.connect();
                let request =
                    head("POST", "/api/run/summarizer", "accept: text/event-stream\r\n", body.len());
                stream.write_all(request.as_bytes()).unwrap();
                stream.write_all(body).unwrap();
                stream
            })
            .collect();
        for mut reader in &readers {
            reader.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
            let mut taken = vec![0; 20_000];
            let _ = reader.read(&mut taken);
        }
        // Waits until the streams have ended or were aborted; only then has the load peaked.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_mins(2) {
            let (_, metrics) = server.ask("GET", "/metrics", b"");
            let open = metrics.lines().find_map(|line| line.strip_prefix("cogn_streams_open "));
            if open.is_some_and(|open| open.trim() == "0") {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    })
}
