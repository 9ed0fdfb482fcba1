//! Tests whole batches in one process, with a scripted model: every row is answered once, across
//! interruptions.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cognitive_batch::{
    AnswerTarget, BatchLimits, BatchPlan, BatchStop, BatchSummary, RowFile, RowFormat, RowMapping, StopHandle,
};
use cognitive_contract::Failure;
use cognitive_contract::money::Money;
use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Destination, FailedTry, FailureKind, ModelCall, ModelEnd, PortFuture,
    Provider, ProviderError, Usage,
};
use cognitive_library::Library;
use cognitive_runtime::{Host, RunOptions};
use cognitive_testkit::PATIENCE;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The rows of a test that run at once.
const CONCURRENCY: usize = 8;

/// A model that answers immediately. A text with `busy` is refused twice, one with `locked out` always.
struct StubModel {
    calls: AtomicU64,
    open: AtomicU64,
    most: AtomicU64,
    seen: Mutex<BTreeMap<String, u64>>,
    /// Stops the batch after this many calls.
    stop_after: Option<(u64, StopHandle)>,
    /// The model: the usual one, or one that thinks without being asked.
    model: &'static str,
    /// Open until as many rows are in flight as the batch allows. No row ends before.
    meeting: Option<Semaphore>,
}

impl Default for StubModel {
    fn default() -> Self {
        let (calls, open, most, seen) = Default::default();
        Self { calls, open, most, seen, stop_after: None, model: "gpt-4.1-mini", meeting: None }
    }
}

impl StubModel {
    /// Waits until all rows are in flight, or for the deadline of a test. Afterwards, no row waits any more.
    async fn meet(&self) {
        let Some(meeting) = &self.meeting else { return };
        if self.most.load(Ordering::SeqCst) < CONCURRENCY as u64 {
            let _met_or_too_late = timeout(PATIENCE, meeting.acquire()).await;
        }
        meeting.close();
    }
}

impl Provider for StubModel {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn destination(&self) -> Option<Destination> {
        Some(Destination { model: Some(self.model.to_owned()), address: None })
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(open, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.meet().await;
            self.open.fetch_sub(1, Ordering::SeqCst);
            let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
            if let Some((_, stop)) = self.stop_after.as_ref().filter(|(after, _)| calls >= *after) {
                stop.stop();
            }
            let times = {
                let mut seen = self.seen.lock().unwrap();
                let times = seen.entry(call.input.clone()).or_default();
                *times += 1;
                *times
            };
            let mut refused = |kind, status, error| {
                let mut attempt = Attempt::new(DecodeMode::Prompt, "refused", Duration::ZERO);
                attempt.status = Some(status);
                attempt.failed = Some(FailedTry::new(kind));
                sink.attempt(attempt);
                Err(error)
            };
            if call.input.contains("locked out") {
                return refused(
                    FailureKind::Auth,
                    401,
                    ProviderError::Misconfigured("who are you".to_owned()),
                );
            }
            if call.input.contains("busy") && times < 3 {
                let error = ProviderError::RateLimited { retry_after: Some(Duration::ZERO) };
                return refused(FailureKind::RateLimit, 429, error);
            }
            let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
            let data = json!({ "rationale": "r", "sentiment": "positive", "label": "x" });
            sink.piece(&json!({ "ok": true, "meta": meta, "data": data }).to_string());
            let mut end = ModelEnd::complete(self.model, DecodeMode::Prompt);
            end.usage = Some(Usage::new(100, 20));
            Ok(end)
        })
    }
}

/// A folder with rows, and the settings of a batch over them.
struct Bench {
    dir: tempfile::TempDir,
    stub_model: Arc<StubModel>,
    stop: StopHandle,
    rows: PathBuf,
    output: PathBuf,
}

impl Bench {
    fn new(name: &str, rows: &str) -> Self {
        Self::with_stub_model(name, rows, StubModel::default(), StopHandle::default())
    }

