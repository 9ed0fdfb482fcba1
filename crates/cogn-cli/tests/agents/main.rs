//! Agents as users run them: `cogn mcp` started by third-party programs, and the same tools at `/mcp` of a server.
//! `clients.rs` runs the official clients, `conformance.rs` the conformance suite, `inspector.rs` the Inspector,
//! `skills.rs` the validator of Agent Skills. `size.rs` measures the cost of many modules; `suggestions.rs` checks the
//! hints of failed calls.
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
