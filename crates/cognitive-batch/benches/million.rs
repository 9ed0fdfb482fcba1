//! Processes a million rows with a model that answers immediately, and kills the process every few seconds.
//! Checks that every row is answered once, and measures the overhead per row and the memory. Run by hand:
//!
//! `CARGO_PROFILE_BENCH_LTO=off cargo bench -p cognitive-batch --bench million -- 1000000 2`
//!
//! The arguments are rows and seconds between kills. Without them it prints its usage and exits.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark says what it measured"
)]
#![allow(missing_docs, reason = "nobody calls a benchmark")]

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_batch::{AnswerTarget, BatchLimits, BatchPlan, RowFile, RowFormat, RowMapping, StopHandle};
use cognitive_contract::ports::{NullSink, Provider};
use cognitive_library::Library;
use cognitive_runtime::host::{ModuleRef, RunInput};
use cognitive_runtime::{Host, Replay, RunOptions, RunRequest};
use serde_json::{Value, json};

const REPLY: &str = include_str!("../../../modules/text-classifier/tests/free-topic.reply.txt");
const MODULE: &str = "text-classifier";
const AT_ONCE: usize = 32;
/// The maximum overhead per row, in microseconds of CPU time.
const MOST_BEYOND: f64 = 60.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["child", folder] => child(Path::new(folder)),
        [rows, seconds] => measure(rows.parse().unwrap(), Duration::from_secs(seconds.parse().unwrap())),
        _ => println!("name the number of rows and the seconds between kills, such as `1000000 2`"),
    }
}

fn host() -> Host {
    Host::new(Arc::new(Library::default()), Arc::new(Replay::text(REPLY)) as Arc<dyn Provider>)
}

fn text(number: u64) -> String {
    format!("The train was late again and nobody said why: passenger {number} waited for an hour.")
}

