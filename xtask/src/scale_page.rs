//! `docs/scale.md`: the cost of a run per component, the throughput of three servers, and the first bottleneck under
//! load. Computed from `docs/scale.json`, the results of the benchmark `several_servers`. Measures nothing itself.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The path of the page.
pub(crate) const PATH: &str = "docs/scale.md";
/// The path of the figures.
const FIGURES: &str = "docs/scale.json";

/// The target utilisation of a processor, so that load peaks cause no long queues.
const FULL: f64 = 0.6;
/// The latency of a model in seconds, which is most of a run.
const MODEL_SECONDS: f64 = 3.0;
/// The tokens of a run, and the price of a million tokens in dollars: a small hosted model.
const TOKENS: f64 = 1_500.0;
const DOLLARS_PER_MILLION_TOKENS: f64 = 0.40;
/// The price of a core hour and of a gigabyte for a month in dollars, close to cloud prices.
const DOLLARS_PER_CORE_HOUR: f64 = 0.04;
const DOLLARS_PER_GIGABYTE_MONTH: f64 = 0.10;
/// The largest machine considered for one PostgreSQL: cores, and bytes of its log per second.
const POSTGRES_CORES: f64 = 32.0;
const POSTGRES_LOG_BYTES: f64 = 200e6;
/// The most records that a server writes in one transaction.
const LARGEST_TRANSACTION: f64 = 256.0;
/// The retention of records in the example, in days.
const KEPT_DAYS: f64 = 30.0;

/// The results of the benchmark.
#[derive(Debug, Deserialize)]
struct ScaleFigures {
    cores: f64,
    seconds: f64,
    rounds: Vec<ScaleRound>,
}

/// One load: a number of servers and clients, at full speed. Microseconds of CPU time and bytes are per run.
#[derive(Debug, Clone, Default, Deserialize)]
struct ScaleRound {
    servers: u32,
    /// The concurrent clients of all servers together.
    connections: u32,
    runs_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    server_us: f64,
    postgres_us: f64,
    redis_us: f64,
    around_us: f64,
    commits_per_run: f64,
    records_per_run: f64,
    table_bytes_per_run: f64,
    log_bytes_per_run: f64,
}

impl ScaleRound {
    /// The CPU time of one run, all components together.
    fn demand(&self) -> f64 {
        self.server_us + self.postgres_us + self.redis_us + self.around_us
    }
}

impl ScaleFigures {
    fn read(root: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(root.join(FIGURES)).map_err(|error| format!("{FIGURES}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{FIGURES}: {error}"))
    }

    /// The mean of all rounds with this number of servers and clients.
    fn mean(&self, servers: u32, connections: u32) -> Result<ScaleRound, String> {
        let is_meant = |round: &&ScaleRound| (round.servers, round.connections) == (servers, connections);
        let rounds: Vec<&ScaleRound> = self.rounds.iter().filter(is_meant).collect();
        let count = u32::try_from(rounds.len()).map_or(0.0, f64::from);
        if rounds.is_empty() {
            return Err(format!("{FIGURES}: no round with {servers} servers and {connections} clients"));
        }
        let mean = |of: fn(&ScaleRound) -> f64| rounds.iter().map(|round| of(round)).sum::<f64>() / count;
        Ok(ScaleRound {
            servers,
            connections,
            runs_per_second: mean(|round| round.runs_per_second),
            p50_ms: mean(|round| round.p50_ms),
            p99_ms: mean(|round| round.p99_ms),
            server_us: mean(|round| round.server_us),
            postgres_us: mean(|round| round.postgres_us),
            redis_us: mean(|round| round.redis_us),
            around_us: mean(|round| round.around_us),
            commits_per_run: mean(|round| round.commits_per_run),
            records_per_run: mean(|round| round.records_per_run),
            table_bytes_per_run: mean(|round| round.table_bytes_per_run),
            log_bytes_per_run: mean(|round| round.log_bytes_per_run),
        })
    }
}

/// The time that PostgreSQL and a server need for one audit transaction. Transactions are sequential, because they
/// extend the same chains. A server batches all records that arrive meanwhile.
#[derive(Debug, Clone, Copy)]
struct AuditCost {
    /// The fixed time in seconds: network, lock and disk.
    transaction: f64,
    /// The time per record, in seconds.
    record: f64,
    /// The number of records in a transaction per client of its server.
    records_per_client: f64,
    records_per_run: f64,
}

impl AuditCost {
    /// Computes the cost from the results of one server with few and with many clients.
    fn of(few: &ScaleRound, many: &ScaleRound) -> Self {
        let time = |round: &ScaleRound| 1.0 / (round.runs_per_second * round.commits_per_run);
        let records = |round: &ScaleRound| round.records_per_run / round.commits_per_run;
        let record = (time(many) - time(few)) / (records(many) - records(few));
        Self {
            transaction: time(few) - record * records(few),
            record,
            records_per_client: records(few) / f64::from(few.connections),
            records_per_run: few.records_per_run,
        }
    }

