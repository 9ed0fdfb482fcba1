//! `llama`: Llama 1 to 3, `SmolLM`, Mistral and related models. Llama 3 stores its rotation scaling as a tensor of
//! factors.

use super::{Architecture, GateCurve, RopePairs, head_width};

pub(super) static LLAMA: Architecture = Architecture {
    name: "llama",
    pairs: RopePairs::Neighbours,
    head_norms: false,
    outer_norms: false,
    gate: GateCurve::Silu,
    scales_embedding: false,
    local: None,
    attention_width: head_width,
};
