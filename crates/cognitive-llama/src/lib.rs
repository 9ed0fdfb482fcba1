//! From a GGUF file to the probabilities of the next token. Knows nothing of JSON, prompts or contracts.
//!
//! It computes the architectures in `architectures` with weights in the block types of `blocks`, and refuses the rest by
//! name. What a token's logits are does not depend on how the text before it was cut, nor on the texts that are read beside
//! it, nor on the number of threads: bit by bit the same. It does depend on the processor in the last digits, see [`Kernel`].
//!
//! Read the files in this order: `gguf`, `architectures`, `shape` and `weights` (what is in a file), `blocks`, `tiles` and
//! `activations` (how numbers lie in memory), `packed_file` (how processes share them), `raw` (the vector instructions), `product`, `rope`,
//! `attention` and `forward` (the computation), `together`, `board` and `crew` (who computes what), `session` and `ensemble`
//! (texts that are read alone, and beside others), `tokenizer`,
//! `byte_pairs` with `pieces` and `merger`, and `scored_pieces`.

mod activations;
mod architectures;
mod attention;
mod blocks;
mod board;
mod byte_pairs;
mod crew;
mod ensemble;
mod exp;
mod forward;
mod gates;
mod gguf;
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
mod together;
mod tokenizer;
mod weights;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gguf::{Extent, Gguf, Unread};
use shape::ModelShape;
use weights::{ModelWeights, PackedTensors};

pub use ensemble::{Ensemble, EnsembleSession};
pub use exp::sum_of_powers;
pub use raw::Kernel;
pub use session::{FeedError, TokenSession};
pub use tokenizer::Tokenizer;

/// Where to take a model that is refused here.
const ELSEWHERE: &str = "other models go through an OpenAI-compatible server with `--base-url`";

/// How much of a file is read to find its header; usually that is all of it. A header longer than any vocabulary is none.
const HEADER: u64 = 4 << 20;
const MAX_HEADER_LENGTH: u64 = 512 << 20;

/// Weights and vocabulary, ready to compute with. Immutable; shared between sessions.
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

/// Why a file cannot serve as a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file cannot be read.
    Unreadable(String),
    /// It is not GGUF, or it is damaged.
    Damaged(String),
    /// It is a model of a kind that this engine does not compute; says which and where to take it instead.
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

impl From<WeightsError> for Unread {
    fn from(error: WeightsError) -> Self {
        Self::Refused(error)
    }
}

impl Model {
    /// How many numbers the model in a file has learned, as [`Self::parameters`] counts them. Reads only the header.
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

    /// The same for weights that are in memory already. They are copied.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WeightsError> {
        Self::read(bytes, bytes.len() as u64)
    }

    /// The same for weights that come from anywhere, `length` bytes in all. They are read once, from front to back, and into
    /// the buffers that they are repacked from: not mapped, so that a file that somebody shortens in the meantime is damaged
    /// and no more. What follows the last tensor is not read.
    pub fn read(from: impl Read, length: u64) -> Result<Self, WeightsError> {
        with_header(from, length, &mut |header, data| {
            let parts = ModelParts::of(&header.gguf)?;
            let tensors = PackedTensors::read(&parts.extents, data)?;
            parts.with(tensors)
        })
    }

    /// Packs such weights into an empty file that can be read and written, for [`Self::map`]. `sha256` names them there.
    pub fn pack(from: impl Read, length: u64, sha256: &str, to: &File) -> Result<(), WeightsError> {
        with_header(from, length, &mut |header, data| packed_file::write(header, data, sha256, to))
    }

    /// Opens weights that [`Self::pack`] has packed, by mapping the file: all processes that do so compute with one copy in
    /// memory. The caller sees to it that nobody shortens the file, which would end this process. Refuses a file of another
    /// version of this engine, of other weights, or one that is not as it was written.
    pub fn map(packed: &File, sha256: &str) -> Result<Self, WeightsError> {
        packed_file::open(packed, sha256)
    }

    /// The same with the hash of its file.
    #[must_use]
    pub fn with_sha256(self, sha256: &str) -> Self {
        Self { sha256: Some(sha256.into()), ..self }
    }

    /// The hash of its file, if somebody has made it.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// The same model computed with other instructions, to compare them.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// What it computes with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// How many tokens fit.
    #[must_use]
    pub fn context_length(&self) -> usize {
        self.shape.context
    }

    /// The memory that each token of a text takes, in bytes: the keys and values of all layers.
    #[must_use]
    pub fn bytes_per_token(&self) -> u64 {
        let ModelShape { layers, heads, .. } = &self.shape;
        (layers * heads.keys * heads.width * 2 * size_of::<f32>()) as u64
    }

    /// How many numbers it has learned: those of its matrices, the one of its vocabulary counted once.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.shape.parameters(self.tokenizer.len())
    }

    /// The template of its conversations, as the file has it; it is not run here.
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

/// The beginning of a file of weights.
struct FileHeader<'a> {
    gguf: Gguf<'a>,
    /// Its bytes, as far as they say something.
    bytes: &'a [u8],
    /// How long the file is.
    length: u64,
}

/// Reads the header of weights, and hands it on with what follows it.
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
            return Err(gguf::damaged("it ends early"));
        }
        match Gguf::read(&beginning, usize::try_from(length).unwrap_or(usize::MAX)) {
            Err(Unread::Refused(error)) => return Err(error),
            Err(Unread::GoesOn) if wanted >= MAX_HEADER_LENGTH.min(length) => {
                return Err(gguf::damaged("its header does not end"));
            }
            Err(Unread::GoesOn) => wanted = wanted.saturating_mul(4).min(length),
            Ok(gguf) => {
                // The header is filled up to a round number, which may lie beyond what is here.
                let (bytes, rest) = beginning.split_at(gguf.end.min(beginning.len()));
                let gap = (gguf.end - bytes.len()) as u64;
                io::copy(&mut from.by_ref().take(gap), &mut io::sink()).map_err(gguf::unreadable)?;
                return then(&FileHeader { gguf, bytes, length }, &mut rest.chain(from));
            }
        }
    }
}

/// Everything about a model but the numbers of its tensors.
struct ModelParts<'a> {
    shape: ModelShape,
    tokenizer: Tokenizer,
    extents: Vec<Extent<'a>>,
    name: Box<str>,
    chat_template: Option<Box<str>>,
}

impl<'a> ModelParts<'a> {
    /// What a header says, if its tensors are those of the architecture.
    fn of(gguf: &Gguf<'a>) -> Result<Self, WeightsError> {
        let shape = ModelShape::read(gguf)?;
        let tokenizer = Tokenizer::read(gguf)?;
        let extents = ModelWeights::extents(gguf, &shape, tokenizer.len())?;
        let name = gguf.text("general.name").unwrap_or("unnamed").into();
        let chat_template = gguf.text("tokenizer.chat_template").map(Into::into);
        Ok(Self { shape, tokenizer, extents, name, chat_template })
    }

    /// The model with these tensors.
    fn with(self, tensors: PackedTensors) -> Result<Model, WeightsError> {
        let Self { shape, tokenizer, name, chat_template, .. } = self;
        let weights = ModelWeights::of(tensors, &shape, tokenizer.len())?;
        Ok(Model { shape, weights, tokenizer, name, chat_template, kernel: Kernel::best(), sha256: None })
    }
}