    fn with_stub_model(name: &str, rows: &str, stub_model: StubModel, stop: StopHandle) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (path, output) = (dir.path().join(name), dir.path().join("out.jsonl"));
        std::fs::write(&path, rows).unwrap();
        Self { dir, stub_model: Arc::new(stub_model), stop, rows: path, output }
    }

    fn plan(&self) -> BatchPlan {
        let host = Host::new(Arc::new(Library::default()), Arc::clone(&self.stub_model) as Arc<dyn Provider>);
        let module = host.modules.module("text-classifier").unwrap();
        BatchPlan {
            name: "text-classifier".to_owned(),
            module,
            host,
            options: RunOptions::default(),
            rows: RowFile { path: self.rows.clone(), format: RowFormat::from_path(&self.rows).unwrap() },
            mapping: RowMapping::default(),
            target: AnswerTarget {
                path: self.output.clone(),
                format: RowFormat::from_path(&self.output).unwrap(),
                failed: None,
                ordered: false,
                with_input: false,
            },
            limits: BatchLimits {
                concurrency: CONCURRENCY,
                max_cost: None,
                max_tokens: None,
                max_time: None,
                retries: 2,
            },
            dedupe: true,
            restart: false,
            posts: None,
        }
    }

    fn run(&self, plan: BatchPlan) -> Result<BatchSummary, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(cognitive_batch::run(plan, &self.stop, |_| {}))
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("out.jsonl.cogn-batch")
    }
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row_numbers(lines: &[Value]) -> Vec<u64> {
    let mut rows: Vec<u64> = lines.iter().map(|line| line["row"].as_u64().unwrap()).collect();
    rows.sort_unstable();
    rows
}

fn lines_of(rows: impl Iterator<Item = Value>) -> String {
    rows.map(|row| row.to_string()).collect::<Vec<_>>().join("\n") + "\n"
}

fn texts(count: usize) -> String {
    lines_of((0..count).map(|number| json!({ "text": format!("The train is late: {number}") })))
}