    /// Returns the runs per second that all servers together can record, for a number of records per transaction.
    fn runs(&self, records: f64) -> f64 {
        records / self.records_per_run / (self.transaction + self.record * records)
    }
}

/// Predicts the runs per second of several servers on one machine. The limit is the audit or the processors.
fn predicted(audit: AuditCost, one: &ScaleRound, cores: f64, servers: f64, clients: f64) -> f64 {
    let processors = cores * 1e6 / one.demand();
    audit.runs(clients / servers * audit.records_per_client).min(processors)
}

/// The resources for a load.
#[derive(Debug, PartialEq)]
struct ScaleNeeds {
    server_cores: f64,
    redis_cores: f64,
    postgres_cores: f64,
    /// The bytes per second that PostgreSQL writes to its log.
    log_bytes: f64,
    /// The bytes of records after the retention time.
    kept_bytes: f64,
    /// The runs that wait for a model at the same time.
    open_runs: f64,
    /// The number of server groups, each with its own PostgreSQL and Redis.
    cells: f64,
    dollars_per_month: f64,
    model_dollars_per_month: f64,
}

const MONTH_SECONDS: f64 = 30.0 * 86_400.0;

/// Computes the resources for a number of runs per second.
fn needs(one: &ScaleRound, audit: AuditCost, runs: f64) -> ScaleNeeds {
    let cores = |micros: f64| runs * micros / 1e6 / FULL;
    let (server_cores, redis_cores, postgres_cores) =
        (cores(one.server_us), cores(one.redis_us), cores(one.postgres_us));
    let log_bytes = runs * one.log_bytes_per_run;
    let kept_bytes = runs * 86_400.0 * KEPT_DAYS * one.table_bytes_per_run;
    let recorded = runs / (audit.runs(LARGEST_TRANSACTION) * FULL);
    let cells = [redis_cores, recorded, postgres_cores / POSTGRES_CORES, log_bytes / POSTGRES_LOG_BYTES]
        .into_iter()
        .fold(1.0, f64::max)
        .ceil();
    let hours = MONTH_SECONDS / 3_600.0;
    let machines = (server_cores + postgres_cores + redis_cores.max(cells)) * hours * DOLLARS_PER_CORE_HOUR;
    ScaleNeeds {
        server_cores,
        redis_cores,
        postgres_cores,
        log_bytes,
        kept_bytes,
        open_runs: runs * MODEL_SECONDS,
        cells,
        dollars_per_month: machines + kept_bytes / 1e9 * DOLLARS_PER_GIGABYTE_MONTH,
        model_dollars_per_month: runs * MONTH_SECONDS * TOKENS * DOLLARS_PER_MILLION_TOKENS / 1e6,
    }
}

/// The bottlenecks of one group of servers, each with its runs per second, lowest first.
fn limits(one: &ScaleRound, audit: AuditCost) -> Vec<(&'static str, f64)> {
    let mut limits = vec![
        ("one processor of a server", FULL * 1e6 / one.server_us),
        ("the audit, whose transactions come one after the other", FULL * audit.runs(LARGEST_TRANSACTION)),
        ("Redis, which works on one processor", FULL * 1e6 / one.redis_us),
        ("the processors of PostgreSQL", FULL * POSTGRES_CORES * 1e6 / one.postgres_us),
        ("the log of PostgreSQL on its disk", POSTGRES_LOG_BYTES / one.log_bytes_per_run),
    ];
    limits.sort_by(|one, other| one.1.total_cmp(&other.1));
    limits
}

/// Renders the page.
pub(crate) fn render(root: &Path) -> Result<String, String> {
    let figures = ScaleFigures::read(root)?;
    let rounds = [figures.mean(0, 48)?, figures.mean(1, 16)?, figures.mean(1, 48)?, figures.mean(3, 48)?];
    let [_, few, many, three] = &rounds;
    let audit = AuditCost::of(few, many);
    let mut page = HEAD.to_owned();
    measured(&mut page, &figures, &rounds);
    checked(&mut page, audit, predicted(audit, few, figures.cores, 3.0, 48.0), three);
    filled(&mut page, many, audit);
    grown(&mut page, many, audit);
    page.push_str(TAIL);
    Ok(page)
}

