//! Agents as people run them: `cogn mcp` started by the programs of others, and the same tools at `/mcp` of a server. `clients.rs` has
//! the clients that the authors of the protocol publish, `conformance.rs` their conformance suite, `inspector.rs` their Inspector,
//! `skills.rs` the validator of Agent Skills; `size.rs` says what many modules cost, `suggestions.rs` what a failed call tells to do.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod clients;
mod conformance;
mod fixture_content;
mod fixture_server;
mod fixture_tools;
mod inspector;
#[path = "../typescript/model.rs"]
#[expect(dead_code, reason = "other tests count calls and use a module that streams")]
mod model;
mod project;
mod size;
mod skills;
mod stage;
mod suggestions;
#[path = "../../../cognitive-media/tests/media/support/timed.rs"]
#[expect(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "other tests need more kinds of sound and film; what is counted is small"
)]
mod timed;
