//! Server processes, and the resources that they, PostgreSQL and Redis use.

use std::time::Duration;

use cognitive_testkit::{Home, TestPostgres, TestRedis, TestServer};
use serde_json::{Value, json};

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
pub(crate) fn home(database: &str) -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_cogn")).with("OPENAI_API_KEY", "sk-test");
    let manifest = json!({ "name": "words", "version": "1.0.0", "responsibility": "Find words", "tier": "decision", "excludes": [] });
    let schema = json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
        "data": { "type": "object", "required": ["rationale", "words"], "properties": {
            "rationale": { "type": "string" }, "words": { "type": "array", "items": { "type": "string" } } } },
    });
    home.module("words", &manifest.to_string(), "Find the words that matter.", &schema);
    home.user_config(&json!({ "audit": { "path": database } }).to_string());
    let keys: Vec<String> = (0..PEOPLE).map(|person| format!("person{person} {}", key(person))).collect();
    home.write("keys", keys.join("\n"));
    home
}

/// Servers that are measured together. They are killed when this value is dropped.
pub(crate) struct ServerGroup(Vec<TestServer>);

impl ServerGroup {
    /// Starts this number of servers with shared state; zero means one server without it.
    pub(crate) fn start(home: &Home, upstream: &str, count: usize, redis: &str) -> Self {
        let usual = [
            "--streams",
            "0",
            "--keys",
            "keys",
            "--provider",
            "openai",
            "--base-url",
            upstream,
            "--model",
            "stub",
        ];
        // A limit that is never reached, so that Redis still has to count.
        let shared = ["--shared", redis, "--rate", "100000000"];
        let more = if count == 0 { &["--no-audit", "--rate", "0"][..] } else { &shared };
        Self((0..count.max(1)).map(|_| TestServer::start(home, &[&usual, more].concat(), &[])).collect())
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.0.iter().map(|server| server.address.clone()).collect()
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
            servers: group.0.iter().map(|server| processor_time(server.id(), false)).sum(),
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
