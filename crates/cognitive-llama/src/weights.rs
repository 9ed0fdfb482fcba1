//! The weights of a Llama model out of a GGUF file. Checks that the tensors are those of the architecture and have its
//! shapes, so that the computation can rely on every length. Refuses other architectures and variants.

use std::collections::HashMap;
use std::io::Read;

use super::WeightsError;
use super::attention::Heads;
use super::blocks::Encoding;
use super::gguf::{Extent, Gguf, Tensor, Value, damaged, unreadable, unsupported};
use super::tiles::{COLUMNS, Matrix};

/// A context longer than this is cut: no model of a size that this engine computes was trained for more.
const MAX_CONTEXT_LENGTH: usize = 1 << 20;

/// The numbers that describe the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelShape {
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
pub(super) struct ModelWeights {
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<LayerWeights>,
    pub(super) norm: Box<[f32]>,
    /// Nothing if the embedding serves for both.
    output: Option<Matrix>,
}

/// The weights of one layer.
#[derive(Debug)]
pub(super) struct LayerWeights {
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

impl ModelShape {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, WeightsError> {
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
            context: number("context_length")?.min(MAX_CONTEXT_LENGTH),
            rope_base: positive(gguf, "llama.rope.freq_base", Some(10_000.0))?,
            epsilon: positive(gguf, "llama.attention.layer_norm_rms_epsilon", None)?,
        })
    }
}

/// Variants of the architecture that would be computed wrongly.
fn refuse_variants(gguf: &Gguf) -> Result<(), WeightsError> {
    if gguf.text("llama.rope.scaling.type").is_some_and(|kind| kind != "none") {
        return Err(unsupported("the rotation is scaled"));
    }
    if gguf.whole("llama.expert_count").is_some_and(|count| count > 0) {
        return Err(unsupported("the model is a mixture of experts"));
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "a setting, given with few digits")]
fn positive(gguf: &Gguf, name: &str, otherwise: Option<f32>) -> Result<f32, WeightsError> {
    let value = match gguf.value(name) {
        None => otherwise,
        Some(Value::Float(value)) => Some(value as f32),
        Some(_) => None,
    };
    let value = value.filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| damaged(&format!("the value `{name}` is missing or out of range")))
}

impl ModelWeights {
    /// Reads the bytes that follow the header, once and in their order.
    pub(super) fn read(
        gguf: &Gguf,
        shape: &ModelShape,
        vocabulary: usize,
        data: &mut dyn Read,
    ) -> Result<Self, WeightsError> {
        let extents = gguf.extents()?;
        // Nothing is packed before everything is known to be in its place and in its shape.
        let mut expected = Expected(extents.iter().map(|extent| (extent.name, *extent)).collect());
        Self::build(&mut expected, shape, vocabulary)?;
        if let Some(name) = expected.0.keys().min() {
            return Err(unsupported(&format!("the model has a tensor that `llama` has not: `{name}`")));
        }
        Self::build(&mut Packed::read(&extents, data)?, shape, vocabulary)
    }

    fn build(
        tensors: &mut impl Tensors,
        shape: &ModelShape,
        vocabulary: usize,
    ) -> Result<Self, WeightsError> {
        let embedding = tensors.matrix("token_embd.weight", vocabulary, shape.width)?;
        let mut layers = Vec::new();
        for index in 0..shape.layers {
            layers.push(layer(tensors, index, shape)?);
        }
        let norm = tensors.vector("output_norm.weight", shape.width)?;
        let own = tensors.has("output.weight");
        let output = own.then(|| tensors.matrix("output.weight", vocabulary, shape.width)).transpose()?;
        Ok(Self { embedding, layers, norm, output })
    }

    /// The matrix that turns a vector into logits.
    pub(super) fn head(&self) -> &Matrix {
        self.output.as_ref().unwrap_or(&self.embedding)
    }
}

/// Tensors that can be taken by their names, each once.
trait Tensors {
    fn has(&self, name: &str) -> bool;
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, WeightsError>;
    fn vector(&mut self, name: &str, length: usize) -> Result<Box<[f32]>, WeightsError>;
}

