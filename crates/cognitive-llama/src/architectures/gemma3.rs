//! `gemma3`: the text part of Gemma 3. Five of six layers use a sliding window and a smaller rotation base. The outputs
//! of attention and feed-forward have their own norms. Training stores norm weights reduced by one; GGUF files already
//! contain the full weights.

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

/// The head width, except for the largest model, which divides the width by its number of heads. Only its 62 layers
/// identify it.
fn attention_width(layers: usize, width: usize, heads: Heads) -> usize {
    if layers == 62 { width / heads.queries } else { heads.width }
}
