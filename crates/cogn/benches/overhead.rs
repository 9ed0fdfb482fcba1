//! The Rust side of the comparison in `packaging/python/benches/overhead.py`: the same module, input and stub. Sends no
//! other requests; without the address of a stub it prints its usage and exits.
//!
//! For each line on standard input, `one N` or `many N WIDTH`, it prints the duration of a call, as `clients.py` does.
#![expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(missing_docs, reason = "nobody calls a benchmark")]

use std::io::{BufRead as _, stdin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cogn::{Runtime, json};
use cognitive_setup::async_runtime;
use cognitive_setup::config::Config;

const TEXT: &str = "The new train is quiet, clean and on time. I am really happy with it.";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, modules] = arguments.as_slice() else {
        println!("run by packaging/python/benches/overhead.py, which starts the stub that it asks");
        return Ok(());
    };
    assert!(base.starts_with("http://127.0.0.1:"), "not this machine: {base}");
    // As in the Python package: all cores, and one waiting thread.
    let threads = async_runtime::on_all_cores()?;
    let config = Config::parse("audit: {enabled: false}")?;
    let builder = Runtime::builder().with_env().config(config).modules(modules);
    let runtime = builder.provider_name("openai").model("plain").build()?;
    let runtime = Arc::new(runtime);
    threads.block_on(ask(&runtime));
    println!("ready {}", env!("CARGO_PKG_VERSION"));
    for line in stdin().lock().lines() {
        let line = line?;
        let numbers: Vec<u32> =
            line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let calls = numbers.first().copied().unwrap_or(1).max(1);
        let (began, processor) = (Instant::now(), processor_time());
        match numbers.get(1) {
            None => (0..calls).for_each(|_| threads.block_on(ask(&runtime))),
            Some(width) => threads.block_on(at_once(&runtime, calls, *width)),
        }
        let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(calls);
        let (cpu, wall) = (each(processor_time().saturating_sub(processor)), each(began.elapsed()));
        println!("{}", json!({ "cpu_us": cpu, "wall_us": wall }));
    }
    Ok(())
}

/// Makes one call and reads the data of its answer.
async fn ask(runtime: &Runtime) {
    let run = match runtime.module("label") {
        Ok(module) => module.input(json!({ "text": TEXT })).run().await,
        Err(failure) => failure.into_envelope(),
    };
    let answer = std::hint::black_box(run).into_result();
    assert!(answer.is_ok(), "{answer:?}");
}

async fn at_once(runtime: &Arc<Runtime>, calls: u32, width: u32) {
    let workers = (0..width).map(|_| {
        let runtime = Arc::clone(runtime);
        tokio::spawn(async move {
            for _ in 0..calls / width {
                ask(&runtime).await;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        let _ = worker.await;
    }
}

/// Returns the CPU time of all threads of this process. If the system does not report it, only the duration of a call
/// is known.
fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let worked = threads.filter_map(|thread| {
        let line = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(worked.sum())
}
