//! A reply while it is being written: what can be shown of it, and whether it can still become valid.
//!
//! [`Scanner`] reads raw text in pieces and tells steps; `deltas.rs` makes chunks of them, [`Fuse`] judges them against
//! the contract. Nothing here decides what the answer is: the stages do that with the whole text, and what went out
//! before was provisional. No byte is looked at twice, however long the reply is.

pub(crate) mod cut;
pub(crate) mod deltas;
mod fuse;
mod json;
mod lines;
mod names;
mod options;
pub(crate) mod outlet;
mod partial;
mod root;
mod scanner;
mod step;
mod tag;
mod text;
mod tree;
pub(crate) mod watch;

pub use fuse::{Fuse, Verdict};
pub(crate) use partial::so_far;
pub use scanner::Scanner;
pub use step::{Bracket, Heed, Lead, Step};
pub use tree::Tree;
