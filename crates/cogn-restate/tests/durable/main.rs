//! Tests durable runs against a real Restate server, which each test starts. Covers the same envelopes as in
//! one process, one answer per key, context and reviews that outlive workers, cancellation, and killed
//! workers.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod equality;
mod http;
mod keys;
mod kills;
mod local_worker;
mod model;
mod people;
mod replay;
mod sessions;
mod stub;
