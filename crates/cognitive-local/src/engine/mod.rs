//! From a GGUF file to the probabilities of the next token. Knows nothing of JSON, prompts or contracts.
//!
//! It computes one architecture, `llama`, with weights in `Q4_0`, `Q4_1`, `Q8_0` or `F16`, and refuses the rest. What a token's
//! logits are does not depend on how the text before it was cut, nor on the number of threads: bit by bit the same. It
//! does depend on the processor in the last digits, see [`Kernel`].
//!
//! Read the files in this order: `gguf` and `weights` (what is in a file), `tiles` and `activations` (how numbers lie in
//! memory), `raw` (the vector instructions, and all `unsafe` code), `product`, `attention` and `forward` (the
//! computation), `session` and `board` (who computes what), `tokenizer` and `pieces`.

mod activations;
mod attention;
mod board;
mod exp;
mod forward;
mod gguf;
mod letters;
mod likelihood;
mod pieces;
mod product;
mod raw;
mod session;
mod tiles;
mod tokenizer;
mod weights;

use std::fmt;
use std::path::Path;

use gguf::Gguf;
use weights::{Shape, Weights};

pub(crate) use exp::sum_of_powers;
pub use raw::Kernel;
pub use session::{FeedError, Session};
pub use tokenizer::Tokenizer;

/// Where to take a model that is refused here.
const ELSEWHERE: &str = "other models go through an OpenAI-compatible server with `--base-url`";

/// Weights and vocabulary, ready to compute with. Immutable; shared between sessions.
#[derive(Debug)]
pub struct Model {
    shape: Shape,
    weights: Weights,
    tokenizer: Tokenizer,
    name: Box<str>,
    kernel: Kernel,
}

/// Why a file cannot serve as a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable(String),
    /// It is not GGUF, or it is damaged.
    Damaged(String),
    /// It is a model of a kind that this engine does not compute; says which and where to take it instead.
    Unsupported(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Unreadable(why) | Self::Damaged(why) | Self::Unsupported(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LoadError {}

impl Model {
    /// Maps a file into memory, checks it and repacks its weights.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        raw::with_mapped(path, Self::from_bytes)
    }

    /// The same for weights that are part of the program.
    pub fn from_static(bytes: &'static [u8]) -> Result<Self, LoadError> {
        Self::from_bytes(bytes)
    }

    /// The same for weights that have been read already. They are copied.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        let gguf = Gguf::read(bytes)?;
        let shape = Shape::read(&gguf)?;
        let tokenizer = Tokenizer::read(&gguf)?;
        let weights = Weights::read(&gguf, &shape, tokenizer.len())?;
        let name = gguf.text("general.name").unwrap_or("unnamed").into();
        Ok(Self { shape, weights, tokenizer, name, kernel: Kernel::best() })
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

    /// The name in the file, such as `SmolLM2 135M Instruct`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
