//! The protocol as clients see it: lines of JSON over a pipe, in both revisions, against modules from memory.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod calls;
mod harness;
mod lists;
mod tasks;
