//! Where answers, reports and weights go, as processes: stdout that takes nothing, files that cannot be written, pipes
//! that nobody reads, machines that give no more files.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod documents;
mod limits;
mod media_out;
mod migration;
mod stdout;
mod support;
mod targets;
