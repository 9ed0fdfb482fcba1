//! A custom axum server that answers with envelopes. Run `cargo run --example axum_server`, then `curl -d '{"text":
//! "…"}' http://127.0.0.1:PORT/summarize`. The other features of `cogn serve` are in `cognitive-http`.
#![expect(clippy::print_stdout, reason = "the program talks to people")]

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use cogn::{Envelope, Runtime, json};

async fn summarize(State(runtime): State<Arc<Runtime>>, body: String) -> impl IntoResponse {
    let envelope = match runtime.module("summarizer") {
        Ok(run) => run.raw_json(body).run().await,
        Err(failure) => failure.into_envelope(),
    };
    answer(&envelope)
}

/// The envelope has the details; the status only tells success from failure.
fn answer(envelope: &Envelope) -> impl IntoResponse + use<> {
    let status = if envelope.ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    (status, [(header::CONTENT_TYPE, "application/json")], json!(envelope).to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Arc::new(Runtime::from_env()?);
    let router = Router::new().route("/summarize", post(summarize)).with_state(runtime);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/summarize", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
