//! The audit as an operator sees it: real processes, a real server, a local model service, and clients that disconnect,
//! are killed or forge records. Every model call has its record.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

#[path = "trail/desk.rs"]
mod desk;
#[path = "trail/forged.rs"]
mod forged;
#[path = "trail/limits.rs"]
mod limits;
#[path = "trail/signals.rs"]
mod signals;
#[path = "trail/storm.rs"]
mod storm;
#[path = "trail/whose.rs"]
mod whose;
