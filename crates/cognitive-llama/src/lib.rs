//! Computes the probabilities of the next token from a GGUF file. Knows nothing of JSON, prompts or contracts.
//!
//! Computes the architectures in `architectures` with weights in the block types of `blocks`, and refuses all others by
//! name. The logits of a token are the same bits for every split of the text before it, every batch and every number of
//! threads. Their last digits do depend on the processor, see [`Kernel`].
//!
//! # Modules
//!
//! In reading order:
//!
//! 1. The contents of a file: `gguf`, `architectures` (one file each), `shape` and `weights`.
//! 2. The layout in memory: `blocks` (one file per block type), `tiles` and `activations`; `packed_file` shares it
//!    between processes.
//! 3. The computation: `raw` (the vector instructions), `product`, `rope`, `norm`, `gates`, `exp`, `attention`,
//!    `forward` and `likelihood`.
//! 4. The threads: `batch_step`, `layer_progress` (prompts) and `helper_pool` (single tokens). Single texts and batches: `session` and
//!    `ensemble`.
//! 5. Text: `tokenizer`, `byte_pairs` with `pieces`, `letters` and `merger`, and `scored_pieces`.
//! 6. System-specific code: `platform`.

mod activations;
mod architectures;
mod attention;
mod batch_step;
mod blocks;
mod byte_pairs;
mod ensemble;
mod exp;
mod forward;
mod gates;
mod gguf;
mod helper_pool;
mod layer_progress;
mod letters;
mod likelihood;
mod merger;
mod norm;
mod packed_file;
mod pieces;
mod platform;
mod product;
mod raw;
mod rope;
mod scored_pieces;
mod session;
mod shape;
mod tiles;
mod tokenizer;
mod weights;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gguf::{Extent, Gguf, HeaderGap};
use shape::ModelShape;
use weights::{ModelWeights, PackedTensors};

pub use ensemble::{Ensemble, EnsembleSession};
pub use exp::sum_of_powers;
pub use raw::Kernel;
pub use session::{FeedError, TokenSession};
pub use tokenizer::Tokenizer;

/// The alternative for models that are refused here.
const ELSEWHERE: &str = "other models go through an OpenAI-compatible server with `--base-url`";

/// The number of bytes read first to find the header; usually enough for all of it. Headers beyond the maximum are
/// refused, because no vocabulary needs that much.
const HEADER: u64 = 4 << 20;
const MAX_HEADER_LENGTH: u64 = 512 << 20;

/// Weights and vocabulary, ready for computation. Immutable; shared between sessions.
#[derive(Debug)]
pub struct Model {
    shape: ModelShape,
    weights: ModelWeights,
    tokenizer: Tokenizer,
    name: Box<str>,
    chat_template: Option<Box<str>>,
    kernel: Kernel,
    sha256: Option<Box<str>>,
}

/// The reason why a file cannot be used as a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file cannot be read.
    Unreadable(String),
    /// The file is not GGUF, or it is damaged.
    Damaged(String),
    /// This engine does not compute this kind of model. The text names the kind and an alternative.
    Unsupported(String),
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Unreadable(why) | Self::Damaged(why) | Self::Unsupported(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for WeightsError {}

impl From<WeightsError> for HeaderGap {
    fn from(error: WeightsError) -> Self {
        Self::Refused(error)
    }
}

impl Model {
    /// Returns the number of parameters of the model in a file, as [`Self::parameters`] counts them. Reads only the
    /// header.
    pub fn parameters_in(path: &Path) -> Result<u64, WeightsError> {
        let unreadable =
            |error: io::Error| WeightsError::Unreadable(format!("cannot read `{}`: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        with_header(file, length, &mut |header, _| {
            let tokens = header.gguf.list("tokenizer.ggml.tokens").map_or(0, |tokens| tokens.len());
            Ok(ModelShape::read(&header.gguf)?.parameters(tokens))
        })
    }

    /// Reads a file, checks it and repacks its weights.
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        let unreadable =
            |error: io::Error| WeightsError::Unreadable(format!("cannot read `{}`: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        Self::read(file, length)
    }

    /// Like [`Self::open`], for weights that are already in memory. They are copied.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WeightsError> {
        Self::read(bytes, bytes.len() as u64)
    }

    /// Like [`Self::open`], for weights from any reader, `length` bytes in all. Reads them once, from front to back,
    /// into buffers. The file is not mapped, so a file that is shortened meanwhile is only reported as damaged. Bytes
    /// after the last tensor are not read.
    pub fn read(from: impl Read, length: u64) -> Result<Self, WeightsError> {
        with_header(from, length, &mut |header, data| {
            let parts = ModelParts::read(&header.gguf)?;
            let tensors = PackedTensors::read(&parts.extents, data)?;
            parts.with(tensors)
        })
    }

    /// Packs weights for [`Self::map`] into an empty file that is readable and writable. `sha256` identifies them
    /// there.
    pub fn pack(from: impl Read, length: u64, sha256: &str, to: &File) -> Result<(), WeightsError> {
        with_header(from, length, &mut |header, data| packed_file::write(header, data, sha256, to))
    }

    /// Opens weights that [`Self::pack`] has packed, by mapping the file. All processes that map it share one copy in
    /// memory. The caller ensures that the file is not shortened, which would end this process. Refuses packed files of
    /// another engine version, of other weights, or with a wrong checksum.
    pub fn map(packed: &File, sha256: &str) -> Result<Self, WeightsError> {
        packed_file::open(packed, sha256)
    }

    /// Returns the model with the hash of its file.
    #[must_use]
    pub fn with_sha256(self, sha256: &str) -> Self {
        Self { sha256: Some(sha256.into()), ..self }
    }

    /// The hash of its file, if it is known.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// Returns the model with other vector instructions, to compare them.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// The vector instructions of this model.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The largest number of tokens in a text.
    #[must_use]
    pub fn context_length(&self) -> usize {
        self.shape.context
    }

    /// The memory per token of a text, in bytes: the keys and values of all layers.
    #[must_use]
    pub fn bytes_per_token(&self) -> u64 {
        let ModelShape { layers, heads, .. } = &self.shape;
        (layers * heads.keys * heads.width * 2 * size_of::<f32>()) as u64
    }

    /// The number of parameters: those of its matrices, with the matrix of the vocabulary counted once.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.shape.parameters(self.tokenizer.len())
    }

    /// The chat template of the file. It is not executed here.
    #[must_use]
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// The name in the file, such as `SmolLM2 135M Instruct`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The header of a file of weights.
struct FileHeader<'a> {
    gguf: Gguf<'a>,
    /// The bytes of the header that were read.
    bytes: &'a [u8],
    /// The length of the file.
    length: u64,
}

