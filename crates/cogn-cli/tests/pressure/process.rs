//! `cogn serve` as a process under pressure: how it is started, what it takes of memory and processor, and a model service
//! on loopback with answers of any length. Shared by tests and benchmarks; Linux only, since it reads `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The key that opens the server.
pub(crate) const KEY: &str = "a-key-of-some-length";

/// A running server. It ends when this value does.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
    /// What it said on stderr up to its address.
    pub(crate) said: String,
    _dir: TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A project that a server can be started in, with a home of its own.
pub(crate) fn project() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("project")).unwrap();
    fs::create_dir_all(dir.path().join("home")).unwrap();
    dir
}

/// The program that is started: that of this build, or another to compare with.
fn program() -> PathBuf {
    std::env::var_os("COGN_BENCH_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_cogn").into(), PathBuf::from)
}

/// The command of a server in a project, under a limit as `ulimit` takes it.
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
        // As docs/serving.md says for a limit on data: what the allocator merely reserves must not count.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .env("OPENAI_API_KEY", "sk-test")
        .env("COGNITIVE_API_KEY", KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

impl Served {
    pub(crate) fn start(dir: TempDir, limit: &str, args: &[&str]) -> Self {
        let mut child = command(dir.path(), limit, args).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let before = said.len();
            assert!(lines.read_line(&mut said).unwrap() > 0, "it ended before it listened: {said}");
            if let Some((_, address)) = said[before..].split_once("http://") {
                break address.split([',', ' ', '\u{1b}']).next().unwrap().trim().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address, said, _dir: dir }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// A figure of `/proc/PID/status`, in bytes: `VmRSS`, `VmHWM`.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>().unwrap() << 10
    }

    /// The processor time that it has taken, in hundredths of a second.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Waits until it takes at most so much memory; what it takes then, or after the time is up.
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

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(head(method, path, "connection: close\r\n", body.len()).as_bytes()).unwrap();
        // A server that has heard enough does not read the rest.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
    }
}

/// The head of a request with the key.
pub(crate) fn head(method: &str, path: &str, more: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n"
    )
}

/// A body of so many bytes, of equal pieces.
pub(crate) fn hostile(piece: &str, bytes: usize) -> Vec<u8> {
    format!("{{\"images\": [{}0]}}", piece.repeat(bytes / piece.len())).into_bytes()
}

/// A service whose answers have so many bytes, in deltas of so many. Gives its address.
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
        // A real service works on its own machine: two hundred threads that write as fast as they can must not take the
        // processors from the server that is measured. Threads that this one starts inherit it.
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
