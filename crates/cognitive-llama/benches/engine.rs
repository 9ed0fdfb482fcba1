//! How fast the engine is, and how large: load, prompt and generation, beside llama.cpp on the same file.
//!
//! ```sh
//! cargo bench -p cognitive-llama
//! COGN_BENCH_PYTHON=python3 cargo bench -p cognitive-llama   # with llama-cpp-python installed there
//! ```
//!
//! Compare figures of one run only; machines differ, and so do hours. Needs the weights.

#![expect(clippy::print_stdout, reason = "a bench reports to people")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use cognitive_llama::{Model, TokenSession};

/// The best of this many runs counts: the others were disturbed.
const RUNS: usize = 5;
const GENERATED: usize = 64;

fn main() {
    // `cargo test --benches` only wants to see that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let Some(path) = weights_path() else {
        println!("skipped: no weights; `cogn model pull` fetches them");
        return;
    };
    let before = resident();
    let start = Instant::now();
    let model = Arc::new(Model::open(&path).unwrap());
    println!("engine         {}", model.kernel().name());
    println!("load           {:8.0} ms", start.elapsed().as_secs_f64() * 1e3);
    report_memory("after load", before);
    let text = include_str!("../tests/data/perplexity.txt").repeat(3);
    let tokens = model.tokenizer().encode(&text);
    for threads in [1, 2] {
        for length in [100, 1_000] {
            let rate = prompt(&model, threads, tokens.get(..length).unwrap());
            println!("prompt {length:5} x{threads}{rate:9.0} tokens/s");
        }
    }
    println!("generate  64 x1{:9.0} tokens/s", generate(&model, &tokens));
    report_memory("after 1,000", before);
    llama_cpp(&path, &text);
}

fn best(mut run: impl FnMut() -> f64) -> f64 {
    (0..RUNS).map(|_| run()).fold(0.0, f64::max)
}

#[expect(clippy::cast_precision_loss, reason = "a thousand at most")]
fn prompt(model: &Arc<Model>, threads: usize, tokens: &[u32]) -> f64 {
    best(|| {
        let mut session = TokenSession::new(Arc::clone(model), threads);
        let start = Instant::now();
        session.feed(tokens, &|| false).unwrap();
        tokens.len() as f64 / start.elapsed().as_secs_f64()
    })
}

/// Greedy, after a prompt of 100 tokens; reading the best logit off is part of it.
#[expect(clippy::cast_precision_loss, reason = "64")]
fn generate(model: &Arc<Model>, tokens: &[u32]) -> f64 {
    let mut session = TokenSession::new(Arc::clone(model), 2);
    best(|| {
        session.truncate(0);
        let mut next = likeliest(session.feed(tokens.get(..100).unwrap(), &|| false).unwrap());
        let start = Instant::now();
        for _ in 0..GENERATED {
            next = likeliest(session.feed(&[next], &|| false).unwrap());
        }
        GENERATED as f64 / start.elapsed().as_secs_f64()
    })
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

/// Resident memory in MB, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1_000)
}

fn report_memory(when: &str, before: Option<u64>) {
    if let (Some(before), Some(now)) = (before, resident()) {
        println!("RSS {when:11}{now:8} MB ({before} MB before)");
    }
}

fn llama_cpp(path: &Path, text: &str) {
    let Some(python) = std::env::var_os("COGN_BENCH_PYTHON") else {
        println!("llama.cpp      skipped: COGN_BENCH_PYTHON names no Python with llama-cpp-python");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/llama_cpp.py");
    let status = Command::new(python).arg(script).arg(path).arg(text).status().unwrap();
    assert!(status.success(), "llama_cpp.py: {status}");
}
