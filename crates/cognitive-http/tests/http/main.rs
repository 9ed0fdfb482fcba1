//! The server on a real socket with a scripted model: the client's view of normal and faulty behaviour.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod agents;
mod answers;
mod attacks;
mod breaks;
mod context;
mod edges;
mod faults;
mod files;
mod frames;
mod growth;
mod kills;
mod media;
mod memory;
mod operations;
mod places;
#[cfg(feature = "redis")]
mod redis;
mod sockets;
mod streams;
mod studio_access;
mod studio_past;
mod studio_work;
mod support;
mod tracing;
mod wellformed;
