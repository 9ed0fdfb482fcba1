//! The engine beside llama.cpp, which the Python package `xllamacpp` brings: every architecture and every block type with
//! random weights, and a real model if its file is here. Skipped without the package.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test a panic is the report, and figures help"
)]

#[path = "llama_cpp/real.rs"]
mod real;
#[path = "llama_cpp/texts.rs"]
mod texts;
#[expect(dead_code, reason = "the tests of the engine use the rest")]
#[path = "engine/toy.rs"]
mod toy;
#[path = "llama_cpp/zoo.rs"]
mod zoo;

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use cognitive_llama::{Model, TokenSession};
use cognitive_testkit::{Lack, skip};
use serde_json::{Value, json};

use zoo::{LLAMA, Species};

/// A Python with llama.cpp. `None`, after `skip`, if there is none.
fn python() -> Option<PathBuf> {
    let named = env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let has_it = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import xllamacpp, numpy"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // The script knows how this system hands structures over, and no other.
    let known = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let found = env::split_paths(&named).find(has_it).filter(|_| known);
    if found.is_none() {
        skip(Lack::Xllamacpp);
    }
    found
}

/// What llama.cpp answers about a file.
fn ask(python: &Path, weights: &Path, questions: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama_cpp/answer.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(weights)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(questions.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "answer.py: {}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn log_sum_exp(logits: &[f32]) -> f64 {
    let top = f64::from(logits.iter().copied().fold(f32::MIN, f32::max));
    top + logits.iter().map(|x| (f64::from(*x) - top).exp()).sum::<f64>().ln()
}

/// How far our probabilities are from theirs, by Kullback and Leibler, what they did not list taken together; and the
/// five likeliest of both.
fn compare(theirs: &Value, ours: &[f32]) -> (f64, [Vec<usize>; 2]) {
    let total = log_sum_exp(ours);
    let (mut sum, mut their_rest, mut our_rest) = (0.0, 1.0_f64, 1.0_f64);
    let mut listed = Vec::new();
    for pair in theirs.as_array().unwrap() {
        let token = usize::try_from(pair[0].as_u64().unwrap()).unwrap();
        let (theirs, ours) = (pair[1].as_f64().unwrap(), f64::from(ours[token]) - total);
        sum += theirs.exp() * (theirs - ours);
        their_rest -= theirs.exp();
        our_rest -= ours.exp();
        listed.push(token);
    }
    if their_rest > 1e-9 && our_rest > 1e-9 {
        sum += their_rest * (their_rest / our_rest).ln();
    }
    let mut best: Vec<usize> = (0..ours.len()).collect();
    best.sort_by(|a, b| ours[*b].total_cmp(&ours[*a]));
    (sum, [listed[..5].to_vec(), best[..5].to_vec()])
}

/// Holds a random model against llama.cpp, after prompts of a few lengths.
fn assert_alike(name: &str, species: Species) {
    let Some(python) = python() else { return };
    let path = env::temp_dir().join(format!("cogn-zoo-{name}-{}.gguf", std::process::id()));
    std::fs::write(&path, zoo::file(species)).unwrap();
    let text: Vec<u32> = (0..150_u32).map(|i| (i * 37 + i * i) % 256).collect();
    let prompts: Vec<&[u32]> = vec![&text[..1], &text[..7], &text[..70], &text];
    let answer = ask(&python, &path, &json!({ "prompts": prompts, "top": 262 }));
    let model = Arc::new(Model::open(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    for (prompt, theirs) in prompts.iter().zip(answer["prompts"].as_array().unwrap()) {
        let mut session = TokenSession::new(Arc::clone(&model), 2);
        let logits = session.feed(prompt, &|| false).unwrap();
        let (divergence, [theirs, ours]) = compare(theirs, logits);
        eprintln!("{name}, {} tokens: divergence {divergence:.5}, {theirs:?} {ours:?}", prompt.len());
        assert!(divergence < 0.01, "{name}, {} tokens: {divergence}", prompt.len());
        assert_five(&theirs, &ours, logits);
    }
}

/// The five likeliest are the same, but for ties: engines round differently and flip them.
fn assert_five(theirs: &[usize], ours: &[usize], logits: &[f32]) {
    let fifth = logits[ours[4]];
    for token in theirs {
        assert!(logits[*token] > fifth - 0.15, "{theirs:?} {ours:?}");
    }
}

#[test]
fn llama_computes_what_llama_cpp_does() {
    assert_alike("llama", Species { rope_factors: true, output: true, ..LLAMA });
}

#[test]
fn qwen2_computes_what_llama_cpp_does() {
    assert_alike("qwen2", Species { architecture: "qwen2", bias: true, ..LLAMA });
}

#[test]
fn qwen3_computes_what_llama_cpp_does() {
    assert_alike("qwen3", Species { architecture: "qwen3", head: 96, head_norms: true, ..LLAMA });
}

#[test]
fn gemma3_computes_what_llama_cpp_does() {
    let gemma = Species {
        architecture: "gemma3",
        layers: 7,
        head: 96,
        head_norms: true,
        outer_norms: true,
        window: Some(40),
        ..LLAMA
    };
    assert_alike("gemma3", gemma);
}

#[test]
fn block_types_compute_what_llama_cpp_does() {
    for kind in [1, 2, 3, 6, 7, 8, 11, 12, 13, 14, 30] {
        assert_alike(&format!("type-{kind}"), Species { kind, output: true, ..LLAMA });
    }
}
