//! `cogn serve` with an embedded model, for benchmarks over sockets. Knows no module and judges no answer.

use std::path::Path;

use cognitive_testkit::{TestServer, command};
use serde_json::Value;

/// A running server. It is killed when this value is dropped.
pub struct EmbeddedServer(TestServer);

impl EmbeddedServer {
    /// Serves the modules of a folder with these weights; `COGN_BENCH_BINARY` overrides the program of this build.
    pub fn start(weights: &Path, folder: &Path) -> Self {
        let program =
            std::env::var_os("COGN_BENCH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_cogn").into());
        let words = "serve --port 0 --quiet --rate 0 --streams 0 --per-address 0 --timeout 600 --provider embedded --model";
        let mut command = command(program);
        command.args(words.split(' ')).arg(weights).current_dir(folder).env_clear();
        Self(TestServer::spawn(command.env("HOME", folder).env("COGN_OFFLINE", "1")))
    }

    /// Runs a module and returns its envelope; null if the response is not one.
    pub fn run(&self, module: &str, body: &Value) -> Value {
        let line = format!("POST /api/run/{module}");
        let (_, answer) = self.0.ask(&line, &[("accept", "application/json")], body.to_string());
        serde_json::from_str(&answer).unwrap_or_default()
    }
}
