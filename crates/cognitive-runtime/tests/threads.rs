//! Compositions wait for their parts without threads: a hundred concurrent ones, each with four parts that wait for a
//! model, start no thread. In a separate file, because other tests start threads.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod timer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, ModuleSource, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_library::{Folder, ModuleLoadError, load};
use cognitive_runtime::{Host, RunRequest, run};
use serde_json::{Value, json};
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

struct Model(Arc<Gate>);

impl Provider for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            if self.0.waiting.fetch_add(1, Ordering::Relaxed) + 1 == RUNS * PARTS.len() {
                self.0.all_wait.notify_one();
            }
            let _opened = self.0.opened.acquire().await;
            sink.piece(
                r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"r"}}"#,
            );
            Ok(ModelEnd::complete("m", DecodeMode::Prompt))
        })
    }
}

struct Modules(BTreeMap<String, Arc<Module>>);

impl ModuleSource for Modules {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.0.get(name).cloned().ok_or_else(|| Failure::new(ErrorCode::ModuleNotFound, name))
    }
}

fn module(name: &str, mut manifest: Value) -> (String, Arc<Module>) {
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
    manifest["name"] = json!(name);
    let files = BTreeMap::from([
        ("module.yaml".to_owned(), manifest.to_string().into_bytes()),
        ("schema.json".to_owned(), schema.to_string().into_bytes()),
        ("prompt.md".to_owned(), b"Do it.".to_vec()),
    ]);
    let module = load(&Folder::memory(name, files)).map_err(ModuleLoadError::into_failure);
    (name.to_owned(), Arc::new(module.unwrap()))
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
    let parts = PARTS.map(|name| module(name, json!({})));
    let modules = parts.into_iter().chain([module("whole", json!({ "composition": composition }))]).collect();
    let gate =
        Arc::new(Gate { waiting: AtomicUsize::new(0), all_wait: Notify::new(), opened: Semaphore::new(0) });
    let mut host = Host::new(Arc::new(Modules(modules)), Arc::new(Model(Arc::clone(&gate))));
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
