//! The differences between the architectures, one file each. All share one computation, which reads the fields of
//! [`Architecture`]. Refuses every architecture that is not listed here, by its name.

mod gemma3;
mod llama;
mod qwen2;
mod qwen3;

use super::WeightsError;
use super::attention::Heads;
use super::gguf::{Gguf, damaged_error, unsupported_error};

/// The properties that distinguish an architecture from the others.
#[derive(Debug)]
pub(super) struct Architecture {
    /// The name in files, which is also the prefix of its settings.
    pub(super) name: &'static str,
    /// The columns of a head that are rotated together.
    pub(super) pairs: RopePairs,
    /// True if queries and keys are normalised per head before the rotation.
    pub(super) head_norms: bool,
    /// True if the outputs of attention and feed-forward are normalised before they are added.
    pub(super) outer_norms: bool,
    /// The activation function of the gate in the feed-forward part.
    pub(super) gate: GateCurve,
    /// True if the embeddings are multiplied with the square root of their length.
    pub(super) scales_embedding: bool,
    /// The layers with a sliding window, if there are any.
    pub(super) local: Option<LocalLayers>,
    /// Returns, from layers, width and heads, the number by whose root attention scores are divided.
    pub(super) attention_width: fn(usize, usize, Heads) -> usize,
}

/// The columns of a head that are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RopePairs {
    /// Each column with its neighbour.
    Neighbours,
    /// Each column of the first half with the same column of the second half.
    Halves,
}

/// The activation function of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GateCurve {
    Silu,
    Gelu,
}

/// Layers with a sliding window, and their rotation.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalLayers {
    /// The last layer of each group of this size sees the whole context.
    pub(super) period: usize,
    /// The base of their rotation frequencies.
    pub(super) rope_base: f32,
}

/// The architecture of a file.
pub(super) fn find(gguf: &Gguf) -> Result<&'static Architecture, WeightsError> {
    const ALL: [&Architecture; 4] = [&llama::LLAMA, &qwen2::QWEN2, &qwen3::QWEN3, &gemma3::GEMMA3];
    let name =
        gguf.text("general.architecture").ok_or_else(|| damaged_error("the file names no architecture"))?;
    let known = ALL.iter().map(|architecture| format!("`{}`", architecture.name)).collect::<Vec<_>>();
    ALL.into_iter().find(|architecture| architecture.name == name).ok_or_else(|| {
        unsupported_error(&format!("unsupported architecture `{name}`; supported: {}", known.join(", ")))
    })
}

/// The usual divisor: the width of a head.
fn head_width(_: usize, _: usize, heads: Heads) -> usize {
    heads.width
}
