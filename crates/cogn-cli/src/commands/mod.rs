//! One file per command: its options, and one function that runs it and returns its exit code.
//! Contains no rules about modules or envelopes.

pub mod add;
pub mod audit;
pub mod batch;
mod batch_screen;
pub mod capabilities;
mod cases;
pub mod check;
pub mod completions;
pub mod compose;
pub mod conformance;
pub mod context;
pub mod deploy;
pub mod doctor;
pub mod eval;
mod eval_report;
pub mod explain;
pub mod export;
mod hand_over;
pub mod import;
pub mod info;
pub mod init;
pub mod list;
pub mod lower;
pub mod man;
pub mod mcp;
mod mcp_install;
pub mod media;
mod media_out;
pub mod migrate;
pub mod model;
pub mod pack;
mod plan_cost;
pub mod prices;
pub mod prompt;
pub mod publish;
mod reader;
pub mod registry;
pub mod remove;
pub mod review;
pub mod run;
pub mod schema;
pub mod serve;
mod serve_args;
mod server_keys;
mod shared_state;
pub mod sign;
mod stop;
pub mod store;
mod stream;
pub mod studio;
mod studio_parts;
pub mod test;
mod test_report;
pub mod trace;
pub mod train;
pub mod trust;
pub mod types;
pub mod update;
pub mod validate;
pub mod verify;
pub mod versions;

use cognitive_contract::Failure;

use crate::printer::{Exit, Printer};

/// Prints a failure on stderr, for commands whose result is not an envelope.
fn fail(failure: &Failure, printer: &Printer) -> Exit {
    printer.error(failure.message(), failure.suggestion());
    Exit::Bad
}
