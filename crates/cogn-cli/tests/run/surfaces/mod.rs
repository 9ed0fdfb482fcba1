//! The interfaces of the program for users and scripts: arguments, configuration, server, golden tests and `validate`.
//! Each test is a separate process; models are files or a local stub.
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
mod old_formats;
mod serving;
mod support;
mod typed;
mod validate;
mod verify;
