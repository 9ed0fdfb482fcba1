//! Compositions wait for their parts without threads: a hundred concurrent ones, each with four parts that wait for a
//! model, start no thread. In a separate file, because other tests start threads.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod timer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_contract::ports::NullSink;
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_testkit::{FakeProvider, NamedModules, complete, good_answer, open_schema};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use crate::timer::{TokioTimer, block_on};

const RUNS: usize = 100;
const PARTS: [&str; 4] = ["a", "b", "c", "d"];

/// Answers only once all calls of all runs wait.
struct Gate {
    waiting: AtomicUsize,
    all_wait: Notify,
    opened: Semaphore,
}

fn model(gate: &Arc<Gate>) -> FakeProvider {
    let gate = Arc::clone(gate);
    FakeProvider::from_future(move |_, sink| {
        let gate = Arc::clone(&gate);
        Box::pin(async move {
            if gate.waiting.fetch_add(1, Ordering::Relaxed) + 1 == RUNS * PARTS.len() {
                gate.all_wait.notify_one();
            }
            let _opened = gate.opened.acquire().await;
            sink.piece(&good_answer(&json!({ "rationale": "r" })).to_string());
            Ok(complete())
        })
    })
}

/// The number of threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn a_hundred_compositions_start_no_thread() {
    block_on(a_hundred_compositions());
}

async fn a_hundred_compositions() {
    let requires = PARTS.map(|name| json!({ "name": name, "timeout_ms": 60_000 }));
    let dataflow = json!([{ "from": PARTS, "to": "output", "aggregate": "array" }]);
    let composition = json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow });
    let whole = json!({ "composition": composition });
    let modules = NamedModules::default().with("whole", whole, &open_schema(), "Do it.");
    let modules = PARTS.iter().fold(modules, |all, name| all.with(name, json!({}), &open_schema(), "Do it."));
    let gate =
        Arc::new(Gate { waiting: AtomicUsize::new(0), all_wait: Notify::new(), opened: Semaphore::new(0) });
    let mut host = Host::new(Arc::new(modules), Arc::new(model(&gate)));
    host.timer = Some(Arc::new(TokioTimer));
    let host = Arc::new(host);
    let before = threads();
    let runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let host = Arc::clone(&host);
            tokio::spawn(async move { run(&host, RunRequest::new("whole", json!({})), &mut NullSink).await })
        })
        .collect();
    gate.all_wait.notified().await;
    assert_eq!(threads(), before, "while {} parts wait for the model", RUNS * PARTS.len());
    gate.opened.add_permits(RUNS * PARTS.len());
    for run in runs {
        assert!(run.await.unwrap().ok());
    }
}
