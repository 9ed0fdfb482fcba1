//! Tests media from end to end: generated files, hostile files, inspection and conversion.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is the report of a test"
)]
#![expect(clippy::cast_possible_truncation, reason = "sizes of files that were made here")]

mod documents;
mod hostile;
mod mutations;
mod pictures;
mod sources;
mod support;
mod timed;
