//! Server processes, and the resources that they, PostgreSQL and Redis use.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cognitive_testkit::{TestPostgres, TestRedis};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Load;

/// Each server gets requests of separate users, so that no audit chain is shared by all servers.
const PEOPLE: usize = 3;

/// Returns the request of a client of this server.
pub(crate) fn request(server: usize) -> String {
    let body = r#"{"text": "winter snow"}"#;
    let key = key(server % PEOPLE);
    format!(
        "POST /api/run/words HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn key(person: usize) -> String {
    format!("key-{person}-0123456789abcdef")
}

/// A home with a module, keys and a database.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new(database: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let module = home.path().join("cognitive/modules/words");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::create_dir_all(home.path().join(".cognitive")).unwrap();
        let manifest = json!({ "name": "words", "version": "1.0.0", "responsibility": "Find words", "tier": "decision", "excludes": [] });
        let schema = json!({
            "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
            "data": { "type": "object", "required": ["rationale", "words"], "properties": {
                "rationale": { "type": "string" }, "words": { "type": "array", "items": { "type": "string" } } } },
        });
        std::fs::write(module.join("module.yaml"), manifest.to_string()).unwrap();
        std::fs::write(module.join("prompt.md"), "Find the words that matter.").unwrap();
        std::fs::write(module.join("schema.json"), schema.to_string()).unwrap();
        let config = json!({ "audit": { "path": database } }).to_string();
        std::fs::write(home.path().join(".cognitive/config.yaml"), config).unwrap();
        let keys: Vec<String> = (0..PEOPLE).map(|person| format!("person{person} {}", key(person))).collect();
        std::fs::write(home.path().join("keys"), keys.join("\n")).unwrap();
        Self(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Servers that are measured together. They are killed when this value is dropped.
pub(crate) struct ServerGroup(Vec<(Child, String)>);

impl ServerGroup {
    /// Starts this number of servers with shared state; zero means one server without it.
    pub(crate) fn start(home: &Home, upstream: &str, count: usize, redis: &str) -> Self {
        let start = |_| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
            command.current_dir(home.path()).env_clear();
            command.env("HOME", home.path()).env("OPENAI_API_KEY", "sk-test").stdin(Stdio::null());
            command.args(["serve", "--port", "0", "--streams", "0", "--keys", "keys", "--quiet"]);
            command.args(["--provider", "openai", "--base-url", upstream, "--model", "stub"]);
            if count == 0 {
                command.args(["--no-audit", "--rate", "0"]);
            } else {
                // A limit that is never reached, so that Redis still has to count.
                command.args(["--shared", redis, "--rate", "100000000"]);
            }
            let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
            let mut stderr = BufReader::new(child.stderr.take().unwrap());
            let mut said = String::new();
            while !said.contains("http://") && stderr.read_line(&mut said).unwrap() > 0 {}
            let address = said.split("http://").nth(1).unwrap_or_default();
            let address = address.split([',', ' ', '\u{1b}']).next().unwrap().trim().to_owned();
            assert!(!address.is_empty(), "{said}");
            std::thread::spawn(move || {
                for line in stderr.lines().map_while(Result::ok) {
                    println!("said by a server: {line}");
                }
            });
            (child, address)
        };
        Self((0..count.max(1)).map(start).collect())
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.0.iter().map(|(_, address)| address.clone()).collect()
    }
}

impl Drop for ServerGroup {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The resources used so far.
pub(crate) struct Measured {
    servers: Duration,
    postgres: Duration,
    redis: Duration,
    /// The clients and the model, which run in this process.
    around: Duration,
    commits: f64,
    records: f64,
    table_bytes: f64,
    log_bytes: f64,
}

impl Measured {
    pub(crate) fn now(
        group: &ServerGroup,
        postgres: &TestPostgres,
        redis: &TestRedis,
        database: &str,
    ) -> Self {
        let name = TestPostgres::name_of(database);
        let number = |sql: &str| postgres.sql(name, sql).parse().unwrap_or(0.0);
        let has_tables =
            number("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'cogn'") > 0.0;
        let records = if has_tables { number("SELECT count(*) FROM cogn.audit") } else { 0.0 };
        Self {
            servers: group.0.iter().map(|(child, _)| processor_time(child.id(), false)).sum(),
            postgres: processor_time(postgres.pid(), true),
            redis: processor_time(redis.pid(), false),
            around: processor_time(std::process::id(), false),
            commits: number(&format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{name}'")),
            records,
            table_bytes: number(&format!("SELECT pg_database_size('{name}')")),
            log_bytes: number("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"),
        }
    }

    /// Returns the resources of one run, in microseconds and bytes.
    pub(crate) fn since(
        &self,
        before: &Self,
        runs: f64,
        load: &Load,
        (servers, connections): (usize, usize),
    ) -> Value {
        let micros = |after: Duration, before: Duration| {
            rounded(after.saturating_sub(before).as_secs_f64() * 1e6 / runs)
        };
        let each = |after: f64, before: f64| rounded((after - before) / runs);
        json!({
            "servers": servers,
            "connections": connections,
            "runs_per_second": rounded(load.per_second),
            "p50_ms": rounded(load.p50),
            "p99_ms": rounded(load.p99),
            "server_us": micros(self.servers, before.servers),
            "postgres_us": micros(self.postgres, before.postgres),
            "redis_us": micros(self.redis, before.redis),
            "around_us": micros(self.around, before.around),
            "commits_per_run": each(self.commits, before.commits),
            "records_per_run": each(self.records, before.records),
            "table_bytes_per_run": each(self.table_bytes, before.table_bytes),
            "log_bytes_per_run": each(self.log_bytes, before.log_bytes),
        })
    }
}

fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

/// Returns the CPU time of a process, optionally with its children; the resolution is a hundredth of a second.
fn processor_time(pid: u32, with_children: bool) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program name, in parentheses, may contain anything.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    // Its own time, and that of finished children.
    let fields = after_name.split_whitespace().skip(11).take(if with_children { 4 } else { 2 });
    let ticks: u64 = fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter(|_| with_children).filter_map(|pid| pid.parse().ok());
    Duration::from_millis(ticks * 10) + children.map(|pid| processor_time(pid, false)).sum()
}