fn measured(page: &mut String, figures: &ScaleFigures, rounds: &[ScaleRound; 4]) {
    let _ = writeln!(
        page,
        "\n## What was measured\n\nClients ask without a pause, for {} seconds each time, on a machine with {} processors, which the clients, a model that \
         answers at once, PostgreSQL (with `fsync`) and Redis share with the servers. Time is that of the processors for one run.\n\n\
         | | no state, 48 clients | one server, 16 clients | one server, 48 clients | three servers, 48 clients |\n|---|---|---|---|---|",
        figures.seconds, figures.cores
    );
    let mut row = |name: &str, of: &dyn Fn(&ScaleRound) -> String| {
        let cells: Vec<String> = rounds.iter().map(of).collect();
        let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
    };
    row("runs a second", &|round| thousands(round.runs_per_second));
    row("`cogn serve`", &|round| micros(round.server_us));
    row("PostgreSQL", &|round| micros(round.postgres_us));
    row("Redis", &|round| micros(round.redis_us));
    row("clients and model", &|round| micros(round.around_us));
    row("median, 99 % of the answers within", &|round| {
        format!("{:.0} ms, {:.0} ms", round.p50_ms, round.p99_ms)
    });
    row("records of a run", &|round| format!("{:.1}", round.records_per_run));
    row("transactions of a run", &|round| format!("{:.2}", round.commits_per_run));
    row("bytes that a run leaves in PostgreSQL", &|round| thousands(round.table_bytes_per_run));
    row("bytes that it writes into the log of PostgreSQL", &|round| thousands(round.log_bytes_per_run));
}

fn checked(page: &mut String, audit: AuditCost, predicted: f64, three: &ScaleRound) {
    let off = (predicted / three.runs_per_second - 1.0) * 100.0;
    let _ = writeln!(
        page,
        "\n## Is it right?\n\nA run waits until the record of its call is on the disk of PostgreSQL, and transactions of the audit come one after the other. From \
         the two columns of one server, such a transaction takes {:.1} ms and {:.2} ms for each record in it, and has {:.1} records for each client of its server. So \
         three servers with sixteen clients each should make {} runs a second. They made {}: the prediction is {off:+.0} % off, and the tests fail if that is more than \
         20 %.",
        audit.transaction * 1e3,
        audit.record * 1e3,
        audit.records_per_client,
        thousands(predicted),
        thousands(three.runs_per_second)
    );
}

fn filled(page: &mut String, one: &ScaleRound, audit: AuditCost) {
    let _ = writeln!(
        page,
        "\n## What is full first\n\nIn one group of servers with one PostgreSQL ({POSTGRES_CORES} processors, {} MB a second on its disk) and one Redis, if nothing is busier than {:.0} %:\n\n\
         | | is full at runs a second |\n|---|---|",
        POSTGRES_LOG_BYTES / 1e6,
        FULL * 100.0
    );
    for (name, runs) in limits(one, audit) {
        let _ = writeln!(page, "| {name} | {} |", thousands(runs));
    }
}

fn grown(page: &mut String, one: &ScaleRound, audit: AuditCost) {
    let _ = writeln!(
        page,
        "\n## What a load needs\n\nA model takes {MODEL_SECONDS} s for an answer of {TOKENS} tokens at ${DOLLARS_PER_MILLION_TOKENS:.2} a million, a processor costs ${DOLLARS_PER_CORE_HOUR} an hour and a \
         gigabyte ${DOLLARS_PER_GIGABYTE_MONTH:.2} a month, and records are kept for {KEPT_DAYS} days. A cell is a group of servers with a PostgreSQL and a Redis of its own.\n\n\
         | runs a second | runs at once | processors: servers | PostgreSQL | Redis | log | records | cells | machines a month | the model a month |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    for runs in [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0] {
        let needs = needs(one, audit, runs);
        let _ = writeln!(
            page,
            "| {} | {} | {:.1} | {:.1} | {:.1} | {:.1} MB/s | {:.1} TB | {} | ${} | ${} |",
            thousands(runs),
            thousands(needs.open_runs),
            needs.server_cores,
            needs.postgres_cores,
            needs.redis_cores,
            needs.log_bytes / 1e6,
            needs.kept_bytes / 1e12,
            needs.cells,
            thousands(needs.dollars_per_month),
            thousands(needs.model_dollars_per_month)
        );
    }
}

fn micros(figure: f64) -> String {
    format!("{figure:.0} µs")
}

