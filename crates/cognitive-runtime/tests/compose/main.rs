//! Modules that are made of modules, end to end, with a model whose replies and delays are scripted.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod blame;
#[path = "../board/mod.rs"]
mod board;
mod calls;
mod journal;
mod patterns;
mod progress;
mod references;
mod rounds;
mod shared;
mod spans;
mod specification_examples;
#[path = "../timer/mod.rs"]
mod timer;
mod world;

use serde_json::{Value, json};

fn flow(from: &str, to: &str) -> Value {
    json!({ "from": from, "to": to })
}
