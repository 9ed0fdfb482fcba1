//! The overhead of the server on a model call: throughput, latency and memory, as ratios against a bare axum handler
//! that forwards to the same stub with reqwest. Everything is on loopback, bounded in count, and terminates.
//!
//! `cargo bench -p cognitive-http` runs it; `benches/README.md` explains the output.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints and may panic"
)]

mod client;
mod servers;
mod soak;
mod stub;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client::Load;
use cognitive_testkit::TestPostgres;

/// The allocator of the program `cogn`, for both servers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 7;
const TIME: Duration = Duration::from_secs(4);
const WARMING: Duration = Duration::from_secs(2);
const STREAMS: usize = 2_000;

/// A server in a separate process, so that its memory and processor time can be measured.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(kind: &str, upstream: &str) -> Self {
        Self::start_with(kind, upstream, None)
    }

    /// Starts a server that records its runs in `store`, if there is one.
    fn start_with(kind: &str, upstream: &str, store: Option<&str>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([kind, upstream])
            .args(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// Returns the peak memory in megabytes.
    fn peak(&self) -> f64 {
        self.status("VmHWM:")
    }

    /// Returns the current memory in megabytes.
    fn memory(&self) -> f64 {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    }

    /// Returns the processor time so far, in steps of a hundredth of a second.
    fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name of the program, in brackets, may contain any character.
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks =
            after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match (args.get(1).map(String::as_str), args.get(2)) {
        (Some("bare"), Some(upstream)) => runtime.block_on(servers::bare(upstream)),
        (Some("cogn"), Some(upstream)) => {
            runtime.block_on(servers::cogn(upstream, args.get(3).map(String::as_str)));
        }
        (Some("soak"), Some(seconds)) => {
            let kind = if args.iter().any(|arg| arg == "bare") { "bare" } else { "cogn" };
            runtime.block_on(soak::soak(kind, seconds.parse().unwrap()));
        }
        _ => runtime.block_on(measure()),
    }
}

async fn measure() {
    let upstream = stub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.db").to_string_lossy().into_owned();
    let postgres = TestPostgres::durable();
    let database = postgres.as_ref().map(TestPostgres::database);
    let mut servers = vec![
        ("bare", Server::start("bare", &upstream)),
        ("cogn", Server::start("cogn", &upstream)),
        ("cogn with SQLite", Server::start_with("cogn", &upstream, Some(&file))),
    ];
    if let Some(database) = &database {
        servers.push(("cogn with PostgreSQL", Server::start_with("cogn", &upstream, Some(database))));
    }
    let bare_request = client::request("/run", "application/json");
    let cogn_request = client::request("/api/run/words", "application/json");
    // The servers are measured in alternation and for the same time, so that none has an advantage. A fixed count
    // would end sooner for the faster one, which would profit more from a short boost of the processor. Each is
    // warmed up before each turn: while it waits, the system reclaims its memory and caches. Until the four threads
    // have settled on two processors, both server threads may share one.
    let mut rounds: Vec<Vec<Load>> = servers.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((kind, server), loads) in servers.iter().zip(&mut rounds) {
            loads.push(turn(server, if *kind == "bare" { &bare_request } else { &cogn_request }).await);
        }
    }
    println!("{CONNECTIONS} connections, {ROUNDS} rounds: quarter, median, three quarters of the rounds");
    let (bare, cogn) = (&rounds[0], &rounds[1]);
    for ((kind, _), loads) in servers.iter().zip(&rounds) {
        let of = |figure: &dyn Fn(&Load, &Load, &Load) -> f64| {
            spread(
                loads.iter().zip(bare).zip(cogn).map(|((own, bare), cogn)| figure(own, bare, cogn)).collect(),
            )
        };
        println!("{kind}");
        println!("  requests per second             {:.0?}", of(&|own, _, _| own.per_second));
        println!("  processor time of one, in µs    {:.1?}", of(&|own, _, _| own.processor_micros));
        println!("  p50 in milliseconds             {:.2?}", of(&|own, _, _| own.p50));
        println!("  p99 in milliseconds             {:.2?}", of(&|own, _, _| own.p99));
        if *kind != "bare" {
            println!(
                "  requests, ratio to bare         {:.2?}",
                of(&|own, bare, _| own.per_second / bare.per_second)
            );
            println!("  p99 above bare                  {:.2?}", of(&|own, bare, _| own.p99 - bare.p99));
            println!(
                "  processor time, ratio to cogn   {:.2?}",
                of(&|own, _, cogn| own.processor_micros / cogn.processor_micros)
            );
        }
    }
    first_delta(&servers[0].1, &servers[1].1).await;
    slow_streams(&upstream).await;
}

/// Returns the first quartile, the median and the third quartile.
fn spread(mut figures: Vec<f64>) -> [f64; 3] {
    figures.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| figures[(figures.len() - 1) * quarter / 4])
}

/// Runs one turn of a server: a warm-up, then the measurement.
async fn turn(server: &Server, request: &str) -> Load {
    client::load(&server.address, request, CONNECTIONS, WARMING).await;
    let before = server.processor_time();
    let mut load = client::load(&server.address, request, CONNECTIONS, TIME).await;
    load.processor_micros = server.processor_time().saturating_sub(before).as_secs_f64() * 1e6 / load.count;
    load
}

/// The time to the first text of a field, with a single client.
async fn first_delta(bare: &Server, cogn: &Server) {
    let raw = client::request("/stream", "text/event-stream");
    let ours = client::request("/api/run/words", "text/event-stream");
    let mut gaps = Vec::new();
    for _ in 0..200 {
        let direct = client::time_to(&bare.address, &raw, "rationale").await;
        let through = client::time_to(&cogn.address, &ours, "\"delta\":").await;
        gaps.push(through - direct);
    }
    let [_, median, _] = spread(gaps);
    println!("added time to the first delta: {median:.3} ms median (at most 1)");
}

async fn slow_streams(upstream: &str) {
    let cogn = Server::start("cogn", &format!("{upstream}/slow"));
    let request = client::request("/api/run/words", "text/event-stream");
    let whole = client::streams(&cogn.address, &request, STREAMS).await;
    println!("{STREAMS} slow streams at once: {whole} whole, {:.0} MB at most (under 300)", cogn.peak());
}
