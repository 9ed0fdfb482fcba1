//! Getting the weights: out of a package with tools that are shell scripts, from a hub that is a thread on this machine.
//! No test reaches further than 127.0.0.1 or touches a cache that is not its own.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

mod added;
mod hashes;
mod names;
mod patience;
mod process;
mod pull;
mod real;
mod support;
