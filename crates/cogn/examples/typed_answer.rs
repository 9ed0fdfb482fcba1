//! Reads an answer as a struct of the program. `cargo run --example typed_answer`
#![expect(clippy::print_stdout, reason = "the program talks to people")]

use std::time::Duration;

use cogn::{Runtime, json};

/// The members of `data` in the module's `schema.json` that this program needs.
#[derive(serde::Deserialize)]
struct Summary {
    summary: String,
}

#[tokio::main]
async fn main() -> cogn::Result<()> {
    let runtime = Runtime::from_env()?;
    let envelope = runtime
        .module("summarizer")?
        .input(json!({ "text": "Cognitive Modules are AI tasks with a contract. Every run ends in an envelope." }))
        .timeout(Duration::from_secs(20))
        .reask(1)
        .run()
        .await;
    let Summary { summary } = envelope.data_as()?; // a failure is an error of the usual kind
    println!("{summary} ({})", envelope.meta().confidence);
    Ok(())
}
