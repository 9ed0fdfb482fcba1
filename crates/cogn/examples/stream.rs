//! Streams an answer chunk by chunk. `cargo run --example stream`
#![expect(clippy::print_stdout, reason = "the program talks to people")]

use cogn::{Chunk, Runtime, StreamExt as _, json};

#[tokio::main]
async fn main() -> cogn::Result<()> {
    let runtime = Runtime::from_env()?;
    let text = "Cognitive Modules are AI tasks with a contract. Every run ends in an envelope.";
    let mut chunks = runtime.module("summarizer")?.input(json!({ "text": text })).stream();
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Chunk::Delta { field, delta, .. } => println!("{field} += {delta:?}"),
            // The last chunk is the envelope; the others report progress.
            other => println!("{}", json!(other)),
        }
    }
    Ok(())
}
