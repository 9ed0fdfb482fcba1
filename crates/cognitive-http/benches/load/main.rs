//! What the server adds to a model call: throughput, latency and memory, as ratios against a bare axum handler that
//! forwards to the same stub with reqwest. Everything is on loopback, bounded in count, and ends by itself.
//!
//! `cargo bench -p cognitive-http` runs it; `benches/README.md` says what the lines mean.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints and may panic"
)]

mod client;
mod servers;
mod stub;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use client::Load;

const CONNECTIONS: usize = 64;
const REQUESTS: usize = 300;
const STREAMS: usize = 2_000;

/// A server in a process of its own, so that its memory and its time are its own.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(kind: &str, upstream: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([kind, upstream])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// Memory in megabytes: the highest so far.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
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
        (Some("cogn"), Some(upstream)) => runtime.block_on(servers::cogn(upstream)),
        _ => runtime.block_on(measure()),
    }
}

async fn measure() {
    let upstream = stub::start().await;
    let bare = Server::start("bare", &upstream);
    let cogn = Server::start("cogn", &upstream);
    let bare_request = client::request("/run", "application/json");
    let cogn_request = client::request("/api/run/words", "application/json");
    // Both are warmed, then measured in turn, so that neither has a better moment.
    let mut rounds: Vec<(Load, Load)> = Vec::new();
    for round in 0..4 {
        let requests = if round == 0 { 20 } else { REQUESTS };
        let one = client::load(&bare.address, &bare_request, CONNECTIONS, requests).await;
        let other = client::load(&cogn.address, &cogn_request, CONNECTIONS, requests).await;
        if round > 0 {
            rounds.push((one, other));
        }
    }
    rounds.sort_by(|a, b| (a.1.per_second / a.0.per_second).total_cmp(&(b.1.per_second / b.0.per_second)));
    let (one, other) = &rounds[rounds.len() / 2];
    println!("{CONNECTIONS} connections, {REQUESTS} requests each, median of {} rounds", rounds.len());
    println!("  bare  {one}");
    println!("  cogn  {other}");
    println!("  ratio of requests per second: {:.2} (at least 0.6)", other.per_second / one.per_second);
    println!("  added p99: {:.2} ms (at most 2)", other.p99 - one.p99);
    first_delta(&bare, &cogn).await;
    slow_streams(&upstream).await;
}

/// Time to the first text of a field, one client alone.
async fn first_delta(bare: &Server, cogn: &Server) {
    let raw = client::request("/stream", "text/event-stream");
    let ours = client::request("/api/run/words", "text/event-stream");
    let mut gaps = Vec::new();
    for _ in 0..200 {
        let direct = client::time_to(&bare.address, &raw, "rationale").await;
        let through = client::time_to(&cogn.address, &ours, "\"delta\":").await;
        gaps.push(through - direct);
    }
    gaps.sort_by(f64::total_cmp);
    println!("added time to the first delta: {:.3} ms median (at most 1)", gaps[gaps.len() / 2]);
}

async fn slow_streams(upstream: &str) {
    let cogn = Server::start("cogn", &format!("{upstream}/slow"));
    let request = client::request("/api/run/words", "text/event-stream");
    let whole = client::streams(&cogn.address, &request, STREAMS).await;
    println!("{STREAMS} slow streams at once: {whole} whole, {} MB at most (under 300)", cogn.peak());
}
