//! The startup time of the program, as a user experiences it. The baseline of the same run is `/bin/true`, the cheapest
//! process.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::fs;
use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};

fn spawn(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success());
}

fn bench(criterion: &mut Criterion) {
    let cogn = env!("CARGO_BIN_EXE_cogn");
    let dir = tempfile::tempdir().unwrap();
    let manifest = include_str!("../../../modules/code-simplifier/module.yaml");
    for number in 0..100 {
        let name = format!("module-{number:03}");
        let folder = dir.path().join("cognitive/modules").join(&name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join("module.yaml"),
            manifest.replace("name: code-simplifier", &format!("name: {name}")),
        )
        .unwrap();
    }
    let mut group = criterion.benchmark_group("process");
    group.sample_size(40);
    group.bench_function("baseline: /bin/true", |bencher| {
        bencher.iter(|| spawn(&mut Command::new("/bin/true")));
    });
    group.bench_function("cogn --version", |bencher| {
        bencher.iter(|| spawn(Command::new(cogn).arg("--version")));
    });
    group.bench_function("cogn list, 100 modules", |bencher| {
        bencher.iter(|| spawn(Command::new(cogn).arg("list").current_dir(dir.path())));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
