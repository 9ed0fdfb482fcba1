//! Benchmarks for opening the store, writing records and running queries. The baselines run with them: creating an
//! empty file, and appending a line of the same length to a plain file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark may panic")]

use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::SystemTime;

use cognitive_contract::Envelope;
use cognitive_contract::context::{ContextEntry, ContextFilter, ContextScope, Key, Owner, Ttl};
use cognitive_contract::ports::{AuditLog, AuditRecord, ContextStore};
use cognitive_ports::archive::{RunArchive, RunFilter};
use cognitive_store::{AuditArchive, Background, Filter, Retention, Store, StoreOptions};
use cognitive_testkit::MemoryContext;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::json;

fn record(number: usize) -> AuditRecord {
    let answer = json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "Done" },
        "data": { "rationale": "It was easy." }
    });
    let envelope = Envelope::from_value(answer).unwrap();
    let trace = format!("{number:08x}-0000-4000-8000-000000000000");
    let mut record = AuditRecord::new(SystemTime::now(), &trace, "code-reviewer", &envelope);
    "openai/gpt-5".clone_into(&mut record.model);
    record.receipt = json!({ "attempts": [{ "outcome": "ok", "elapsed_ms": 812 }], "sha256": { "input": "a".repeat(64),
        "prompt": "b".repeat(64), "reply": "c".repeat(64), "module": "d".repeat(64), "schema": "e".repeat(64) } });
    record
}

