//! The latency of a tool list with 300 modules, from the request to the last byte of the response: of a new server,
//! of one that has to scan the folders again, and of one that has just scanned. The baseline in the same run is a
//! bare walk of the same folders that reads the metadata of every file. Exits with 1 if a list takes 50 ms or more.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "in a benchmark, a panic is the report, and its figures are printed"
)]

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::Failure;
use cognitive_library::{Library, ModuleCache};
use cognitive_mcp::{Admission, AdmissionFuture, Extensions, McpBackend, McpServer, ToolSurface};
use cognitive_runtime::{Host, Replay, RunOptions};
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

const MODULES: usize = 300;
const MAX_LIST: Duration = Duration::from_millis(50);

struct BenchBackend(Host);

impl McpBackend for BenchBackend {
    fn host(&self) -> &Host {
        &self.0
    }

    fn admit<'a>(&'a self, _: &'a Extensions) -> AdmissionFuture<'a> {
        Box::pin(async { Ok(Admission::new(RunOptions::default())) })
    }

    fn findings(&self, _: &str) -> Result<Value, Failure> {
        Ok(Value::Null)
    }
}

fn write_modules(project: &Path) {
    for number in 0..MODULES {
        let folder = project.join(format!("cognitive/modules/m{number}"));
        fs::create_dir_all(&folder).unwrap();
        let manifest = json!({ "name": format!("m{number}"), "version": "1.0.0", "tier": "decision",
            "responsibility": format!("Judge things of kind {number}."), "excludes": ["cooking"] });
        let schema = json!({
            "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
            "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } } });
        fs::write(folder.join("module.yaml"), manifest.to_string()).unwrap();
        fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
        fs::write(folder.join("prompt.md"), "Judge the text.").unwrap();
    }
}

/// The baseline: reads the metadata of every file, and no content.
fn walk(project: &Path) -> u64 {
    let folders = fs::read_dir(project.join("cognitive/modules")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// One client, one list: the time from the request to the whole response.
async fn listed(server: &McpServer) -> Duration {
    let (here, there) = tokio::io::duplex(1 << 20);
    let server = server.clone();
    tokio::spawn(async move { server.serve(tokio::io::split(there)).await.unwrap().waiting().await });
    let (read, mut write) = tokio::io::split(here);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let began = Instant::now();
    write.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let line = BufReader::new(read).lines().next_line().await.unwrap().unwrap();
    let took = began.elapsed();
    assert!(line.contains("cognitive_run"), "{line}");
    took
}

fn server(project: &Path) -> McpServer {
    let modules = ModuleCache::new(Library::new(project, None, &[]));
    let host = Host::new(Arc::new(modules), Arc::new(Replay::text(String::new())));
    McpServer::new(Arc::new(BenchBackend(host)), ToolSurface::default())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() -> ExitCode {
    let rounds = if std::env::args().any(|arg| arg == "--test") { 1 } else { 15 };
    let project = tempfile::tempdir().unwrap();
    write_modules(project.path());
    let (mut walks, mut first, mut again, mut fresh) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        assert!(walk(project.path()) > 0);
        walks.push(began.elapsed());
        let server = server(project.path());
        first.push(listed(&server).await);
        fresh.push(listed(&server).await);
        // A scan is valid for a second.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        again.push(listed(&server).await);
    }
    let base = median(walks).as_secs_f64();
    let mut is_sound = true;
    println!("tools/list with {MODULES} modules, median of {rounds}; a bare walk takes {:.2} ms", base * 1e3);
    for (what, times) in [("just started", first), ("looks again", again), ("has just looked", fresh)] {
        let slowest = times.iter().max().copied().unwrap_or_default();
        let took = median(times);
        is_sound &= slowest < MAX_LIST;
        println!(
            "  {what:16} {:7.2} ms, {:5.2} walks, at most {:.2} ms",
            took.as_secs_f64() * 1e3,
            took.as_secs_f64() / base,
            slowest.as_secs_f64() * 1e3
        );
    }
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