/// Reads the header of weights and passes it on with the data after it.
fn with_header<T>(
    mut from: impl Read,
    length: u64,
    then: &mut dyn FnMut(&FileHeader, &mut dyn Read) -> Result<T, WeightsError>,
) -> Result<T, WeightsError> {
    let mut beginning = Vec::new();
    let mut wanted = HEADER.min(length);
    loop {
        let missing = wanted.saturating_sub(beginning.len() as u64);
        from.by_ref().take(missing).read_to_end(&mut beginning).map_err(gguf::unreadable)?;
        if (beginning.len() as u64) < wanted {
            return Err(gguf::damaged_error("it ends early"));
        }
        match Gguf::read(&beginning, usize::try_from(length).unwrap_or(usize::MAX)) {
            Err(HeaderGap::Refused(error)) => return Err(error),
            Err(HeaderGap::GoesOn) if wanted >= MAX_HEADER_LENGTH.min(length) => {
                return Err(gguf::damaged_error("its header does not end"));
            }
            Err(HeaderGap::GoesOn) => wanted = wanted.saturating_mul(4).min(length),
            Ok(gguf) => {
                // The header is padded to a round number, which may be beyond the bytes that were read.
                let (bytes, rest) = beginning.split_at(gguf.end.min(beginning.len()));
                let gap = (gguf.end - bytes.len()) as u64;
                io::copy(&mut from.by_ref().take(gap), &mut io::sink()).map_err(gguf::unreadable)?;
                return then(&FileHeader { gguf, bytes, length }, &mut rest.chain(from));
            }
        }
    }
}

/// Everything about a model except the numbers of its tensors.
struct ModelParts<'a> {
    shape: ModelShape,
    tokenizer: Tokenizer,
    extents: Vec<Extent<'a>>,
    name: Box<str>,
    chat_template: Option<Box<str>>,
}

impl<'a> ModelParts<'a> {
    /// Reads the parts from a header. Fails if its tensors do not match the architecture.
    fn read(gguf: &Gguf<'a>) -> Result<Self, WeightsError> {
        let shape = ModelShape::read(gguf)?;
        let tokenizer = Tokenizer::read(gguf)?;
        let extents = ModelWeights::extents(gguf, &shape, tokenizer.len())?;
        let name = gguf.text("general.name").unwrap_or("unnamed").into();
        let chat_template = gguf.text("tokenizer.chat_template").map(Into::into);
        Ok(Self { shape, tokenizer, extents, name, chat_template })
    }

    /// Creates the model with these tensors.
    fn with(self, tensors: PackedTensors) -> Result<Model, WeightsError> {
        let Self { shape, tokenizer, name, chat_template, .. } = self;
        let weights = ModelWeights::from_tensors(tensors, &shape, tokenizer.len())?;
        Ok(Model { shape, weights, tokenizer, name, chat_template, kernel: Kernel::fastest(), sha256: None })
    }
}
