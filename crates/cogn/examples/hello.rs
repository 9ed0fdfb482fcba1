//! The shortest program: one module, one input, one envelope. `cargo run --example hello`
#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "it talks to people; the contract has the field"
)]

use cogn::{Runtime, json};

#[tokio::main]
async fn main() -> cogn::Result<()> {
    let runtime = Runtime::from_env()?; // modules, provider and stores as the command line has them
    let input = json!({ "text": "What a wonderful day, everything went well!" });
    let envelope = runtime.module("text-classifier")?.input(input).run().await; // an envelope, always
    match envelope.into_result() {
        Ok(data) => println!("{}", data["sentiment"]),
        Err(failure) => println!("{failure:?}"), // its code, what happened, and a hint
    }
    Ok(())
}
