//! Measures the speed and size of the engine: load, prompt and generation, compared with llama.cpp on the same file.
//! Weights are packed into a file and mapped, as `cogn` does; generation is also measured with weights in memory.
//!
//! ```sh
//! cargo bench -p cognitive-llama
//! COGN_MODEL=path/to/weights.gguf COGN_BENCH_PYTHON=python3 cargo bench -p cognitive-llama   # with xllamacpp installed there
//! ```
//!
//! Compare figures of one run only; they vary between machines and over time. Both engines alternate, so that a
//! disturbance affects both, and the best run of each counts. Needs the weights.

#![expect(clippy::print_stdout, reason = "a bench reports to people")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use cognitive_llama::{Ensemble, Model, TokenSession};

/// The number of runs; the best one counts, because the others were disturbed.
const RUNS: usize = 3;
const GENERATED: usize = 32;

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let Some(path) = weights_path() else {
        println!("skipped: no weights; `cogn model pull` fetches them");
        return;
    };
    let model = Arc::new(open_packed(&path));
    println!("{}, {}", model.name(), model.kernel().name());
    let tokens = model.tokenizer().encode(&include_str!("../tests/data/perplexity.txt").repeat(4));
    let tokens = tokens.get(..1_000).unwrap();
    let mut other = LlamaCpp::start(&path, tokens);
    println!("tokens/s              ours  llama.cpp   ratio");
    for threads in [1, 2] {
        for length in [100, 1_000] {
            let ours = || prompt(&model, threads, tokens.get(..length).unwrap());
            report(
                &format!("prompt {length:5} x{threads}"),
                ours,
                &mut other,
                &format!("prompt {threads} {length}"),
            );
        }
        let ours = || generate(&model, threads, tokens);
        let order = format!("generate {threads} {GENERATED}");
        report(&format!("generate  {GENERATED} x{threads}"), ours, &mut other, &order);
    }
    report_memory("after 1,000");
    in_memory(&path, &model, tokens);
    let alone = generate_together(&model, 1, tokens);
    for texts in [1, 2, 4, 8, 16] {
        let rate = (0..RUNS).map(|_| generate_together(&model, texts, tokens)).fold(0.0, f64::max);
        println!(
            "{:15}{rate:11.1} tokens/s, {:.2} times one",
            format!("together  {texts:2} x2"),
            rate / alone
        );
    }
    if let Some(other) = &mut other {
        println!("llama.cpp: load time in seconds and RSS in MB: {}", other.ask("load"));
    }
}

/// Packs the weights and maps them.
fn open_packed(path: &Path) -> Model {
    let hash = "0".repeat(64);
    let packed = std::env::temp_dir().join(format!("cogn-bench-{}", std::process::id()));
    let to = File::options().read(true).write(true).create_new(true).open(&packed).unwrap();
    let from = File::open(path).unwrap();
    let length = from.metadata().unwrap().len();
    timed("pack", || Model::pack(from, length, &hash, &to).unwrap());
    let packed_length = to.metadata().unwrap().len();
    println!("packed         {:8} MB of {}", packed_length / 1_000_000, length / 1_000_000);
    report_memory("before");
    let model = timed("load, mapped", || Model::map(&to, &hash).unwrap());
    std::fs::remove_file(packed).unwrap();
    report_memory("after load");
    model
}

/// Measures weights in the memory of this process, compared with mapped ones.
fn in_memory(path: &Path, mapped: &Arc<Model>, tokens: &[u32]) {
    let memory = Arc::new(timed("load, memory", || Model::open(path).unwrap()));
    println!("tokens/s            mapped     memory   ratio");
    for threads in [1, 2] {
        let (mut best, mut best_in_memory) = (0.0_f64, 0.0_f64);
        for _ in 0..RUNS {
            best = best.max(generate(mapped, threads, tokens));
            best_in_memory = best_in_memory.max(generate(&memory, threads, tokens));
        }
        let what = format!("generate  {GENERATED} x{threads}");
        println!("{what:15}{best:11.1}{best_in_memory:11.1}{:8.2}", best / best_in_memory);
    }
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what:15}{:8.0} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