fn layer(tensors: &mut impl Tensors, index: usize, shape: &ModelShape) -> Result<LayerWeights, WeightsError> {
    let name = |part: &str| format!("blk.{index}.{part}.weight");
    let ModelShape { width, hidden, heads, .. } = *shape;
    let keys = heads.keys * heads.width;
    Ok(LayerWeights {
        attention_norm: tensors.vector(&name("attn_norm"), width)?,
        query: tensors.matrix(&name("attn_q"), width, width)?,
        key: tensors.matrix(&name("attn_k"), keys, width)?,
        value: tensors.matrix(&name("attn_v"), keys, width)?,
        attention_output: tensors.matrix(&name("attn_output"), width, width)?,
        feed_norm: tensors.vector(&name("ffn_norm"), width)?,
        gate: tensors.matrix(&name("ffn_gate"), hidden, width)?,
        up: tensors.matrix(&name("ffn_up"), hidden, width)?,
        down: tensors.matrix(&name("ffn_down"), width, hidden)?,
    })
}

/// What the header says is there. What is taken is empty; only whether it has the right shape counts.
struct Expected<'a>(HashMap<&'a str, Extent<'a>>);

impl Expected<'_> {
    fn take(&mut self, name: &str, rows: usize, columns: usize) -> Result<Encoding, WeightsError> {
        let extent = self.0.remove(name).ok_or_else(|| missing(name))?;
        if (extent.rows, extent.columns) != (rows, columns) {
            return Err(damaged(&format!("the tensor `{name}` is not {rows} rows of {columns}")));
        }
        Ok(extent.encoding)
    }
}

impl Tensors for Expected<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, WeightsError> {
        let encoding = self.take(name, rows, columns)?;
        if !columns.is_multiple_of(COLUMNS) {
            return Err(unsupported(&format!("tensor `{name}` has rows of {columns}, no multiple of 32")));
        }
        Matrix::pack(&Tensor { encoding, columns, rows: 0, bytes: &[] }, name)
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Box<[f32]>, WeightsError> {
        if self.take(name, 1, length)? != Encoding::F32 {
            return Err(unsupported(&format!("tensor `{name}` is not of type F32")));
        }
        Ok(Box::default())
    }
}

/// What was read, each in the form in which it is computed with.
struct Packed<'a> {
    matrices: HashMap<&'a str, Matrix>,
    vectors: HashMap<&'a str, Box<[f32]>>,
}

impl<'a> Packed<'a> {
    /// Reads tensors whose places and shapes were found right, in the order in which they lie in the file. A file that was
    /// shortened in the meantime ends early, like one that always was too short.
    fn read(extents: &[Extent<'a>], data: &mut dyn Read) -> Result<Self, WeightsError> {
        let mut packed = Self { matrices: HashMap::new(), vectors: HashMap::new() };
        // One buffer for all: its pages stay warm.
        let longest = extents.iter().map(|extent| extent.length).max().unwrap_or(0);
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(longest).map_err(|error| WeightsError::Unreadable(error.to_string()))?;
        let mut at = 0;
        for extent in extents {
            let gap = (extent.offset - at) as u64;
            std::io::copy(&mut data.take(gap), &mut std::io::sink()).map_err(unreadable)?;
            buffer.clear();
            data.take(extent.length as u64).read_to_end(&mut buffer).map_err(unreadable)?;
            if buffer.len() != extent.length {
                return Err(damaged("it ends early"));
            }
            at = extent.offset + extent.length;
            let Extent { name, encoding, columns, rows, .. } = *extent;
            if encoding == Encoding::F32 {
                let numbers = buffer.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
                packed.vectors.insert(name, numbers.collect());
            } else {
                let tensor = Tensor { encoding, columns, rows, bytes: &buffer };
                packed.matrices.insert(name, Matrix::pack(&tensor, name)?);
            }
        }
        Ok(packed)
    }
}

impl Tensors for Packed<'_> {
    fn has(&self, name: &str) -> bool {
        self.matrices.contains_key(name)
    }

    fn matrix(&mut self, name: &str, _: usize, _: usize) -> Result<Matrix, WeightsError> {
        self.matrices.remove(name).ok_or_else(|| missing(name))
    }

    fn vector(&mut self, name: &str, _: usize) -> Result<Box<[f32]>, WeightsError> {
        self.vectors.remove(name).ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> WeightsError {
    damaged(&format!("the tensor `{name}` is missing"))
}
