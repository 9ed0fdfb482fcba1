//! The protocol as clients see it: JSON lines over a pipe, in both revisions, with modules in memory.
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
