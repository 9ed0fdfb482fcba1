//! Reads the weights of a model from a GGUF file. Checks that the tensors and their shapes match the architecture, so
//! that the computation can rely on every length. Refuses tensors that it would not use.

use std::collections::HashMap;
use std::io::Read;

use super::WeightsError;
use super::blocks::Encoding;
use super::gguf::{Extent, Gguf, Tensor, damaged_error, unreadable, unsupported_error};
use super::shape::ModelShape;
use super::tiles::{COLUMNS, Matrix};

/// All weights.
#[derive(Debug)]
pub(super) struct ModelWeights {
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<LayerWeights>,
    pub(super) norm: Box<[f32]>,
    /// The divisors of the rotation angles, if the model has them.
    pub(super) rope_factors: Option<Box<[f32]>>,
    /// `None` if the embedding serves for both.
    output: Option<Matrix>,
}

/// The weights of one layer.
#[derive(Debug)]
pub(super) struct LayerWeights {
    pub(super) attention_norm: Box<[f32]>,
    pub(super) query: Projection,
    pub(super) key: Projection,
    pub(super) value: Matrix,
    pub(super) value_bias: Option<Box<[f32]>>,
    pub(super) attention_output: Matrix,
    /// The norm of the output of attention.
    pub(super) attention_outer_norm: Option<Box<[f32]>>,
    pub(super) feed_norm: Box<[f32]>,
    pub(super) gate: Matrix,
    pub(super) up: Matrix,
    pub(super) down: Matrix,
    /// The norm of the output of the feed-forward part.
    pub(super) feed_outer_norm: Option<Box<[f32]>>,
}

/// The projection of a vector to queries or keys.
#[derive(Debug)]
pub(super) struct Projection {
    pub(super) matrix: Matrix,
    pub(super) bias: Option<Box<[f32]>>,
    /// The norm of each head.
    pub(super) norm: Option<Box<[f32]>>,
}

impl ModelWeights {
    /// Returns the positions of the tensors. All positions and shapes are checked before any tensor is read.
    pub(super) fn extents<'a>(
        gguf: &Gguf<'a>,
        shape: &ModelShape,
        vocabulary: usize,
    ) -> Result<Vec<Extent<'a>>, WeightsError> {
        let extents = gguf.extents()?;
        let mut expected = DeclaredTensors(extents.iter().map(|extent| (extent.name, *extent)).collect());
        Self::build(&mut expected, shape, vocabulary)?;
        if let Some(name) = expected.0.keys().min() {
            let architecture = shape.architecture.name;
            return Err(unsupported_error(&format!(
                "unknown tensor for the architecture `{architecture}`: `{name}`"
            )));
        }
        Ok(extents)
    }

    /// Creates the weights from tensors whose shapes were checked.
    pub(super) fn from_tensors(
        mut tensors: PackedTensors,
        shape: &ModelShape,
        vocabulary: usize,
    ) -> Result<Self, WeightsError> {
        Self::build(&mut tensors, shape, vocabulary)
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
        let rope_factors = optional(tensors, "rope_freqs.weight", shape.heads.width / 2)?;
        let own = tensors.has("output.weight");
        let output = own.then(|| tensors.matrix("output.weight", vocabulary, shape.width)).transpose()?;
        Ok(Self { embedding, layers, norm, rope_factors, output })
    }

    /// The matrix that turns a vector into logits.
    pub(super) fn head(&self) -> &Matrix {
        self.output.as_ref().unwrap_or(&self.embedding)
    }
}

/// Tensors that can be taken by name, each once.
trait Tensors {
    fn has(&self, name: &str) -> bool;
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, WeightsError>;
    fn vector(&mut self, name: &str, length: usize) -> Result<Box<[f32]>, WeightsError>;
}

fn layer(tensors: &mut impl Tensors, index: usize, shape: &ModelShape) -> Result<LayerWeights, WeightsError> {
    let name = |part: &str| format!("blk.{index}.{part}.weight");
    let ModelShape { width, hidden, architecture, .. } = *shape;
    let (queries, keys) = (shape.query_width(), shape.key_width());
    let outer = |tensors: &mut _, part: &str| {
        architecture.outer_norms.then(|| Tensors::vector(tensors, &name(part), width)).transpose()
    };
    Ok(LayerWeights {
        attention_norm: tensors.vector(&name("attn_norm"), width)?,
        query: projection(tensors, &format!("blk.{index}.attn_q"), queries, shape)?,
        key: projection(tensors, &format!("blk.{index}.attn_k"), keys, shape)?,
        value: tensors.matrix(&name("attn_v"), keys, width)?,
        value_bias: optional(tensors, &format!("blk.{index}.attn_v.bias"), keys)?,
        attention_output: tensors.matrix(&name("attn_output"), width, queries)?,
        attention_outer_norm: outer(tensors, "post_attention_norm")?,
        feed_norm: tensors.vector(&name("ffn_norm"), width)?,
        gate: tensors.matrix(&name("ffn_gate"), hidden, width)?,
        up: tensors.matrix(&name("ffn_up"), hidden, width)?,
        down: tensors.matrix(&name("ffn_down"), width, hidden)?,
        feed_outer_norm: outer(tensors, "post_ffw_norm")?,
    })
}

