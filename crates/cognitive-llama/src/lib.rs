//! From a GGUF file to the probabilities of the next token. Knows nothing of JSON, prompts or contracts.
//!
//! It computes the architectures in `architectures` with weights in the block types of `blocks`, and refuses the rest by
//! name. What a token's logits are does not depend on how the text before it was cut, nor on the number of threads: bit by
//! bit the same. It does depend on the processor in the last digits, see [`Kernel`].
//!
//! Read the files in this order: `gguf`, `architectures`, `shape` and `weights` (what is in a file), `blocks`, `tiles` and
//! `activations` (how numbers lie in memory), `raw` (the vector instructions, and all `unsafe` code), `product`, `rope`,
//! `attention` and `forward` (the computation), `session`, `board` and `crew` (who computes what), `tokenizer`,
//! `pieces` and `merger`.

mod activations;
mod architectures;
mod attention;
mod blocks;
mod board;
mod crew;
mod exp;
mod forward;
mod gates;
mod gguf;
mod letters;
mod likelihood;
mod merger;
mod norm;
mod pieces;
mod product;
mod raw;
mod rope;
mod session;
mod shape;
mod tiles;
mod tokenizer;
mod weights;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gguf::{Gguf, Unread};
use shape::ModelShape;
use weights::ModelWeights;

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
    pub fn read(mut from: impl Read, length: u64) -> Result<Self, WeightsError> {
        let mut beginning = Vec::new();
        let mut wanted = HEADER.min(length);
        loop {
            let missing = wanted.saturating_sub(beginning.len() as u64);
            from.by_ref().take(missing).read_to_end(&mut beginning).map_err(gguf::unreadable)?;
            if (beginning.len() as u64) < wanted {
                return Err(gguf::damaged("it ends early"));
            }
            match Self::after(&beginning, length, &mut from) {
                Err(Unread::Refused(error)) => return Err(error),
                Err(Unread::GoesOn) if wanted >= MAX_HEADER_LENGTH.min(length) => {
                    return Err(gguf::damaged("its header does not end"));
                }
                Err(Unread::GoesOn) => wanted = wanted.saturating_mul(4).min(length),
                Ok(model) => return Ok(model),
            }
        }
    }

    /// The model whose file begins like this and goes on there.
    fn after(beginning: &[u8], length: u64, from: &mut dyn Read) -> Result<Self, Unread> {
        let gguf = Gguf::read(beginning, usize::try_from(length).unwrap_or(usize::MAX))?;
        let shape = ModelShape::read(&gguf)?;
        let tokenizer = Tokenizer::read(&gguf)?;
        let name = gguf.text("general.name").unwrap_or("unnamed").into();
        let chat_template = gguf.text("tokenizer.chat_template").map(Into::into);
        // The header is filled up to a round number, which may lie beyond what is here.
        let rest = beginning.get(gguf.end..).unwrap_or_default();
        let gap = gguf.end.saturating_sub(beginning.len()) as u64;
        io::copy(&mut from.take(gap), &mut io::sink()).map_err(gguf::unreadable)?;
        let weights = ModelWeights::read(&gguf, &shape, tokenizer.len(), &mut rest.chain(from))?;
        Ok(Self { shape, weights, tokenizer, name, chat_template, kernel: Kernel::best(), sha256: None })
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
