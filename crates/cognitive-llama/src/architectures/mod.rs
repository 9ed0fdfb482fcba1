//! In what the architectures differ, one file each. The computation is one for all: it asks the fields of
//! [`Architecture`]. Refuses every architecture that is not listed here, by its name.

mod gemma3;
mod llama;
mod qwen2;
mod qwen3;

use super::WeightsError;
use super::attention::Heads;
use super::gguf::{Gguf, damaged, unsupported};

/// What distinguishes an architecture from the others.
#[derive(Debug)]
pub(super) struct Architecture {
    /// Its name in files, and the beginning of the names of its settings.
    pub(super) name: &'static str,
    /// Which columns of a head are turned together.
    pub(super) pairs: RopePairs,
    /// Whether queries and keys are brought to the length one, head by head, before they are turned.
    pub(super) head_norms: bool,
    /// Whether what attention and feed-forward add is brought to the length one first.
    pub(super) outer_norms: bool,
    /// What opens the gate of the feed-forward part.
    pub(super) gate: GateCurve,
    /// Whether the vectors of tokens are multiplied with the root of their length.
    pub(super) scales_embedding: bool,
    /// Which layers look back over a window only.
    pub(super) local: Option<LocalLayers>,
    /// The number whose root scales are divided by, of layers, width and heads.
    pub(super) attention_width: fn(usize, usize, Heads) -> usize,
}

/// Which columns of a head are turned together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RopePairs {
    /// Each with its neighbour.
    Neighbours,
    /// Each of the first half with the one as far into the second.
    Halves,
}

/// The curve of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GateCurve {
    Silu,
    Gelu,
}

/// Layers with a window, and how those are turned.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalLayers {
    /// The last of so many looks back over everything.
    pub(super) period: usize,
    /// The base of their rotation frequencies.
    pub(super) rope_base: f32,
}

/// The architecture of a file.
pub(super) fn of(gguf: &Gguf) -> Result<&'static Architecture, WeightsError> {
    const ALL: [&Architecture; 4] = [&llama::LLAMA, &qwen2::QWEN2, &qwen3::QWEN3, &gemma3::GEMMA3];
    let name = gguf.text("general.architecture").ok_or_else(|| damaged("it names no architecture"))?;
    let known = ALL.iter().map(|architecture| format!("`{}`", architecture.name)).collect::<Vec<_>>();
    ALL.into_iter()
        .find(|architecture| architecture.name == name)
        .ok_or_else(|| unsupported(&format!("the architecture is `{name}`, none of {}", known.join(", "))))
}

/// The usual one: a head's own width.
fn head_width(_: usize, _: usize, heads: Heads) -> usize {
    heads.width
}
