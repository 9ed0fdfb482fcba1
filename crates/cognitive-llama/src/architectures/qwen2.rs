//! `qwen2`: Qwen 2 and 2.5. Queries, keys and values have a bias, and the two halves of a head are rotated together.

use super::{Architecture, GateCurve, RopePairs, head_width};

pub(super) static QWEN2: Architecture = Architecture {
    name: "qwen2",
    pairs: RopePairs::Halves,
    head_norms: false,
    outer_norms: false,
    gate: GateCurve::Silu,
    scales_embedding: false,
    local: None,
    attention_width: head_width,
};