#[test]
fn every_row_has_one_line_also_those_that_cannot_run() {
    let rows = "{\"text\": \"a\", \"n\": 7}\nno json\n{\"txt\": 1}\n\n{\"text\": \"b\", \"n\": 8}\n";
    let bench = Bench::new("rows.jsonl", rows);
    let mut plan = bench.plan();
    plan.mapping.id = Some("n".to_owned());
    plan.target.ordered = true;
    plan.target.with_input = true;
    let summary = bench.run(plan).unwrap();
    assert_eq!((summary.stopped, summary.rows, summary.left), (BatchStop::Finished, 4, 0));
    assert_eq!((summary.counts.ok, summary.counts.failed), (2, 2));
    assert_eq!((summary.counts.tokens, bench.stub_model.calls.load(Ordering::SeqCst)), (240, 2));
    let lines = lines(&bench.output);
    assert_eq!(lines.iter().map(|line| &line["row"]).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((&lines[0]["id"], &lines[0]["input"]), (&json!(7), &json!({ "text": "a" })));
    assert_eq!(lines[0]["envelope"]["data"]["label"], "x");
    assert_eq!(lines[1]["envelope"]["ok"], false);
    assert_eq!(lines[2]["envelope"]["error"]["code"], "E1001");
    assert_eq!(lines[3]["input_hash"].as_str().unwrap().len(), 64);
    assert!(!bench.state().exists(), "nothing is left beside a finished output");
}

#[test]
fn equal_inputs_are_asked_once_whatever_the_order_of_their_members() {
    let rows = "{\"text\": \"a\", \"labels\": [\"x\", \"y\"]}\n".repeat(50)
        + &"{\"labels\": [\"x\", \"y\"], \"text\": \"a\"}\n".repeat(50);
    let bench = Bench::new("rows.jsonl", &rows);
    let summary = bench.run(bench.plan()).unwrap();
    assert_eq!((summary.counts.answered, summary.counts.duplicates), (100, 99));
    assert_eq!((bench.stub_model.calls.load(Ordering::SeqCst), summary.counts.tokens), (1, 120));
    let lines = lines(&bench.output);
    assert_eq!(row_numbers(&lines), (0..100).collect::<Vec<_>>());
    let copies = lines.iter().filter(|line| line["duplicate_of"] == json!(0)).count();
    assert_eq!(
        (copies, lines.iter().filter(|line| line["envelope"]["ok"] == json!(true)).count()),
        (99, 100)
    );
    let every = Bench::new("rows.jsonl", &rows);
    let plan = BatchPlan { dedupe: false, ..every.plan() };
    every.run(plan).unwrap();
    assert_eq!(every.stub_model.calls.load(Ordering::SeqCst), 100);
}

#[test]
fn a_batch_that_was_stopped_goes_on_and_asks_nothing_twice() {
    let stop = StopHandle::default();
    let stub_model = StubModel { stop_after: Some((40, stop.clone())), ..StubModel::default() };
    let bench = Bench::with_stub_model("rows.jsonl", &texts(4000), stub_model, stop);
    let first = bench.run(bench.plan()).unwrap();
    assert_eq!(first.stopped, BatchStop::Interrupted);
    assert!(first.left > 0 && first.counts.answered >= 40, "{first:?}");
    assert!(bench.state().exists());
    // A torn line, as a kill leaves it.
    let mut torn = std::fs::read(&bench.output).unwrap();
    torn.extend_from_slice(b"{\"row\":3999,\"input_ha");
    std::fs::write(&bench.output, torn).unwrap();
    let again = Bench { stop: StopHandle::default(), stub_model: Arc::new(StubModel::default()), ..bench };
    let second = again.run(again.plan()).unwrap();
    assert_eq!((second.stopped, second.resumed, second.counts.answered), (BatchStop::Finished, true, 4000));
    assert_eq!(again.stub_model.calls.load(Ordering::SeqCst), 4000 - first.counts.answered);
    assert_eq!(row_numbers(&lines(&again.output)), (0..4000).collect::<Vec<_>>());
}

#[test]
fn a_batch_goes_on_only_with_what_it_began_with_and_never_over_a_finished_output() {
    let stop = StopHandle::default();
    let stub_model = StubModel { stop_after: Some((5, stop.clone())), ..StubModel::default() };
    let bench = Bench::with_stub_model("rows.jsonl", &texts(2000), stub_model, stop);
    bench.run(bench.plan()).unwrap();
    let bench = Bench { stop: StopHandle::default(), stub_model: Arc::new(StubModel::default()), ..bench };
    let mut other = bench.plan();
    other.mapping.id = Some("text".to_owned());
    let refused = bench.run(other).unwrap_err();
    assert!(
        refused.message().contains("--map") && refused.suggestion().unwrap().contains("--restart"),
        "{refused:?}"
    );
    std::fs::write(&bench.rows, texts(3)).unwrap();
    let refused = bench.run(bench.plan()).unwrap_err();
    assert!(refused.message().contains("another file of rows"), "{refused:?}");
    let anew = bench.run(BatchPlan { restart: true, ..bench.plan() }).unwrap();
    assert_eq!((anew.counts.answered, anew.resumed), (3, false));
    let refused = bench.run(bench.plan()).unwrap_err();
    assert!(refused.message().contains("already exists"), "{refused:?}");
}

#[test]
fn what_may_pass_is_asked_again_at_the_end_and_fewer_go_on_at_once() {
    let rows = lines_of((0..30).map(|number| json!({ "text": format!("busy {number}") })));
    let bench = Bench::new("rows.jsonl", &(rows + &texts(100)));
    let summary = bench.run(bench.plan()).unwrap();
    assert_eq!((summary.stopped, summary.counts.ok, summary.counts.failed), (BatchStop::Finished, 130, 0));
    let once = Bench::new("rows.jsonl", "{\"text\": \"busy\"}\n{\"text\": \"b\"}\n");
    let mut plan = once.plan();
    plan.limits.retries = 0;
    plan.target.failed = Some(once.dir.path().join("failed.jsonl"));
    let summary = once.run(plan).unwrap();
    assert_eq!((summary.counts.ok, summary.counts.failed), (1, 1));
    let dead = lines(&once.dir.path().join("failed.jsonl"));
    assert_eq!((&dead[0]["row"], &dead[0]["envelope"]["error"]["code"]), (&json!(0), &json!("E4002")));
    assert_eq!(lines(&once.output).len(), 1);
}

#[test]
fn a_key_that_nobody_takes_stops_the_batch_and_no_row_is_lost_to_it() {
    let bench = Bench::new("rows.jsonl", &("{\"text\": \"locked out\"}\n".to_owned() + &texts(500)));
    let summary = bench.run(bench.plan()).unwrap();
    assert_eq!(summary.stopped, BatchStop::Provider);
    assert!(summary.reason.unwrap().contains("who are you"));
    assert!(summary.counts.failed == 0 && summary.left > 0);
}

#[test]
fn a_batch_costs_no_more_than_its_limit_and_uses_most_of_it() {
    let bench = Bench::new("rows.jsonl", &texts(3000));
    let limit = Money::parse("0.02").unwrap();
    let limited = |bench: &Bench, limit| {
        let mut plan = bench.plan();
        plan.limits.max_cost = Some(limit);
        plan
    };
    let summary = bench.run(limited(&bench, limit)).unwrap();
    assert_eq!(summary.stopped, BatchStop::MaxCost, "{summary:?}");
    assert!(
        summary.counts.cost <= limit && summary.counts.cost.times(10) > limit.times(8),
        "{:?}",
        summary.counts.cost
    );
    // The cost of earlier processes counts.
    let again = bench.run(limited(&bench, limit)).unwrap();
    assert_eq!((again.stopped, again.counts.answered), (BatchStop::MaxCost, summary.counts.answered));
    let more = bench.run(limited(&bench, limit.times(2))).unwrap();
    assert!(more.counts.cost <= limit.times(2) && more.counts.cost > limit, "{:?}", more.counts.cost);
    assert_eq!(lines(&bench.output).len() as u64, more.counts.answered);
}

// A model may think much and seldom does. Reservations for the longest thoughts would let one row run at a time. Rows
// that take an equal part of what is left would leave no place for the last one.
#[test]
fn a_limit_costs_a_batch_none_of_its_concurrency() {
    let most = |limit: Option<&str>| {
        let model =
            StubModel { model: "gpt-5.4-mini", meeting: Some(Semaphore::new(0)), ..StubModel::default() };
        let bench = Bench::with_stub_model("rows.jsonl", &texts(200), model, StopHandle::default());
        let mut plan = bench.plan();
        plan.limits.max_cost = limit.map(|limit| Money::parse(limit).unwrap());
        let summary = bench.run(plan).unwrap();
        assert_eq!((summary.counts.answered, summary.left), (200, 0), "{summary:?}");
        bench.stub_model.most.load(Ordering::SeqCst)
    };
    // The job costs 0.033 dollars.
    assert_eq!((most(None), most(Some("0.1"))), (CONCURRENCY as u64, CONCURRENCY as u64));
}

#[test]
fn a_batch_needs_no_more_tokens_than_its_limit() {
    let bench = Bench::new("rows.jsonl", &texts(3000));
    let mut plan = bench.plan();
    plan.limits.max_tokens = Some(20_000);
    let summary = bench.run(plan).unwrap();
    assert_eq!(summary.stopped, BatchStop::MaxTokens);
    assert!((15_000..=20_000).contains(&summary.counts.tokens), "{summary:?}");
}

#[test]
fn no_row_begins_after_its_time() {
    let bench = Bench::new("rows.jsonl", &texts(200_000));
    let mut plan = bench.plan();
    plan.limits.max_time = Some(Duration::ZERO);
    let summary = bench.run(plan).unwrap();
    assert_eq!(summary.stopped, BatchStop::MaxTime);
    assert!(summary.left > 0);
}

#[test]
fn two_processes_never_write_one_output() {
    let bench = Bench::new("rows.jsonl", &texts(10));
    std::fs::create_dir(bench.state()).unwrap();
    let held = std::fs::File::create(bench.state().join("lock")).unwrap();
    held.lock().unwrap();
    let refused = bench.run(bench.plan()).unwrap_err();
    assert!(refused.message().contains("another process"), "{refused:?}");
    drop(held);
    assert_eq!(bench.run(bench.plan()).unwrap().counts.ok, 10);
}

#[test]
fn cells_of_csv_are_what_the_contract_takes() {
    let rows = "key,body,tags\n1,12,\"[\"\"x\"\",\"\"y\"\"]\"\n2,\"two\nlines\",\n3,,\n4\n";
    let bench = Bench::new("rows.csv", rows);
    let mut plan = bench.plan();
    plan.mapping = RowMapping {
        id: Some("key".to_owned()),
        members: vec![("text".to_owned(), "body".to_owned()), ("labels".to_owned(), "tags".to_owned())],
        ..RowMapping::default()
    };
    plan.target.ordered = true;
    plan.target.with_input = true;
    bench.run(plan).unwrap();
    let lines = lines(&bench.output);
    assert_eq!(lines[0]["input"], json!({ "text": "12", "labels": ["x", "y"] }));
    assert_eq!((&lines[1]["input"], &lines[1]["id"]), (&json!({ "text": "two\nlines" }), &json!("2")));
    let codes: Vec<&Value> = lines.iter().map(|line| &line["envelope"]["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &Value::Null, &json!("E1001"), &json!("E1001")]);
}

#[cfg(feature = "parquet")]
#[test]
fn answers_of_parquet_can_be_rows_again() {
    let bench = Bench::new("rows.jsonl", "{\"text\": \"a\", \"n\": \"x\"}\n{\"text\": 7}\n");
    let output = bench.dir.path().join("out.parquet");
    let mut plan = bench.plan();
    plan.mapping.id = Some("n".to_owned());
    plan.target.path = output.clone();
    plan.target.format = RowFormat::Parquet;
    plan.target.ordered = true;
    assert_eq!(bench.run(plan).unwrap().counts.answered, 2);
    // The Parquet output is read back as rows: its members are unchanged.
    let mut plan = bench.plan();
    plan.rows = RowFile { path: output, format: RowFormat::Parquet };
    plan.mapping.members =
        vec![("text".to_owned(), "id".to_owned()), ("labels".to_owned(), "envelope".to_owned())];
    plan.target.with_input = true;
    plan.target.ordered = true;
    bench.run(plan).unwrap();
    let lines = lines(&bench.output);
    assert_eq!(lines[0]["input"]["text"], "x");
    let envelope = &lines[0]["input"]["labels"];
    assert_eq!((&envelope["ok"], &envelope["meta"]["confidence"]), (&json!(true), &json!(0.9)));
    assert_eq!(envelope["usage"]["total_tokens"], 120);
    assert!(envelope.get("error").is_none(), "{envelope}");
    let failed = &lines[1]["input"]["labels"];
    assert_eq!((&failed["ok"], &failed["error"]["code"]), (&json!(false), &json!("E1001")));
    assert!(failed["json"].as_str().unwrap().starts_with("{\"ok\":false"));
}

#[test]
fn a_look_asks_nobody_and_knows_the_most_that_it_can_cost() {
    let bench = Bench::new("rows.jsonl", &(texts(1500) + "{\"text\": 1}\n"));
    let plan = bench.plan();
    let found = cognitive_batch::estimate(&plan.rows, &plan.mapping, &plan.host, &plan.module, &plan.options)
        .unwrap();
    assert_eq!((found.rows, found.sampled, found.duplicates, found.refused), (1501, 1000, 0, 0));
    assert!(found.at_most > found.input_cost && found.input_cost > Some(Money::ZERO), "{found:?}");
    assert_eq!(bench.stub_model.calls.load(Ordering::SeqCst), 0);
}
