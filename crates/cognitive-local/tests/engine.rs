//! The engine against llama.cpp, against itself and against damaged files. Tests that need the weights say so and pass
//! without them; the others build a toy model.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "in a test a panic is the report"
)]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

#[path = "engine/consistency.rs"]
mod consistency;
#[path = "engine/hostile.rs"]
mod hostile;
#[path = "engine/reference.rs"]
mod reference;
#[path = "engine/toy.rs"]
mod toy;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cognitive_local::engine::{Model, Session};

/// The weights, if they are on this machine. Loaded once for all tests of a process.
fn weights() -> Option<Arc<Model>> {
    static MODEL: OnceLock<Option<Arc<Model>>> = OnceLock::new();
    let model = MODEL.get_or_init(|| Some(Arc::new(Model::open(&weights_path()?).unwrap()))).clone();
    if model.is_none() {
        eprintln!("skipped: no weights; `cogn model pull` fetches them");
    }
    model
}

/// `COGN_MODEL`, else where `cogn model pull` puts it.
fn weights_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("COGN_MODEL") {
        return Some(path.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("cogn/models/smollm2-135m-instruct-q4_1.gguf")).filter(|path| path.exists())
}

/// The logits after some tokens, in one go.
fn logits(model: &Arc<Model>, threads: usize, tokens: &[u32]) -> Vec<f32> {
    Session::new(Arc::clone(model), threads).feed(tokens, &|| false).unwrap().to_vec()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|x| x.to_bits()).collect()
}

fn log_sum_exp(logits: &[f32]) -> f64 {
    let top = f64::from(logits.iter().copied().fold(f32::MIN, f32::max));
    top + logits.iter().map(|x| (f64::from(*x) - top).exp()).sum::<f64>().ln()
}

/// The tokens in order of their logits.
fn ranking(logits: &[f32]) -> Vec<usize> {
    let mut tokens: Vec<usize> = (0..logits.len()).collect();
    tokens.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    tokens
}