/// Runs both alternately, and prints the best of each.
fn report(what: &str, mut ours: impl FnMut() -> f64, other: &mut Option<LlamaCpp>, order: &str) {
    let (mut best, mut best_of_other) = (0.0_f64, 0.0_f64);
    for _ in 0..RUNS {
        best = best.max(ours());
        if let Some(other) = other {
            best_of_other = best_of_other.max(other.ask(order).parse().unwrap());
        }
    }
    if other.is_some() {
        println!("{what:15}{best:11.1}{best_of_other:11.1}{:8.2}", best / best_of_other);
    } else {
        println!("{what:15}{best:11.1}");
    }
}

#[expect(clippy::cast_precision_loss, reason = "a thousand at most")]
fn prompt(model: &Arc<Model>, threads: usize, tokens: &[u32]) -> f64 {
    let mut session = TokenSession::new(Arc::clone(model), threads);
    let start = Instant::now();
    session.feed(tokens, &|| false).unwrap();
    tokens.len() as f64 / start.elapsed().as_secs_f64()
}

/// Greedy, after a prompt of 100 tokens; includes the search for the best logit.
#[expect(clippy::cast_precision_loss, reason = "32")]
fn generate(model: &Arc<Model>, threads: usize, tokens: &[u32]) -> f64 {
    let mut session = TokenSession::new(Arc::clone(model), threads);
    let mut next = likeliest(session.feed(tokens.get(..100).unwrap(), &|| false).unwrap());
    let start = Instant::now();
    for _ in 0..GENERATED {
        next = likeliest(session.feed(&[next], &|| false).unwrap());
    }
    GENERATED as f64 / start.elapsed().as_secs_f64()
}

/// Like [`generate`], for texts that are read in batches, with two threads for all of them.
#[expect(clippy::cast_precision_loss, reason = "some hundreds")]
fn generate_together(model: &Arc<Model>, texts: usize, tokens: &[u32]) -> f64 {
    let ensemble = Arc::new(Ensemble::new(Arc::clone(model), 2));
    let mut first = ensemble.session();
    let next = likeliest(first.feed(tokens.get(..100).unwrap(), &|| false).unwrap());
    first.pause();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..texts {
            let (mut session, mut next) = (first.fork(100), next);
            scope.spawn(move || {
                for _ in 0..GENERATED {
                    next = likeliest(session.feed(&[next], &|| false).unwrap());
                }
            });
        }
    });
    (texts * GENERATED) as f64 / start.elapsed().as_secs_f64()
}

fn likeliest(logits: &[f32]) -> u32 {
    let best = (0..).zip(logits).max_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map(|(token, _)| token).unwrap()
}

fn weights_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("COGN_MODEL") {
        return Some(path.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("cogn/models/smollm2-135m-instruct-q4_1.gguf")).filter(|path| path.exists())
}

/// The resident memory in MB, if the system reports it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1_000)
}

fn report_memory(when: &str) {
    if let Some(now) = resident() {
        println!("RSS {when:11}{now:8} MB");
    }
}

/// llama.cpp in a separate process, which ends when this value is dropped.
struct LlamaCpp {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl LlamaCpp {
    fn start(path: &Path, tokens: &[u32]) -> Option<Self> {
        let Some(python) = std::env::var_os("COGN_BENCH_PYTHON") else {
            println!("llama.cpp      skipped: COGN_BENCH_PYTHON names no Python with xllamacpp");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/llama_cpp.py");
        let mut command = Command::new(python);
        command.arg(script).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut orders = child.stdin.take().unwrap();
        writeln!(orders, "{tokens:?}").unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, orders: Some(orders), answers })
    }

    fn ask(&mut self, order: &str) -> String {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        let mut answer = String::new();
        assert!(self.answers.read_line(&mut answer).unwrap() > 0, "llama_cpp.py ended");
        answer.trim().to_owned()
    }
}

impl Drop for LlamaCpp {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.child.wait();
    }
}
