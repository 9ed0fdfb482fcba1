//! Benchmarks loading a module: reading, YAML, the manifest's schema, compiling the contract.
//! The baseline, in the same run, reads the same files and parses them as plain YAML and JSON.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;

use cognitive_library::{Folder, load, yaml};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::Value;

fn bench(criterion: &mut Criterion) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../modules/code-simplifier");
    let folder = Folder::Disk(path.clone());
    let mut group = criterion.benchmark_group("load code-simplifier");
    group.bench_function("baseline: read and parse the files", |bencher| {
        bencher.iter(|| {
            let manifest = yaml::parse(&fs::read_to_string(path.join("module.yaml")).unwrap()).unwrap();
            let schema: Value =
                serde_json::from_str(&fs::read_to_string(path.join("schema.json")).unwrap()).unwrap();
            black_box((manifest, schema, fs::read_to_string(path.join("prompt.md")).unwrap()))
        });
    });
    group.bench_function("loaded: a module ready to run", |bencher| {
        bencher.iter(|| load(black_box(&folder)).unwrap());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
