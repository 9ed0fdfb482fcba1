//! Providers against real sockets: each test starts a small server on 127.0.0.1 that answers from a script. No test
//! needs a key, a clock or a network, and none waits longer than a fraction of a second.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod answers;
mod caching;
mod concessions;
mod download;
mod errors;
mod faults;
mod fetch;
mod habits;
mod lifetime;
mod media;
mod recorded;
mod registry;
mod requests;
mod responses;
mod ssrf;
mod support;
mod thinking;
mod tools;
