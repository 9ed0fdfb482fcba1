//! Measures the overhead of a composition without the model: the graph, the plan, the flow of data, and one run per
//! part. Baseline, in the same run: the same modules, each run alone. Prints one table, and fails if 50 parts take 5
//! ms or more, or if the cost per part grows with the number of parts. From 50 to 500, a quadratic cost would be ten
//! times as high per part. The comparison is direct and relative to the baseline of the same size: 500 modules do not
//! fit into the processor caches that hold 50.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic and print"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use std::time::Instant;

use cognitive_contract::Module;
use cognitive_contract::ports::NullSink;
use cognitive_runtime::compose::overview;
use cognitive_runtime::{Host, Replay, RunRequest, run};
use cognitive_testkit::{NamedModules, loaded_module, open_schema, poll_now};
use serde_json::{Value, json};

/// Every measured number of parts.
const SIZES: [usize; 6] = [10, 50, 100, 250, 500, 1_000];

fn module(name: &str, composition: Option<Value>, prompt: &str) -> Arc<Module> {
    let mut manifest = json!({ "name": name, "version": "1.0.0", "tier": "decision" });
    if let Some(composition) = composition {
        manifest["composition"] = composition;
    }
    loaded_module(&manifest, &open_schema(), &format!("Answer in the envelope.\n{prompt}"))
}

fn part(number: usize) -> String {
    format!("part-{number}")
}

/// Each part gets the result of the one before.
fn chain(size: usize) -> (Option<Value>, String) {
    let requires: Vec<Value> = (0..size).map(|number| json!({ "name": part(number) })).collect();
    let step = |number: usize| {
        json!({ "from": part(number - 1), "to": part(number), "mapping": { "n": "$.data.n", "sure": "$.meta.confidence" },
                "condition": "$.meta.confidence > 0.5 && exists($.data.n)" })
    };
    let last = json!({ "from": part(size - 1), "to": "output" });
    let dataflow: Vec<Value> = (1..size).map(step).chain([last]).collect();
    (Some(json!({ "requires": requires, "dataflow": dataflow })), String::new())
}

/// All parts get the input at once, and the answer is the list of their results.
fn fan(size: usize) -> (Option<Value>, String) {
    let names: Vec<String> = (0..size).map(part).collect();
    let requires: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    let dataflow = json!([{ "from": "input", "to": names, "mapping": { "text": "$.text" } },
                          { "from": names, "to": "output", "aggregate": "array" }]);
    (Some(json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow })), String::new())
}

/// Layers of ten, each fed by the whole layer before. Declared in reverse, so that no part is ready in declaration
/// order.
fn layers(size: usize) -> (Option<Value>, String) {
    let names: Vec<String> = (0..size).map(part).collect();
    let requires: Vec<Value> = names.iter().rev().map(|name| json!({ "name": name })).collect();
    let layers: Vec<&[String]> = names.chunks(10).collect();
    let between = layers.iter().zip(layers.iter().skip(1)).rev();
    let mut dataflow: Vec<Value> =
        between.map(|(from, to)| json!({ "from": from, "to": to, "aggregate": "merge" })).collect();
    dataflow.push(json!({ "from": layers.last().unwrap(), "to": "output", "aggregate": "merge" }));
    (Some(json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow })), String::new())
}

/// The prompt calls every part.
fn calls(size: usize) -> (Option<Value>, String) {
    let each = |number: usize| format!("@call:{}($INPUT) {{{{{}.data.n}}}}\n", part(number), part(number));
    (None, (0..size).map(each).collect())
}

/// The form of a composition of this size: its manifest, and the end of its prompt.
type Shape = fn(usize) -> (Option<Value>, String);

fn host(size: usize, shape: Shape) -> Host {
    let mut modules: BTreeMap<String, Arc<Module>> =
        (0..size).map(|number| (part(number), module(&part(number), None, ""))).collect();
    let (composition, prompt) = shape(size);
    modules.insert("main".to_owned(), module("main", composition, &prompt));
    let reply =
        r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"n":7,"rationale":"r"}}"#;
    Host::new(Arc::new(NamedModules(modules)), Arc::new(Replay::text(reply)))
}

fn once(host: &Host, module: &str) {
    let request = RunRequest::new(module, json!({ "text": "Some words." }));
    let envelope = poll_now(run(host, request, &mut NullSink));
    assert!(envelope.ok(), "{envelope:?}");
}

/// The processor time of this thread, without the load of other processes. Wall time where the system does not report
/// it.
fn worked(since: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64() * 1_000.0, |nanos| nanos as f64 / 1_000_000.0)
}

/// The mean time in milliseconds; the shorter a round, the more rounds.
fn mean(size: usize, mut work: impl FnMut()) -> f64 {
    let (rounds, since) = (20_000 / size, Instant::now());
    work();
    let before = worked(since);
    (0..rounds).for_each(|_| work());
    (worked(since) - before) / rounds as f64
}

fn main() {
    let shapes: [(&str, Shape); 4] = [("chain", chain), ("fan", fan), ("layers", layers), ("calls", calls)];
    println!(
        "{:8} {:>5} {:>10} {:>10} {:>12} {:>12} {:>6}",
        "shape", "parts", "plan", "whole", "per part", "alone", "ratio"
    );
    for (name, shape) in shapes {
        let mut costs = BTreeMap::new();
        for size in SIZES {
            let host = host(size, shape);
            let main = host.modules.module("main").unwrap();
            let plan = mean(size, || assert!(overview(host.modules.as_ref(), &main).is_ok()));
            let whole = mean(size, || once(&host, "main"));
            let names: Vec<String> = (0..size).map(part).collect();
            let alone = mean(size, || names.iter().for_each(|name| once(&host, name)));
            let each = |time: f64| time * 1_000.0 / size as f64;
            let (whole_each, alone_each) = (each(whole), each(alone));
            println!(
                "{name:8} {size:>5} {plan:>7.2} ms {whole:>7.2} ms {whole_each:>9.1} us {alone_each:>9.1} us {:>6.2}",
                whole / alone
            );
            assert!(size != 50 || whole < 5.0, "50 parts have to be done in 5 ms");
            costs.insert(size, (whole_each, whole / alone));
        }
        let ((few, few_ratio), (many, many_ratio)) = (costs[&50], costs[&500]);
        let (growth, beyond_alone) = (many / few, many_ratio / few_ratio);
        println!(
            "{name:8} a part of 500 costs {growth:.2} of a part of 50, {beyond_alone:.2} beside the parts alone"
        );
        assert!(growth < 2.5, "{name}: the cost of a part grows with their number");
        assert!(beyond_alone < 1.5, "{name}: the cost of a part grows more than that of a run alone");
    }
}
