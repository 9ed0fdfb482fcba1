//! `cogn serve` as a process under load: its start, its memory and CPU time, and a local model stub with answers of any
//! length. Shared by tests and benchmarks. Linux only, because it reads `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The key of the server.
pub(crate) const KEY: &str = "a-key-of-some-length";

/// A running server. It is killed when this value is dropped.
pub(crate) struct LimitedServer {
    process: cognitive_testkit::TestServer,
    pub(crate) address: String,
    /// Its stderr up to its address.
    pub(crate) said: String,
    _dir: TempDir,
}

/// Creates a project for a server, with a temporary home.
pub(crate) fn project() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("project")).unwrap();
    fs::create_dir_all(dir.path().join("home")).unwrap();
    dir
}

/// Returns the program to start: that of this build, or another one for comparison.
fn program() -> PathBuf {
    std::env::var_os("COGN_BENCH_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_cogn").into(), PathBuf::from)
}

/// Prepares a server in a project, under a limit in the format of `ulimit`.
pub(crate) fn command(dir: &Path, limit: &str, args: &[&str]) -> Command {
    let mut command = cognitive_testkit::command("/bin/sh");
    let run = if limit.is_empty() {
        r#"exec "$0" "$@""#.to_owned()
    } else {
        format!(r#"ulimit {limit} && exec "$0" "$@""#)
    };
    command.arg("-c").arg(run).arg(program()).args([
        "serve",
        "--port",
        "0",
        "--quiet",
        "--provider",
        "openai",
        "--model",
        "stub",
    ]);
    command
        .args(args)
        .current_dir(dir.join("project"))
        .env_clear()
        .env("HOME", dir.join("home"))
        .env("COGN_OFFLINE", "1")
        // As docs/serving.md requires for a limit on data: memory that the allocator only reserves must not count.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .env("OPENAI_API_KEY", "sk-test")
        .env("COGNITIVE_API_KEY", KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

impl LimitedServer {
    pub(crate) fn start(dir: TempDir, limit: &str, args: &[&str]) -> Self {
        let process = cognitive_testkit::TestServer::spawn(&mut command(dir.path(), limit, args));
        Self { address: process.address.clone(), said: process.said.clone(), process, _dir: dir }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns whether it is still running.
    pub(crate) fn lives(&self) -> bool {
        // A process that has ended stays there as a zombie until it is waited for.
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    }

    /// Returns a figure of `/proc/PID/status`, in bytes: `VmRSS`, `VmHWM`.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>().unwrap() << 10
    }

    /// Returns its CPU time, in hundredths of a second.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Waits until its memory is at most this, or time is up, and returns the memory.
    pub(crate) fn settled(&self, most: u64, time: Duration) -> u64 {
        let started = Instant::now();
        loop {
            let memory = self.memory("VmRSS");
            if memory <= most || started.elapsed() > time {
                return memory;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends a request and returns status and body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(head(method, path, "connection: close\r\n", body.len()).as_bytes()).unwrap();
        // The server may refuse the request before it has read the body.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
    }
}

/// Returns the head of a request with the key.
pub(crate) fn head(method: &str, path: &str, more: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n"
    )
}

/// Returns a body of about this size, from repeated pieces.
pub(crate) fn hostile(piece: &str, bytes: usize) -> Vec<u8> {
    format!("{{\"images\": [{}0]}}", piece.repeat(bytes / piece.len())).into_bytes()
}

/// Starts a service with answers of this size, in deltas of this size. Returns its address.
pub(crate) fn service(bytes: usize, delta: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let event = |text: &str| {
        let text = serde_json::Value::from(text);
        format!(
            "data: {{\"model\":\"stub\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n"
        )
    };
    let begin = event(
        r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": ""#,
    );
    let many = event(&"x".repeat(delta)).repeat(64);
    let end = event(r#""}}"#) + "data: [DONE]\n\n";
    std::thread::spawn(move || {
        // A real service runs on another machine: two hundred writing threads must not take the CPU from the measured
        // server. Threads started here inherit the priority.
        let _ = rustix::process::setpriority_process(None, 15);
        for stream in listener.incoming().map_while(Result::ok) {
            let (begin, many, end) = (begin.clone(), many.clone(), end.clone());
            std::thread::spawn(move || {
                let _ = answer(stream, &begin, &many, bytes / (64 * delta), &end);
            });
        }
    });
    base
}

fn answer(stream: TcpStream, begin: &str, many: &str, times: usize, end: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            break;
        }
    }
    std::io::copy(&mut lines.by_ref().take(length), &mut std::io::sink())?;
    let mut stream = lines.into_inner();
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n")?;
    stream.write_all(begin.as_bytes())?;
    for _ in 0..times {
        stream.write_all(many.as_bytes())?;
    }
    stream.write_all(end.as_bytes())
}
