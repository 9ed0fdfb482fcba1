//! `cogn serve` as a process: the settings of its operator, real and generated clients, signals, traces, and the state that several
//! servers share.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod clients;
mod generated_clients;
mod serving;
#[cfg(unix)]
mod shared_state;
#[cfg(unix)]
mod signals;
mod spans;

use cognitive_testkit::{Act, FakeModel, FakeReply, Home, piece};
use serde_json::{Value, json};

/// A home with nothing from this machine, whose programs have a key.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_cogn")).with("OPENAI_API_KEY", "sk-test")
}

/// The end of a streamed answer.
fn end() -> String {
    piece("", Some("stop")) + "data: [DONE]\n\n"
}

/// A service that takes spans.
fn collector() -> FakeModel {
    FakeModel::start(|_, _| FakeReply::Raw(Act::json(200, &json!({}))))
}

/// The batches of spans that a collector took.
fn batches_of(collector: &FakeModel) -> Vec<Value> {
    let requests = collector.requests();
    for request in &requests {
        assert!(request.text.starts_with("POST /v1/traces "), "{request:?}");
    }
    requests.into_iter().map(|request| request.body).collect()
}
