//! A sustained load that shows whether memory grows or speed falls over time, and the cost of one response.
//! Terminates.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::{CONNECTIONS, Server, client, stub};

/// The number of samples.
const LOOKS: u32 = 10;

/// Loads one server for this many seconds, and prints ten lines: the rate, the processor time per response, and the
/// memory.
pub(crate) async fn soak(kind: &str, seconds: u64) {
    let upstream = stub::start().await;
    let server = Server::start(kind, &upstream);
    let path = if kind == "bare" { "/run" } else { "/api/run/words" };
    let request = client::request(path, "application/json");
    let (answered, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let clients = (0..CONNECTIONS).map(|_| {
        let (address, request) = (server.address.clone(), request.clone());
        let (answered, over) = (Arc::clone(&answered), Arc::clone(&over));
        tokio::spawn(async move {
            client::ask(&address, &request, |_| {
                answered.fetch_add(1, Ordering::Relaxed);
                !over.load(Ordering::Relaxed)
            })
            .await;
        })
    });
    let clients: Vec<_> = clients.collect();
    println!("{kind}: {CONNECTIONS} connections for {seconds} seconds");
    let pause = Duration::from_secs(seconds) / LOOKS;
    let (mut count, mut used, mut at) = (0, server.processor_time(), Instant::now());
    let started = at;
    for _ in 0..LOOKS {
        tokio::time::sleep(pause).await;
        let now = (answered.load(Ordering::Relaxed), server.processor_time(), Instant::now());
        let answers = f64::from(u32::try_from(now.0 - count).unwrap_or(u32::MAX));
        println!(
            "  {:>4} s: {:>6.0} requests/s, {:>4.0} µs of processor time each, {:.1} MB",
            started.elapsed().as_secs(),
            answers / (now.2 - at).as_secs_f64(),
            now.1.saturating_sub(used).as_secs_f64() * 1e6 / answers,
            server.memory(),
        );
        (count, used, at) = now;
    }
    over.store(true, Ordering::Relaxed);
    join_all(clients).await;
    println!("  {} connections to the stub", stub::connections());
}