fn projection(
    tensors: &mut impl Tensors,
    name: &str,
    rows: usize,
    shape: &ModelShape,
) -> Result<Projection, WeightsError> {
    let matrix = tensors.matrix(&format!("{name}.weight"), rows, shape.width)?;
    let bias = optional(tensors, &format!("{name}.bias"), rows)?;
    let norms = shape.architecture.head_norms;
    let norm =
        norms.then(|| tensors.vector(&format!("{name}_norm.weight"), shape.heads.width)).transpose()?;
    Ok(Projection { matrix, bias, norm })
}

/// Returns a vector that not every model of an architecture has.
fn optional(
    tensors: &mut impl Tensors,
    name: &str,
    length: usize,
) -> Result<Option<Box<[f32]>>, WeightsError> {
    tensors.has(name).then(|| tensors.vector(name, length)).transpose()
}

/// The tensors declared by the header. It returns empty tensors; only their shapes are checked.
struct DeclaredTensors<'a>(HashMap<&'a str, Extent<'a>>);

impl DeclaredTensors<'_> {
    fn take(&mut self, name: &str, rows: usize, columns: usize) -> Result<Encoding, WeightsError> {
        let extent = self.0.remove(name).ok_or_else(|| missing(name))?;
        if (extent.rows, extent.columns) != (rows, columns) {
            return Err(damaged_error(&format!(
                "the tensor `{name}` does not have {rows} rows of {columns}"
            )));
        }
        Ok(extent.encoding)
    }
}

impl Tensors for DeclaredTensors<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, WeightsError> {
        let encoding = self.take(name, rows, columns)?;
        if !columns.is_multiple_of(COLUMNS) {
            return Err(unsupported_error(&format!(
                "the rows of tensor `{name}` have {columns} columns, which is not a multiple of 32"
            )));
        }
        Matrix::pack(&Tensor { encoding, columns, rows: 0, bytes: &[] }, name)
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Box<[f32]>, WeightsError> {
        if self.take(name, 1, length)? != Encoding::F32 {
            return Err(unsupported_error(&format!("tensor `{name}` is not of type F32")));
        }
        Ok(Box::default())
    }
}

/// Tensors in the layout of the computation.
#[derive(Debug, Default)]
pub(super) struct PackedTensors<'a> {
    matrices: HashMap<&'a str, Matrix>,
    vectors: HashMap<&'a str, Box<[f32]>>,
}

/// One packed tensor.
pub(super) enum PackedTensor {
    Matrix(Matrix),
    Vector(Box<[f32]>),
}

impl<'a> PackedTensors<'a> {
    /// Reads tensors whose positions and shapes were checked.
    pub(super) fn read(extents: &[Extent<'a>], data: &mut dyn Read) -> Result<Self, WeightsError> {
        let mut tensors = Self::default();
        read_each(extents, data, &mut |extent, tensor| {
            tensors.put(extent.name, tensor);
            Ok(())
        })?;
        Ok(tensors)
    }

    pub(super) fn put(&mut self, name: &'a str, tensor: PackedTensor) {
        match tensor {
            PackedTensor::Matrix(matrix) => drop(self.matrices.insert(name, matrix)),
            PackedTensor::Vector(vector) => drop(self.vectors.insert(name, vector)),
        }
    }
}

/// Reads the bytes after the header once, in file order, and passes each tensor on. A file that was shortened meanwhile
/// is refused, like one that was always too short.
pub(super) fn read_each<'a>(
    extents: &[Extent<'a>],
    data: &mut dyn Read,
    to: &mut dyn FnMut(&Extent<'a>, PackedTensor) -> Result<(), WeightsError>,
) -> Result<(), WeightsError> {
    // One buffer for all tensors keeps its pages in the cache.
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
            return Err(damaged_error("it ends early"));
        }
        at = extent.offset + extent.length;
        let Extent { name, encoding, columns, rows, .. } = *extent;
        let tensor = if encoding == Encoding::F32 {
            PackedTensor::Vector(numbers(&buffer))
        } else {
            PackedTensor::Matrix(Matrix::pack(&Tensor { encoding, columns, rows, bytes: &buffer }, name)?)
        };
        to(extent, tensor)?;
    }
    Ok(())
}

/// The numbers of a vector.
pub(super) fn numbers(bytes: &[u8]) -> Box<[f32]> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

impl Tensors for PackedTensors<'_> {
    fn has(&self, name: &str) -> bool {
        self.matrices.contains_key(name) || self.vectors.contains_key(name)
    }

    fn matrix(&mut self, name: &str, _: usize, _: usize) -> Result<Matrix, WeightsError> {
        self.matrices.remove(name).ok_or_else(|| missing(name))
    }

    fn vector(&mut self, name: &str, _: usize) -> Result<Box<[f32]>, WeightsError> {
        self.vectors.remove(name).ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> WeightsError {
    damaged_error(&format!("the tensor `{name}` is missing"))
}
