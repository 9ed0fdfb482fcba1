//! Programs that use `cogn`: agents over MCP, the TypeScript client, the Python package, and the page in a browser. `clients.rs` runs
//! the official clients of MCP, `conformance.rs` its conformance suite, `inspector.rs` the Inspector, `skills.rs` the validator of
//! Agent Skills. `size.rs` measures the cost of many modules; `suggestions.rs` checks the hints of failed calls. `model.rs` is the
//! model of all of them. A test is skipped if its tools are not installed.
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
mod model;
mod project;
#[cfg(unix)]
mod python;
mod size;
mod skills;
mod stage;
#[cfg(unix)]
mod studio;
mod suggestions;
mod typescript;
