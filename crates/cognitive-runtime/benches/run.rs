//! Measures the overhead of a run without the model: input, prompt, parsing, judging, hashing, sealing. Baseline, in
//! the same run: bare `serde_json` parse plus bare `jsonschema` validation of the same 4 KB reply.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark may panic")]

use std::hint::black_box;
use std::sync::Arc;

use cognitive_contract::ports::NullSink;
use cognitive_contract::{Envelope, Module};
use cognitive_runtime::{Host, Replay, RunRequest, run};
use cognitive_testkit::{LoadedModule, loaded_module, poll_now};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "input": { "type": "object", "required": ["code"], "properties": { "code": { "type": "string" } } },
        "data": {
            "type": "object", "required": ["rationale", "changes"],
            "properties": {
                "rationale": { "type": "string", "minLength": 1 },
                "changes": { "type": "array", "items": {
                    "type": "object", "required": ["type", "description", "risk"],
                    "properties": {
                        "type": { "enum": ["remove_redundancy", "simplify_logic", "other"] },
                        "description": { "type": "string" },
                        "risk": { "enum": ["none", "low", "medium", "high"] },
                    },
                } },
            },
        },
    })
}

fn reply() -> String {
    let sentence = "The branch was folded into one expression, because both arms returned the same value.";
    let changes: Vec<Value> = (0..26)
        .map(
            |n| json!({ "type": "simplify_logic", "description": format!("{n}: {sentence}"), "risk": "low" }),
        )
        .collect();
    let data = json!({ "rationale": "Each change keeps the behaviour. ".repeat(10), "changes": changes });
    json!({ "ok": true, "meta": { "confidence": 0.91, "risk": "low", "explain": "Local changes." }, "data": data }).to_string()
}

fn once(host: &Host) -> Envelope {
    let request = RunRequest::new("m", json!({ "code": "if a { b } else { b }" }));
    poll_now(run(host, request, &mut NullSink))
}

fn module() -> Arc<Module> {
    let manifest = json!({ "name": "m", "version": "1.0.0", "tier": "decision" });
    loaded_module(&manifest, &schema(), "Simplify the code. Answer in the envelope.")
}

fn bench(criterion: &mut Criterion) {
    let module = module();
    let reply = reply();
    assert!((3_500..5_500).contains(&reply.len()), "{} bytes", reply.len());
    let host = Host::new(Arc::new(LoadedModule(Arc::clone(&module))), Arc::new(Replay::text(reply.clone())));
    assert!(once(&host).ok());
    let mut group = criterion.benchmark_group("run with a 4 KB reply");
    group.bench_function("baseline: bare parse and bare validation", |bencher| {
        bencher.iter(|| {
            let value: Value = serde_json::from_str(black_box(&reply)).unwrap();
            module.contract.data().accepts(&value["data"])
        });
    });
    group.bench_function("a whole run, model not counted", |bencher| bencher.iter(|| once(black_box(&host))));
    group.finish();
}

/// Ten times the text takes about ten times the time, clean or broken.
fn linear(criterion: &mut Criterion) {
    let envelope = |size: usize| {
        let rationale = "word ".repeat(size / 5);
        let data = json!({ "rationale": rationale, "changes": [] });
        json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": data })
            .to_string()
    };
    let listed = |size: usize| {
        let change = json!({ "type": "other", "description": "Two words, then three.", "risk": "none" });
        let changes = vec![change.clone(); size / change.to_string().len()];
        let data = json!({ "rationale": "r", "changes": changes });
        json!({ "ok": true, "data": data, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" } })
            .to_string()
    };
    let mut group = criterion.benchmark_group("linear in the reply");
    group.sample_size(20);
    let module = module();
    for size in [40_000, 400_000] {
        let clean = envelope(size);
        let slip = clean.replacen("\"changes\":[]", "\"changes\":[],", 1);
        let cut = clean.get(..clean.len() - 40).unwrap_or_default().to_owned();
        let many = listed(size);
        let many_slips = many.replace("\"none\"}", "\"none\",}");
        for (name, text) in [
            ("clean", clean),
            ("a trailing comma", slip),
            ("cut off", cut),
            ("braces", "{".repeat(size)),
            ("many members", many),
            ("many members, each with a trailing comma", many_slips),
        ] {
            let host = Host::new(Arc::new(LoadedModule(Arc::clone(&module))), Arc::new(Replay::text(text)));
            group.bench_function(format!("{name}, {} KB", size / 1_000), |bencher| {
                bencher.iter(|| once(&host));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench, linear);
criterion_main!(benches);
