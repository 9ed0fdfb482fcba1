//! What many small requests and many slow readers cost a server, and how the cost of long files of authors and rows
//! grows. Prints its figures; exits with 1 if a bound is broken.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    reason = "in a benchmark, a panic is the report, and its figures are printed; tests use the rest of `process`"
)]

#[path = "../tests/pressure/process.rs"]
mod process;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use process::{LimitedServer, head, project};

/// The bounds of the peak memory of a server.
const SMALL_BODIES: u64 = 400 << 20;
const SLOW_EXPORTS: u64 = 300 << 20;
/// The bound of the exponent: twice the input takes at most 2 to this power of the time.
const SLOPE: f64 = 1.2;

fn main() -> ExitCode {
    // `cargo test --benches` and `cargo bench -- --test` only check that it runs.
    let is_test = std::env::args().any(|arg| arg == "--test");
    let (bodies, exports) = if is_test { (50, 10) } else { (9_000, 700) };
    let mut sound = small_bodies(bodies);
    sound &= slow_exports(exports);
    let sizes = if is_test { [1_000, 2_000] } else { [200_000, 800_000] };
    sound &= grows("placeholders of a prompt", sizes, placeholders);
    let columns = if is_test { [100, 200] } else { [25_000, 100_000] };
    sound &= grows("columns of a CSV file", columns, csv_columns);
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn within(what: &str, peak: u64, bound: u64) -> bool {
    println!("{what}: {} MB at most (bound {} MB)", peak >> 20, bound >> 20);
    peak <= bound
}

fn server() -> LimitedServer {
    let limits = ["--rate", "0", "--streams", "0", "--per-address", "0"];
    LimitedServer::start(project(), "", &[&limits[..], &["--base-url", "http://127.0.0.1:9/v1"]].concat())
}

/// Connections that each send almost all of a small body, and then nothing.
fn small_bodies(count: usize) -> bool {
    let server = server();
    let length = 255 << 10;
    let body = vec![b' '; length - 1];
    let open: Vec<TcpStream> = (0..count)
        .map_while(|_| {
            let mut stream = TcpStream::connect(&server.address).ok()?;
            stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
            let path = "/api/run/summarizer";
            // A refused request is closed in between.
            let _ = stream
                .write_all(head("POST", path, "", length).as_bytes())
                .and_then(|()| stream.write_all(&body));
            Some(stream)
        })
        .collect();
    within(&format!("{} small bodies", open.len()), server.memory("VmHWM"), SMALL_BODIES)
}

/// Readers that open an export and read next to nothing.
fn slow_exports(count: usize) -> bool {
    let server = server();
    let mut open = Vec::new();
    for _ in 0..count {
        let Ok(mut stream) = TcpStream::connect(&server.address) else { break };
        let _ = stream.write_all(head("GET", "/v1/reviews/export", "", 0).as_bytes());
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let _ = stream.read(&mut [0; 64]);
        open.push(stream);
    }
    let (status, _) = server.ask("GET", "/ready", b"");
    within(&format!("{} slow exports", open.len()), server.memory("VmHWM"), SLOW_EXPORTS) && status == 200
}

/// Compares the processor time of two sizes.
fn grows(what: &str, [small, large]: [usize; 2], ask: fn(&Path, usize) -> Duration) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let least = |size| (0..3).map(|_| ask(folder.path(), size)).min().unwrap().max(Duration::from_millis(1));
    // The time of the program itself is the same for both.
    let start = ask(folder.path(), 1);
    let net = |size| least(size).saturating_sub(start).max(Duration::from_millis(2)).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
    let slope = (net(large) / net(small)).ln() / (large as f64 / small as f64).ln();
    println!("{what}: exponent {slope:.2} (bound {SLOPE})");
    slope <= SLOPE
}

fn timed(folder: &Path, args: &[&str]) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
    command.args(args).current_dir(folder).env_clear().env("HOME", folder).env("COGN_OFFLINE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    command.status().unwrap();
    started.elapsed()
}

fn placeholders(folder: &Path, size: usize) -> Duration {
    let module = folder.join("cognitive/modules/m");
    fs::create_dir_all(&module).unwrap();
    fs::write(module.join("module.yaml"), "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n")
        .unwrap();
    fs::write(module.join("schema.json"), r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#)
        .unwrap();
    fs::write(module.join("prompt.md"), "{{${".repeat(size.min(900_000) / 4)).unwrap();
    timed(folder, &["validate", "m"])
}

fn csv_columns(folder: &Path, columns: usize) -> Duration {
    let names: Vec<String> = (0..columns).map(|number| format!("c{number}")).collect();
    fs::write(folder.join("rows.csv"), format!("{}\n{}\n", names.join(","), vec!["1"; columns].join(",")))
        .unwrap();
    timed(folder, &["batch", "summarizer", "rows.csv", "-o", "out.jsonl", "--dry-run"])
}
