//! The weights of a Llama model out of a GGUF file. Checks that the tensors are those of the architecture and have its
//! shapes, so that the computation can rely on every length. Refuses other architectures and variants.

use std::collections::HashMap;

use super::LoadError;
use super::attention::Heads;
use super::gguf::{Encoding, Gguf, Tensor, Value, damaged, unsupported};
use super::tiles::{COLUMNS, Matrix};

/// A context longer than this is cut: no model of a size that this engine computes was trained for more.
const LONGEST_CONTEXT: usize = 1 << 20;

/// The numbers that describe the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) layers: usize,
    /// The length of a token's vector.
    pub(super) width: usize,
    /// The length inside the feed-forward part.
    pub(super) hidden: usize,
    pub(super) heads: Heads,
    pub(super) context: usize,
    /// The base of the rotation frequencies.
    pub(super) rope_base: f32,
    /// Keeps the norm from dividing by zero.
    pub(super) epsilon: f32,
}

/// All weights.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Box<[f32]>,
    /// Nothing if the embedding serves for both.
    output: Option<Matrix>,
}

/// The weights of one layer.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) attention_norm: Box<[f32]>,
    pub(super) query: Matrix,
    pub(super) key: Matrix,
    pub(super) value: Matrix,
    pub(super) attention_output: Matrix,
    pub(super) feed_norm: Box<[f32]>,
    pub(super) gate: Matrix,
    pub(super) up: Matrix,
    pub(super) down: Matrix,
}

impl Shape {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, LoadError> {
        match gguf.text("general.architecture") {
            Some("llama") => {}
            Some(other) => return Err(unsupported(&format!("the architecture is `{other}`, not `llama`"))),
            None => return Err(damaged("it names no architecture")),
        }
        refuse_variants(gguf)?;
        let number = |name: &str| {
            let value = gguf.whole(&format!("llama.{name}")).filter(|value| (1..1 << 24).contains(value));
            value.ok_or_else(|| damaged(&format!("the value `llama.{name}` is missing or out of range")))
        };
        let (width, queries) = (number("embedding_length")?, number("attention.head_count")?);
        let keys = number("attention.head_count_kv")?;
        let heads = Heads { queries, keys, width: width / queries };
        if !width.is_multiple_of(queries) || !queries.is_multiple_of(keys) {
            return Err(damaged("the heads do not divide the width"));
        }
        if !heads.width.is_multiple_of(COLUMNS) {
            return Err(unsupported(&format!("a head is {} wide, no multiple of 32", heads.width)));
        }
        for name in ["rope.dimension_count", "attention.key_length", "attention.value_length"] {
            if gguf.whole(&format!("llama.{name}")).is_some_and(|value| value != heads.width) {
                return Err(unsupported(&format!(
                    "the value `llama.{name}` differs from the width of a head"
                )));
            }
        }
        Ok(Self {
            layers: number("block_count")?,
            width,
            hidden: number("feed_forward_length")?,
            heads,
            context: number("context_length")?.min(LONGEST_CONTEXT),
            rope_base: positive(gguf, "llama.rope.freq_base", Some(10_000.0))?,
            epsilon: positive(gguf, "llama.attention.layer_norm_rms_epsilon", None)?,
        })
    }
}

/// Variants of the architecture that would be computed wrongly.
fn refuse_variants(gguf: &Gguf) -> Result<(), LoadError> {
    if gguf.text("llama.rope.scaling.type").is_some_and(|kind| kind != "none") {
        return Err(unsupported("the rotation is scaled"));
    }
    if gguf.whole("llama.expert_count").is_some_and(|count| count > 0) {
        return Err(unsupported("the model is a mixture of experts"));
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "a setting, given with few digits")]
fn positive(gguf: &Gguf, name: &str, otherwise: Option<f32>) -> Result<f32, LoadError> {
    let value = match gguf.value(name) {
        None => otherwise,
        Some(Value::Float(value)) => Some(value as f32),
        Some(_) => None,
    };
    let value = value.filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| damaged(&format!("the value `{name}` is missing or out of range")))
}

impl Weights {
    pub(super) fn read(gguf: &Gguf, shape: &Shape, vocabulary: usize) -> Result<Self, LoadError> {
        let mut tensors = Tensors(gguf.tensors()?);
        let embedding = tensors.matrix("token_embd.weight", vocabulary, shape.width)?;
        let mut layers = Vec::new();
        for index in 0..shape.layers {
            layers.push(tensors.layer(index, shape)?);
        }
        let norm = tensors.vector("output_norm.weight", shape.width)?;
        let own = tensors.0.contains_key("output.weight");
        let output = own.then(|| tensors.matrix("output.weight", vocabulary, shape.width)).transpose()?;
        match tensors.0.keys().min() {
            Some(name) => Err(unsupported(&format!("the model has a tensor that `llama` has not: `{name}`"))),
            None => Ok(Self { embedding, layers, norm, output }),
        }
    }

    /// The matrix that turns a vector into logits.
    pub(super) fn head(&self) -> &Matrix {
        self.output.as_ref().unwrap_or(&self.embedding)
    }
}

/// The tensors that have not been taken yet.
struct Tensors<'a>(HashMap<&'a str, Tensor<'a>>);

impl Tensors<'_> {
    fn layer(&mut self, index: usize, shape: &Shape) -> Result<Layer, LoadError> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let Shape { width, hidden, heads, .. } = *shape;
        let keys = heads.keys * heads.width;
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm"), width)?,
            query: self.matrix(&name("attn_q"), width, width)?,
            key: self.matrix(&name("attn_k"), keys, width)?,
            value: self.matrix(&name("attn_v"), keys, width)?,
            attention_output: self.matrix(&name("attn_output"), width, width)?,
            feed_norm: self.vector(&name("ffn_norm"), width)?,
            gate: self.matrix(&name("ffn_gate"), hidden, width)?,
            up: self.matrix(&name("ffn_up"), hidden, width)?,
            down: self.matrix(&name("ffn_down"), width, hidden)?,
        })
    }

    fn take(&mut self, name: &str, rows: usize, columns: usize) -> Result<Tensor<'_>, LoadError> {
        let tensor =
            self.0.remove(name).ok_or_else(|| damaged(&format!("the tensor `{name}` is missing")))?;
        if (tensor.rows, tensor.columns) != (rows, columns) {
            return Err(damaged(&format!("the tensor `{name}` is not {rows} rows of {columns}")));
        }
        Ok(tensor)
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, LoadError> {
        let tensor = self.take(name, rows, columns)?;
        if !columns.is_multiple_of(COLUMNS) {
            return Err(unsupported(&format!("tensor `{name}` has rows of {columns}, no multiple of 32")));
        }
        Matrix::pack(&tensor, name)
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Box<[f32]>, LoadError> {
        let tensor = self.take(name, 1, length)?;
        if tensor.encoding != Encoding::F32 {
            return Err(unsupported(&format!("tensor `{name}` is not of type F32")));
        }
        Ok(tensor.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}
