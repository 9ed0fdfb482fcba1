//! The audit as an operator sees it: real processes, a real server, a local model service, and clients that disconnect,
//! are killed or forge records. Every model call has its record.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

mod fixture;
mod limits;
mod owners;
mod signals;
mod storm;
mod tampering;