/// A whole number with a comma between thousands.
fn thousands(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const HEAD: &str = "# How far it reaches

Generated by `cargo xtask generate` (`xtask/src/scale_page.rs`) from `docs/scale.json`; the tests fail while it is stale. The figures come from

```sh
CARGO_PROFILE_BENCH_LTO=off cargo bench -p cogn-cli --bench several_servers -- 10 docs/scale.json
```

Measure on your own machine before you buy one.
";

const TAIL: &str = "
## Bottleneck by bottleneck

1. **The model.** It costs more than all the rest together, by orders of magnitude, and takes seconds where a run takes microseconds. What helps is to ask it less: a
   [ladder](ladder.md), kept answers ([context](context.md)), `dedupe` in [batches](batch.md), the prompt caches of the services ([cost](cost.md)).
2. **Servers.** They have no state ([several servers](shared-state.md)): add them until the processors suffice. A run that waits for its model holds memory, no thread.
3. **The audit.** One transaction at a time extends the chains of records, so that one that vanished is missed. Servers write what has gathered, up to 256 records at once, so
   more load makes transactions larger and not more; more servers make them smaller, which is why three servers do less here than one with as many clients. Where that is
   full, begin a cell; what need not be recorded runs with `--no-audit` and knows no such limit.
4. **PostgreSQL.** Each run leaves its records. When its processors or its disk are full, keep less (`audit: {keep: …}`, no payloads), or begin a cell.
5. **Redis.** One command per run, and what streams send. It works on one processor; when that is full, begin a cell.
6. **Cells.** Give each client a cell, by its key or its name, in the load balancer. Nothing is shared between cells: limits, records and reviews are those of the client's
   cell, and a cell that is lost is lost for its clients alone. So the load that many cells take together has no limit of ours.

## What this leaves out

Networks, streams (each piece of a stream goes through Redis), payloads in the audit, media and context cost more than what was measured here, and so does an owner whose
records have reached their limit: each new record then removes an old one, with two more statements in the same transaction. Clients and model run on the
same processors here, and elsewhere do not: the columns of `cogn serve`, PostgreSQL and Redis are what counts for your machines. Nobody has run more than three servers.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn three_servers_do_what_one_says_they_will() {
        let figures = ScaleFigures::read(&root()).unwrap();
        let mean = |servers, connections| figures.mean(servers, connections).unwrap();
        let (few, many, three) = (mean(1, 16), mean(1, 48), mean(3, 48));
        let predicted = predicted(AuditCost::of(&few, &many), &few, figures.cores, 3.0, 48.0);
        let ratio = predicted / three.runs_per_second;
        assert!((0.8..=1.2).contains(&ratio), "{ratio}");
    }

    fn round(connections: u32, runs_per_second: f64, commits_per_run: f64) -> ScaleRound {
        ScaleRound {
            connections,
            runs_per_second,
            commits_per_run,
            records_per_run: 2.0,
            server_us: 600.0,
            postgres_us: 300.0,
            redis_us: 60.0,
            table_bytes_per_run: 1_000.0,
            log_bytes_per_run: 2_000.0,
            ..ScaleRound::default()
        }
    }

    #[test]
    fn what_transactions_take_is_found_again() {
        // Two milliseconds, and 0.1 ms per record: 4 ms for 20 records, 10 ms for 80.
        let (few, many) = (round(20, 2_500.0, 0.1), round(80, 4_000.0, 0.025));
        let audit = AuditCost::of(&few, &many);
        assert!((audit.transaction - 2e-3).abs() < 1e-9 && (audit.record - 1e-4).abs() < 1e-9, "{audit:?}");
        assert!((audit.runs(20.0) - 2_500.0).abs() < 1e-6 && (audit.runs(80.0) - 4_000.0).abs() < 1e-6);
        // Three servers with sixty clients have transactions like one server with twenty.
        assert!((predicted(audit, &few, 100.0, 3.0, 60.0) - 2_500.0).abs() < 1e-6);
        assert!((predicted(audit, &few, 0.96, 3.0, 60.0) - 1_000.0).abs() < 1e-6, "the processors are full");
    }

    #[test]
    fn a_load_that_is_ten_times_as_large_needs_ten_times_as_much() {
        let one = round(80, 4_000.0, 0.025);
        // As if the audit took no time.
        let audit =
            AuditCost { transaction: 0.0, record: 1e-9, records_per_client: 1.0, records_per_run: 2.0 };
        let (small, large) = (needs(&one, audit, 1_000.0), needs(&one, audit, 10_000.0));
        assert!((small.server_cores - 1.0).abs() < 1e-9 && (large.server_cores - 10.0).abs() < 1e-9);
        assert!((small.open_runs - 3_000.0).abs() < 1e-9);
        assert!((small.kept_bytes - 2.592e12).abs() < 1.0);
        let cells = |audit, runs| format!("{}", needs(&one, audit, runs).cells);
        assert_eq!(
            [1_000.0, 10_000.0, 20_000.0].map(|runs| cells(audit, runs)),
            ["1", "1", "2"],
            "Redis is full"
        );
        let slow = AuditCost { record: 1e-3, ..audit };
        assert_eq!(cells(slow, 3_000.0), "10", "the audit is full");
        let first = |audit| limits(&one, audit).first().map(|(name, _)| *name);
        assert!(
            first(audit).unwrap().starts_with("one processor")
                && first(slow).unwrap().starts_with("the audit")
        );
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }
}
