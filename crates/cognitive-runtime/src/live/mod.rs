//! A reply while it is being written: what can be shown of it, and whether it can still become valid.
//!
//! [`ReplyScanner`](crate::reply::ReplyScanner) reads raw text in pieces and tells events; `deltas.rs` makes chunks of them,
//! [`Fuse`] judges them against the contract. Nothing here decides what the answer is: the stages do that with the whole text,
//! and what went out before was provisional.

mod chunk_listener;
pub(crate) mod cut;
pub(crate) mod deltas;
mod fuse;
pub(crate) mod listeners;
mod names;
mod options;
pub(crate) mod outlet;
mod partial;
mod root;

pub use fuse::{Fuse, Verdict};
pub(crate) use partial::so_far;
