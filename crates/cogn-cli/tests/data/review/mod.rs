//! Reviews in use: runs that are queued, the commands that decide, a process that is killed while it decides, and a
//! simulated reviewer whose decisions calibrate the confidence.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod command;
mod reviewer;
