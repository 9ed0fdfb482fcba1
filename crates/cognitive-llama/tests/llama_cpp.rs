//! Compares the engine with llama.cpp from the Python package `xllamacpp`. Covers every architecture and block type
//! with random weights, and real models if their files are available. Skipped without the package.

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
#[path = "llama_cpp/vocabularies.rs"]
mod vocabularies;
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

/// A Python with llama.cpp. If there is none, calls `skip` and returns `None`.
fn python() -> Option<PathBuf> {
    let named = env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let has_it = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import xllamacpp, numpy"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // The script uses the calling convention for structures of this system only.
    let known = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let found = env::split_paths(&named).find(has_it).filter(|_| known);
    if found.is_none() {
        skip(Lack::Xllamacpp);
    }
    found
}

/// Returns the answers of llama.cpp about a file.
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

/// The predictions of llama.cpp and of this engine for the token after a prompt.
struct NextToken<'a> {
    /// Tokens with their log-probabilities, the likeliest first.
    theirs: Vec<(usize, f64)>,
    /// The divergence of llama.cpp from itself when it reads the prompt in another way.
    own: f64,
    ours: &'a [f32],
}

impl<'a> NextToken<'a> {
    /// Reads the answer for the prompt with this number.
    fn new(answer: &Value, prompt: usize, ours: &'a [f32]) -> Self {
        let pair = |pair: &Value| {
            let token = usize::try_from(pair[0].as_u64().unwrap()).unwrap();
            (token, pair[1].as_f64().unwrap())
        };
        let theirs = answer["prompts"][prompt].as_array().unwrap().iter().map(pair).collect();
        Self { theirs, own: answer["own"][prompt].as_f64().unwrap(), ours }
    }

    /// The Kullback-Leibler divergence of our probabilities from theirs, with all unlisted tokens as one group.
    fn divergence(&self) -> f64 {
        let total = log_sum_exp(self.ours);
        let (mut sum, mut their_rest, mut our_rest) = (0.0, 1.0_f64, 1.0_f64);
        for (token, theirs) in &self.theirs {
            let ours = f64::from(self.ours[*token]) - total;
            sum += theirs.exp() * (theirs - ours);
            their_rest -= theirs.exp();
            our_rest -= ours.exp();
        }
        if their_rest > 1e-9 && our_rest > 1e-9 {
            sum += their_rest * (their_rest / our_rest).ln();
        }
        sum
    }

    /// The five likeliest tokens of both.
    fn fives(&self) -> [Vec<usize>; 2] {
        let mut best: Vec<usize> = (0..self.ours.len()).collect();
        best.sort_by(|a, b| self.ours[*b].total_cmp(&self.ours[*a]));
        [self.theirs[..5].iter().map(|(token, _)| *token).collect(), best[..5].to_vec()]
    }

    /// Compares the probabilities and the five likeliest tokens. These must be equal, except for tokens that rounding
    /// cannot separate. Two tokens may swap across the border of the first or of the first five. Then llama.cpp's own
    /// values for them must be closer than the noise. The noise is measured after each prompt, between both engines and
    /// between llama.cpp and itself. A divergence is half of the variance of the differences between log-probabilities.
    /// The difference between two of them has twice that variance, and twice its root is the limit.
    fn assert_alike(&self, name: &str) {
        let divergence = self.divergence();
        let noise = 2.0 * (2.0 * 2.0 * divergence.max(self.own)).sqrt();
        let [theirs, ours] = self.fives();
        let own = self.own;
        eprintln!("{name}: divergence {divergence:.5}, own {own:.5}, noise {noise:.3}, {theirs:?} {ours:?}");
        assert!(divergence <= 0.01, "{name}: {divergence}");
        for count in [1, 5] {
            let (theirs, ours) = (&theirs[..count], &ours[..count]);
            for lost in theirs.iter().filter(|token| !ours.contains(token)) {
                for taken in ours.iter().filter(|token| !theirs.contains(token)) {
                    let apart = self.their_value(*lost) - self.their_value(*taken);
                    eprintln!("    {lost} and {taken} are {apart:.4} apart");
                    assert!(apart < noise, "{name}: {lost} and {taken} are {apart} apart, noise {noise}");
                }
            }
        }
    }

    fn their_value(&self, token: usize) -> f64 {
        self.theirs.iter().find(|(listed, _)| *listed == token).map_or(f64::NEG_INFINITY, |(_, value)| *value)
    }
}

/// Compares a random model with llama.cpp, after prompts of a few lengths.
fn assert_alike(name: &str, species: Species) {
    let Some(python) = python() else { return };
    let path = env::temp_dir().join(format!("cogn-zoo-{name}-{}.gguf", std::process::id()));
    std::fs::write(&path, zoo::model(species).bytes()).unwrap();
    let text: Vec<u32> = (0..150_u32).map(|i| (i * 37 + i * i) % 256).collect();
    let prompts: Vec<&[u32]> = vec![&text[..1], &text[..7], &text[..70], &text];
    let answer = ask(&python, &path, &json!({ "prompts": prompts, "top": 262 }));
    let model = Arc::new(Model::open(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    for (at, prompt) in prompts.iter().enumerate() {
        let mut session = TokenSession::new(Arc::clone(&model), 2);
        let logits = session.feed(prompt, &|| false).unwrap();
        NextToken::new(&answer, at, logits).assert_alike(&format!("{name}, {} tokens", prompt.len()));
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