fn bench(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let options = StoreOptions {
        retention: Retention { records: 20_000, ..Retention::default() },
        ..StoreOptions::default()
    };
    let store = Store::open_with(&path, options).unwrap();
    for number in 0..20_000 {
        store.record(&record(number)).unwrap();
    }
    drop(store);

    let mut group = criterion.benchmark_group("store");
    group.sample_size(20);
    group.bench_function("baseline: create and remove an empty file", |bencher| {
        let file = dir.path().join("empty");
        bencher.iter(|| {
            fs::write(&file, "").unwrap();
            fs::remove_file(&file).unwrap();
        });
    });
    group.bench_function("open a new store", |bencher| {
        bencher.iter_batched(
            || tempfile::tempdir().unwrap(),
            |dir| (Store::open(&dir.path().join("new.db")).unwrap(), dir),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("open, 20,000 records there, and close", |bencher| {
        bencher.iter(|| drop(Store::open(black_box(&path)).unwrap()));
    });
    group.bench_function("open, keep one record, close: what one `cogn run` pays", |bencher| {
        bencher.iter(|| Store::open_with(&path, options).unwrap().record(&record(1)).unwrap());
    });

    let mut plain = OpenOptions::new().append(true).create(true).open(dir.path().join("plain")).unwrap();
    let line = [b'x'; 800];
    group.bench_function("baseline: append a line to a file", |bencher| {
        bencher.iter(|| plain.write_all(black_box(&line)).unwrap());
    });
    let store = Store::open_with(&path, options).unwrap();
    let mut number = 20_000;
    group.bench_function("keep a record and remove the oldest", |bencher| {
        bencher.iter(|| {
            number += 1;
            store.record(&record(number)).unwrap();
        });
    });
    group.bench_function("list the newest 20 of 20,000", |bencher| {
        let filter = Filter { limit: Some(20), ..Filter::default() };
        bencher.iter(|| store.list(&filter).unwrap());
    });
    group.bench_function("list those of a module that does not exist", |bencher| {
        let filter = Filter { module: Some("none".to_owned()), ..Filter::default() };
        bencher.iter(|| store.list(&filter).unwrap());
    });
    group.bench_function("find one by its trace id", |bencher| {
        bencher.iter(|| store.find("00004e0").unwrap());
    });
    group.bench_function("sum up 20,000 records", |bencher| {
        bencher.iter(|| store.stats(&Filter::default()).unwrap());
    });
    group.bench_function("verify 20,000 records", |bencher| {
        bencher.iter(|| assert!(store.verify(&[]).unwrap().is_whole()));
    });
    calls(&mut group, store);
    context(&mut group);
    group.finish();
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Measures the write that a model call waits for: on the command line, and in a server, alone and with concurrent
/// calls.
fn calls(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>, store: Store) {
    let call = AuditRecord::call(SystemTime::now(), "trace", "code-reviewer", json!({ "attempt": 1 }));
    let store = Arc::new(store);
    group.bench_function("record a call before it leaves, on the command line", |bencher| {
        bencher.iter(|| wait(store.commit(call.clone())).unwrap());
    });
    let background = Background::new(store, |reason| panic!("{reason}")).unwrap();
    for many in [1, 64] {
        group.bench_function(format!("record {many} calls that leave at once, in a server"), |bencher| {
            bencher.iter(|| {
                let waiting: Vec<_> = (0..many).map(|_| background.commit(call.clone())).collect();
                for one in waiting {
                    wait(one).unwrap();
                }
            });
        });
    }
}

/// Measures context, with the most entries of 1 KiB that are ever stored.
fn context(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("context.db")).unwrap();
    let now = SystemTime::now();
    let owner = Owner::user(Some("ann"));
    let entry = |number: usize| {
        let key =
            Key { session: Some(format!("s{number}")), ..Key::plain(&format!("m:s{number}:session_state")) };
        ContextEntry::new("session_state", key, json!("x".repeat(1_000)), Ttl::Seconds(3_600), now)
    };
    for number in 0..1_000 {
        store.put(&owner, &entry(number), now).unwrap();
    }
    let mut number = 1_000;
    group.bench_function("keep context and remove the oldest of 1,000", |bencher| {
        bencher.iter(|| {
            number += 1;
            store.put(&owner, &entry(number), now).unwrap();
        });
    });
    let session = format!("s{number}");
    let from = ContextScope { session: Some(&session), input_hash: None };
    let filter = ContextFilter { kind: Some("session_state"), from: Some(from) };
    group.bench_function("find the state of one session of 1,000", |bencher| {
        bencher.iter(|| assert_eq!(ContextStore::list(&store, &owner, filter, now).unwrap().len(), 1));
    });
    let memory = MemoryContext::default();
    group.bench_function("keep context in memory", |bencher| {
        bencher.iter(|| {
            number += 1;
            memory.put(&owner, &entry(number), now).unwrap();
        });
    });
}

/// Measures the queries of a page on 10,000 runs, each with a call, a receipt and a payload.
fn bench_archive(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&dir.path().join("store.db")).unwrap());
    let records: Vec<AuditRecord> = (0..10_000)
        .flat_map(|number| {
            let mut run = record(number);
            run.run_id = format!("{number:032x}");
            run.receipt = json!({ "padding": "x".repeat(2_000), "usage": { "cost": 0.001 } });
            run.payload = Some(json!({ "input": "x".repeat(2_000), "envelope": {} }));
            let mut call = AuditRecord::call(run.at, &run.trace_id, "code-reviewer", json!({ "attempt": 1 }));
            call.run_id.clone_from(&run.run_id);
            [call, run]
        })
        .collect();
    for batch in records.chunks(500) {
        store.record_all(batch).into_iter().for_each(|kept| kept.unwrap());
    }
    let archive = AuditArchive::new(Arc::clone(&store));
    let mut group = criterion.benchmark_group("archive of 10,000 runs");
    group.sample_size(20);
    group.bench_function("baseline: read every record", |bencher| {
        bencher.iter(|| store.list(&Filter::default()).unwrap().len());
    });
    let newest = RunFilter::default();
    let rare = RunFilter { code: Some("E2003".to_owned()), ..RunFilter::default() };
    for (name, filter) in [("the newest 50", &newest), ("a filter that nothing passes", &rare)] {
        group.bench_function(name, |bencher| bencher.iter(|| archive.runs(black_box(filter)).unwrap()));
    }
    group.bench_function("figures in 48 parts", |bencher| {
        bencher.iter(|| archive.stats(black_box(&newest), 48).unwrap());
    });
    group.bench_function("one run", |bencher| {
        let id = format!("{:032x}", 5_000);
        bencher.iter(|| archive.run(black_box(&id), None).unwrap().unwrap());
    });
    group.finish();
}

criterion_group!(benches, bench, bench_archive);
criterion_main!(benches);
