//! The embedded model: a small Llama (`cognitive_llama`), bound to a module's contract token by token.
//! It fetches nothing, writes nothing and reads one file: the weights that it is handed.
//!
//! From below: `cognitive_llama` computes, `guide` knows what may come next, `sample` chooses, `compose` writes one document with
//! both, `decide` settles beforehand what the contract wants decided, `closing` ends it in time and `confidence` measures how sure the model was. `chat` makes the prompt, `thought` lets the model think before it answers; `queue`,
//! `text_room`, `beginnings` and `worker` serve many requests at the same time; `provider` is what the runtime sees. `trainer` lets
//! a model learn from labelled cases how it decides best.

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
