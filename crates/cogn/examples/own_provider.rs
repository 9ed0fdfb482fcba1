//! A custom provider: anything that can write text can answer. `cargo run --example own_provider`
#![expect(clippy::print_stdout, reason = "the program talks to people")]

use cogn::{
    CallSink, DecodeMode, ModelCall, ModelEnd, PortFuture, Provider, ProviderError, Result, Runtime, json,
};

/// A model that likes every text.
struct Enthusiast;

impl Provider for Enthusiast {
    fn name(&self) -> &'static str {
        "enthusiast"
    }

    fn ask<'a>(
        &'a self,
        _call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async {
            sink.piece(
                r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "It shines."}, "#,
            );
            sink.piece(r#""data": {"rationale": "All texts do.", "sentiment": "positive", "label": "joy"}}"#);
            Ok(ModelEnd::complete("v1", DecodeMode::Prompt))
        })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // Reads neither environment nor files: only the bundled modules, this provider and no stores.
    let runtime = Runtime::builder().provider(Enthusiast).build()?;
    let envelope = runtime.module("text-classifier")?.input(json!({ "text": "It rained." })).run().await;
    println!("{}", json!(envelope));
    Ok(())
}
