//! Servers that share PostgreSQL and Redis, at full load: the cost of one run on each, and the throughput of three
//! servers against one. Everything runs on this machine over loopback and ends by itself.
//!
//! `CARGO_PROFILE_BENCH_LTO=off cargo bench -p cogn-cli --bench several_servers -- 10` measures for ten seconds each and
//! prints the figures for `docs/scale.md`, or writes them to a file that is named behind the number. Without a number it
//! prints its usage and exits.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints and may panic"
)]
#![allow(missing_docs, reason = "nobody calls a benchmark")]

#[path = "../../../cognitive-http/benches/load/client.rs"]
#[expect(dead_code, reason = "the other benchmark listens to streams too")]
mod client;
mod measured;
mod stub;

use std::path::PathBuf;
use std::time::Duration;

use cognitive_testkit::{TestPostgres, TestRedis};
use measured::{Measured, ServerGroup, home};
use serde_json::{Value, json};

/// Pairs of servers and total concurrent clients. Zero servers means one server without shared state, as the baseline.
const ROUNDS: [(usize, usize); 7] = [(0, 48), (1, 16), (1, 48), (3, 48), (1, 16), (1, 48), (3, 48)];
/// The warm-up before measuring.
const WARMING: Duration = Duration::from_secs(3);

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(seconds) = arguments.next().and_then(|seconds| seconds.parse().ok()) else {
        println!("name the seconds to measure, and perhaps a file for the figures: `10 figures.json`");
        return;
    };
    let (Some(postgres), Some(redis)) = (TestPostgres::durable(), TestRedis::start()) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let figures = runtime.block_on(measure(&postgres, &redis, Duration::from_secs(seconds)));
    let text = serde_json::to_string_pretty(&figures).unwrap() + "\n";
    println!("{text}");
    if let Some(path) = arguments.next().map(PathBuf::from) {
        // The working directory of a benchmark is that of its crate.
        let top = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::write(top.join(path), text).unwrap();
    }
}

/// Runs all rounds, each for this time.
async fn measure(postgres: &TestPostgres, redis: &TestRedis, time: Duration) -> Value {
    let upstream = stub::start().await;
    let mut rounds = Vec::new();
    for (servers, connections) in ROUNDS {
        let database = postgres.database();
        let home = home(&database);
        let group = ServerGroup::start(&home, &upstream, servers, &redis.address());
        load(&group, connections, WARMING).await;
        let before = Measured::now(&group, postgres, redis, &database);
        let seen = load(&group, connections, time).await;
        let after = Measured::now(&group, postgres, redis, &database);
        let runs = seen.per_second * time.as_secs_f64();
        let round = after.since(&before, runs, &seen, (servers, connections));
        eprintln!("{round}");
        rounds.push(round);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    json!({ "cores": cores, "seconds": time.as_secs(), "rounds": rounds })
}

/// Spreads the clients over the servers.
async fn load(group: &ServerGroup, connections: usize, time: Duration) -> client::Load {
    let each = connections / group.addresses().len();
    let loads = group.addresses().into_iter().enumerate().map(|(server, address)| async move {
        let request = measured::request(server);
        client::load(&address, &request, each, time).await
    });
    let loads = futures_util::future::join_all(loads).await;
    let per_second = loads.iter().map(|load| load.per_second).sum();
    let worst = |of: fn(&client::Load) -> f64| loads.iter().map(of).fold(0.0, f64::max);
    let count = loads.iter().map(|load| load.count).sum();
    let (p50, p99) = (worst(|load| load.p50), worst(|load| load.p99));
    client::Load { count, per_second, processor_micros: 0.0, p50, p99 }
}
