//! Compares the engine with llama.cpp and with itself, and reads damaged files. Tests that need the weights are skipped
//! without them; the others build a toy model.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "in a test a panic is the report"
)]

#[path = "engine/consistency.rs"]
mod consistency;
#[path = "engine/ensemble.rs"]
mod ensemble;
#[path = "engine/hostile.rs"]
mod hostile;
#[path = "engine/packed.rs"]
mod packed;
#[path = "engine/reference.rs"]
mod reference;
#[path = "engine/scored.rs"]
mod scored;
#[path = "engine/toy.rs"]
mod toy;

use std::sync::{Arc, OnceLock};

use cognitive_llama::{Model, TokenSession};

/// The weights, if they are on this machine. Loaded once for all tests of a process.
fn weights() -> Option<Arc<Model>> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    let path = cognitive_testkit::weights()?;
    Some(Arc::clone(MODEL.get_or_init(|| Arc::new(Model::open(&path).unwrap()))))
}

/// The logits after some tokens, in one call.
fn logits(model: &Arc<Model>, threads: usize, tokens: &[u32]) -> Vec<f32> {
    TokenSession::new(Arc::clone(model), threads).feed(tokens, &|| false).unwrap().to_vec()
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
