//! The embedded model: a small language model (`cognitive_llama`), bound to a module's contract token by token. It
//! fetches nothing and reads one file: the weights that it is given. It writes only packed weights, into a file that
//! the caller provides.
//!
//! # Modules
//!
//! From the bottom up:
//!
//! - The engine: `cognitive_llama` computes, `model` is its interface here, `weights_hash` verifies the weights.
//! - Writing: `grammar` knows the allowed tokens, `sample` chooses one, and `generate` writes a document with both.
//!   `json_cursor` and `shape` track the place in the document, `copying` restricts values to pieces of the input,
//!   `shortest_ending` closes a document in time, `utf8` converts tokens to text.
//! - Decisions: `decide` makes the decisions of the contract before anything is written, `say` words them, `confidence`
//!   measures how sure the model was, `trainer` trains decisions on labelled cases.
//! - Prompts: `chat` builds the prompt, `thought` lets the model think before it answers.
//! - Serving: `provider` is the port that the runtime calls. `queue` and `worker` handle parallel requests, `text_memory`
//!   limits their memory, `beginnings` is the prefix cache.

mod beginnings;
mod chat;
mod confidence;
mod copying;
mod decide;
mod generate;
mod grammar;
mod json_cursor;
mod model;
mod provider;
mod queue;
mod sample;
mod say;
mod shape;
mod shortest_ending;
mod text_memory;
mod thought;
#[cfg(test)]
mod toy;
mod trainer;
mod utf8;
mod weights_hash;
mod worker;

pub use provider::{EmbeddedProvider, OpenError};
pub use trainer::TrainingPlan;
pub use weights_hash::{KnownHashes, PackedWeights};
