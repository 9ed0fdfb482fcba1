//! `cogn serve` with an embedded model, for benchmarks over sockets. Knows no module and judges no answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A running server. It is killed when this value is dropped.
pub struct EmbeddedServer {
    child: Child,
    address: String,
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl EmbeddedServer {
    /// Serves the modules of a folder with these weights; `COGN_BENCH_BINARY` overrides the program of this build.
    pub fn start(weights: &Path, folder: &Path) -> Self {
        let program =
            std::env::var_os("COGN_BENCH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_cogn").into());
        let words = "serve --port 0 --quiet --rate 0 --streams 0 --per-address 0 --timeout 600 --provider embedded --model";
        let mut child = Command::new(program)
            .args(words.split(' '))
            .arg(weights)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("COGN_OFFLINE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut lines, mut said) = (BufReader::new(child.stderr.take().unwrap()), String::new());
        while !said.contains("http://") {
            assert!(lines.read_line(&mut said).unwrap() > 0, "it ended before it listened: {said}");
        }
        let address =
            said.split("http://").nth(1).unwrap().split([' ', ',', '\n']).next().unwrap().to_owned();
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address }
    }

    /// Runs a module and returns its envelope; null if the response is not one.
    pub fn run(&self, module: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /api/run/{module} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: application/json\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(body).unwrap_or_default()
    }
}