fn plan(folder: &Path) -> BatchPlan {
    let host = host();
    BatchPlan {
        name: MODULE.to_owned(),
        module: host.modules.module(MODULE).unwrap(),
        host,
        options: RunOptions::default(),
        rows: RowFile { path: folder.join("rows.jsonl"), format: RowFormat::JsonLines },
        mapping: RowMapping::default(),
        target: AnswerTarget {
            path: folder.join("out.jsonl"),
            format: RowFormat::JsonLines,
            failed: None,
            ordered: false,
            with_input: false,
        },
        limits: BatchLimits {
            concurrency: AT_ONCE,
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

fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

/// The child process: runs the batch until it is done or killed.
fn child(folder: &Path) {
    let plan = plan(folder);
    let batch = async move { cognitive_batch::run(plan, &StopHandle::default(), |_| {}).await };
    let runtime = threads();
    runtime.block_on(async { tokio::spawn(batch).await }).unwrap().unwrap();
}

fn measure(rows: u64, between: Duration) {
    let folder = tempfile::tempdir().unwrap();
    println!("rows: {rows}, at once: {AT_ONCE}, a kill every {} s", between.as_secs());
    let sample = rows.min(100_000);
    compare(sample);
    write_rows(folder.path(), rows);
    let (kills, processor, memory) = run_and_kill(folder.path(), rows, between);
    let each = micros(processor, rows);
    println!("with kills: {kills} kills, {each:.1} µs of processor for a row, all processes together");
    for (share, kilobytes) in memory {
        println!("memory when {share} % were answered: {} MB", kilobytes / 1024);
    }
    check(folder.path(), rows);
}

/// Measures the same runs with and without the batch overhead: reading, hashing and comparing rows, writing
/// lines and a journal.
fn compare(rows: u64) {
    let runtime = threads();
    let alone = |rows: u64| {
        let (host, next) = (Arc::new(host()), Arc::new(std::sync::atomic::AtomicU64::new(0)));
        let module = host.modules.module(MODULE).unwrap();
        let workers = (0..AT_ONCE).map(|_| {
            let (host, next, module) = (Arc::clone(&host), Arc::clone(&next), Arc::clone(&module));
            runtime.spawn(async move {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= rows {
                        return;
                    }
                    let input = RunInput::Json(json!({ "text": text(number) }));
                    let module = ModuleRef::from_module(MODULE, Arc::clone(&module));
                    let request = RunRequest { module, input, options: RunOptions::default() };
                    assert!(cognitive_runtime::run(&host, request, &mut NullSink).await.ok());
                }
            })
        });
        let workers: Vec<_> = workers.collect();
        runtime.block_on(async {
            for worker in workers {
                worker.await.unwrap();
            }
        });
    };
    alone(rows / 10);
    let mut least = f64::MAX;
    for round in 1..=3 {
        let before = processor_time();
        alone(rows);
        let run = micros(processor_time().saturating_sub(before), rows);
        let folder = tempfile::tempdir().unwrap();
        write_rows(folder.path(), rows);
        let before = processor_time();
        let plan = plan(folder.path());
        let batch = async move { cognitive_batch::run(plan, &StopHandle::default(), |_| {}).await };
        runtime.block_on(async { tokio::spawn(batch).await }).unwrap().unwrap();
        let whole = micros(processor_time().saturating_sub(before), rows);
        println!(
            "round {round}: run alone {run:.1} µs, as a row {whole:.1} µs, beyond the run {:.1} µs",
            whole - run
        );
        least = least.min(whole - run);
    }
    assert!(least <= MOST_BEYOND, "a row costs {least:.1} µs beyond its run");
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn micros(time: Duration, rows: u64) -> f64 {
    time.as_secs_f64() * 1e6 / rows as f64
}

fn write_rows(folder: &Path, rows: u64) {
    let mut file = BufWriter::new(File::create(folder.join("rows.jsonl")).unwrap());
    for number in 0..rows {
        writeln!(file, "{}", json!({ "text": text(number) })).unwrap();
    }
    file.flush().unwrap();
}

/// Restarts the batch until it is done. Returns the kills, the CPU time, and memory samples.
fn run_and_kill(folder: &Path, rows: u64, between: Duration) -> (u32, Duration, Vec<(u64, u64)>) {
    let journal = folder.join("out.jsonl.cogn-batch/journal");
    let (mut kills, mut processor, mut memory) = (0, Duration::ZERO, Vec::new());
    loop {
        let mut child = started(folder);
        let (begun, mut last) = (Instant::now(), Duration::ZERO);
        loop {
            if child.try_wait().unwrap().is_some() {
                return (kills, processor + last, memory);
            }
            last = time_of(child.id()).unwrap_or(last);
            let share = std::fs::metadata(&journal).map_or(0, |file| file.len() / 64) * 100 / rows;
            let wanted = memory.last().map_or(5, |(share, _): &(u64, u64)| share + 15);
            if let Some(kilobytes) =
                memory_of(child.id()).filter(|_| share >= wanted && begun.elapsed() > between / 2)
            {
                memory.push((share, kilobytes));
            }
            if begun.elapsed() >= between {
                child.kill().unwrap();
                child.wait().unwrap();
                (kills, processor) = (kills + 1, processor + last);
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn started(folder: &Path) -> Child {
    let program: PathBuf = std::env::current_exe().unwrap();
    Command::new(program).args(["child".as_ref(), folder.as_os_str()]).spawn().unwrap()
}

/// Checks that every row has one complete line.
fn check(folder: &Path, rows: u64) {
    let mut seen = vec![false; usize::try_from(rows).unwrap()];
    let mut lines = 0_u64;
    for line in BufReader::new(File::open(folder.join("out.jsonl")).unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(line["envelope"]["ok"], true);
        let place = seen.get_mut(usize::try_from(line["row"].as_u64().unwrap()).unwrap()).unwrap();
        assert!(!std::mem::replace(place, true), "a row has two lines: {}", line["row"]);
        lines += 1;
    }
    assert!(lines == rows && seen.iter().all(|seen| *seen), "{lines} lines for {rows} rows");
    println!("every row has exactly one line: {lines}");
}

/// Returns the CPU time of all threads of a process so far.
fn time_of(process: u32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let worked = threads.filter_map(|thread| {
        let line = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(worked.sum()))
}

fn processor_time() -> Duration {
    time_of(std::process::id()).unwrap_or_default()
}

fn memory_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
