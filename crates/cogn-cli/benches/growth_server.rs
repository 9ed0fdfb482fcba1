//! The cost of a server as its modules grow from 10 to 10,000 (list, description, health check and one run), and a
//! burst of 3,000 connections. Prints size, CPU time, memory and the slope between sizes. Exits with 1 if a slope
//! exceeds its bound or a connection had to wait.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    dead_code,
    reason = "in a benchmark, a panic is the report, and its figures are printed; tests use the rest of `process`"
)]

#[path = "../tests/pressure/process.rs"]
mod process;

use std::fs;
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use process::{LimitedServer, project, service};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
/// The maximum exponent of the growth of cost.
const STEEPEST: f64 = 1.2;
/// Times below this are noise: the clock has hundredths of a second.
const NOISE: f64 = 0.05;
const BURST: usize = 3_000;
const MAX_CONNECT: Duration = Duration::from_millis(200);

const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale"], "properties": {"rationale": {"type": "string"}, "words": {"type": "array", "items": {"type": "string"}}}}}"#;

fn main() -> ExitCode {
    let quick = std::env::args().any(|arg| arg == "--test");
    let sizes = if quick { &SIZES[..2] } else { &SIZES[..] };
    let base = service(1_000, 10);
    let mut before: Option<(usize, Vec<f64>)> = None;
    let mut sound = true;
    for size in sizes {
        let costs = measured(*size, &base);
        if let Some((smaller, before)) = &before {
            let times = (*size as f64 / *smaller as f64).ln();
            for (number, (was, is)) in before.iter().zip(&costs).enumerate() {
                let slope = (is.max(NOISE) / was.max(NOISE)).ln() / times;
                if slope > STEEPEST {
                    println!("  figure {} grew with power {slope:.2} from {smaller} to {size}", number + 1);
                    sound = false;
                }
            }
        }
        before = Some((*size, costs));
    }
    sound &= burst(&base, if quick { 100 } else { BURST });
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the cost of a server with this number of user modules, in seconds: one figure per line.
fn measured(size: usize, base: &str) -> Vec<f64> {
    let dir = project();
    let modules = dir.path().join("project/cognitive/modules");
    for number in 0..size {
        let folder = modules.join(format!("m{number}"));
        fs::create_dir_all(&folder).unwrap();
        let manifest = format!(
            "name: m{number}\nversion: 1.0.0\nresponsibility: Number {number}\ntier: exec\nexcludes: [x]\n"
        );
        fs::write(folder.join("module.yaml"), manifest).unwrap();
        fs::write(folder.join("prompt.md"), "Say it.").unwrap();
        fs::write(folder.join("schema.json"), SCHEMA).unwrap();
    }
    let server = LimitedServer::start(dir, "", &["--rate", "0", "--base-url", base]);
    println!("{size} modules");
    let mut costs = Vec::new();
    let mut figure = |what: &str, act: &dyn Fn() -> usize| {
        let (ticks, started) = (server.ticks(), Instant::now());
        let bytes = act();
        let (took, cost) = (started.elapsed().as_secs_f64(), (server.ticks() - ticks) as f64 / 100.0);
        let memory = server.memory("VmRSS") >> 20;
        println!(
            "  {:2}. {what:34} {took:8.3} s, {cost:6.2} s of processor, {:8} KB, {memory:5} MB",
            costs.len() + 1,
            bytes >> 10
        );
        costs.push(cost);
    };
    let get = |path: &str| {
        let (status, body) = server.ask("GET", path, b"");
        assert_eq!(status, 200, "{path}: {body:.300}");
        body.len()
    };
    // Longer than the cache lifetime of the folder listing.
    let later = || std::thread::sleep(Duration::from_secs(4));
    figure("the first list", &|| get("/api/modules"));
    figure("the first description", &|| get("/openapi.json"));
    later();
    figure("the list again, later", &|| get("/api/modules"));
    later();
    figure("the description again, later", &|| get("/openapi.json"));
    figure("the description at once, 20 times", &|| (0..20).map(|_| get("/openapi.json")).sum());
    later();
    figure("the health, later", &|| get("/health"));
    figure("a run", &|| server.ask("POST", "/api/run/m7", br#"{"text": "winter"}"#).1.len());
    figure("50 runs", &|| {
        (0..50).map(|_| server.ask("POST", "/api/run/m7", br#"{"text": "winter"}"#).1.len()).sum()
    });
    costs.push(server.memory("VmHWM") as f64 / 1e9);
    println!("  {:2}. at most {} MB", costs.len(), server.memory("VmHWM") >> 20);
    // Health checks are frequent, so their cost must not depend on the number of modules.
    let started = Instant::now();
    get("/health");
    assert!(started.elapsed() < Duration::from_millis(100), "{:?}", started.elapsed());
    costs
}

/// Opens many connections at once and checks how long the slowest one took.
fn burst(base: &str, many: usize) -> bool {
    let server = LimitedServer::start(project(), "", &["--rate", "0", "--base-url", base]);
    server.ask("GET", "/ready", b"");
    let threads = 8;
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let connect = || {
            let started = Instant::now();
            let stream = TcpStream::connect(&server.address).unwrap();
            (started.elapsed(), stream)
        };
        let connecting: Vec<_> = (0..threads)
            .map(|_| scope.spawn(move || (0..many / threads).map(|_| connect()).collect::<Vec<_>>()))
            .collect();
        let all: Vec<_> = connecting.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        all.iter().map(|(took, _)| *took).collect()
    });
    waits.sort();
    let (median, longest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    println!(
        "{many} connections at once: median {:.2} ms, longest {:.1} ms (at most {})",
        median.as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
        MAX_CONNECT.as_millis(),
    );
    longest <= MAX_CONNECT
}
