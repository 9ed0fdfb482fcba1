//! The embedded model: a small language model (`cognitive_llama`), bound to a module's contract token by token. It
//! fetches nothing and reads one file: the weights that it is given. It writes only packed weights, into a file that
//! the caller provides.
//!
//! From the bottom up: `cognitive_llama` computes, `grammar` knows the allowed tokens, `sample` chooses one, and
//! `generate` writes a document with both. `decide` makes the decisions of the contract beforehand, `shortest_ending`
//! closes a document in time, and `confidence` measures how sure the model was. `chat` builds the prompt, and `thought`
//! lets the model think before it answers. `queue`, `text_room`, `beginnings` and `worker` serve parallel requests; the
//! runtime calls `provider`. `trainer` trains decisions on labelled cases.

mod beginnings;
mod chat;
mod confidence;
mod copying;
mod decide;
mod generate;
mod grammar;
mod hashed;
mod json_cursor;
mod model;
mod provider;
mod queue;
mod sample;
mod say;
mod shape;
mod shortest_ending;
mod text_room;
mod thought;
#[cfg(test)]
mod toy;
mod trainer;
mod utf8;
mod worker;

pub use hashed::{KnownHashes, PackedWeights};
pub use provider::{EmbeddedProvider, OpenError};
pub use trainer::TrainingPlan;
