//! `gemma3`: the text part of Gemma 3. Five layers of six look back over a window and are turned faster; everything that
//! is added has a norm of its own. The weights of its norms are one too small in training and have been raised in files.

use super::{Architecture, GateCurve, LocalLayers, RopePairs};
use crate::attention::Heads;

pub(super) static GEMMA3: Architecture = Architecture {
    name: "gemma3",
    pairs: RopePairs::Halves,
    head_norms: true,
    outer_norms: true,
    gate: GateCurve::Gelu,
    scales_embedding: true,
    local: Some(LocalLayers { period: 6, rope_base: 10_000.0 }),
    attention_width,
};

/// The largest of the family, which nothing but its 62 layers tells, divides the width evenly instead.
fn attention_width(layers: usize, width: usize, heads: Heads) -> usize {
    if layers == 62 { width / heads.queries } else { heads.width }
}
