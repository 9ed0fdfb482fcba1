//! `qwen3`: the dense models of Qwen 3. Like `qwen2` without biases, with a norm per head and a separate head width.

use super::{Architecture, GateCurve, RopePairs, head_width};

pub(super) static QWEN3: Architecture = Architecture {
    name: "qwen3",
    pairs: RopePairs::Halves,
    head_norms: true,
    outer_norms: false,
    gate: GateCurve::Silu,
    scales_embedding: false,
    local: None,
    attention_width: head_width,
};
