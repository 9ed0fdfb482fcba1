//! The surfaces of the program as people and scripts meet them: what is typed, what is configured, what is served, what
//! golden tests and `validate` say. Each test is a process of its own; models are files or a stub on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod blame;
mod editors;
mod golden;
mod init;
mod ladder;
mod old;
mod serving;
mod support;
mod typed;
mod validate;
mod verify;
