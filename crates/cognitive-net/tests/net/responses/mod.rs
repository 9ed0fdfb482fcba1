//! The Responses API: requests, answers of every form, recordings, and the types of the vendor's own client as an
//! oracle.

mod answers;
mod oracle;
mod recordings;
mod requests;

use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::media::{MediaPart, MediaType};
use cognitive_contract::ports::{Example, ModelCall, ModelEnd, Provider};
use cognitive_contract::tools::{ToolReply, ToolRound, ToolSpec};
use cognitive_net::{Kind, ProviderConfig, provider};
use serde_json::{Value, json};

use crate::support::{Act, Outcome, Server, ask, call, config, recorded};

/// A model that needs this API.
const MODEL: &str = "gpt-5.6-luna";

/// Returns the configuration of the tests.
fn responses(url: &str) -> ProviderConfig {
    config(Kind::OpenAi, url).with_model(MODEL)
}

/// Creates a provider for a server.
fn at(server: &Server) -> Arc<dyn Provider> {
    provider(responses(&server.url)).unwrap()
}

/// Runs a call against a server with this script.
async fn play(script: Vec<Act>, change: impl FnOnce(&mut ModelCall)) -> (Outcome, Server) {
    let server = Server::start(script).await;
    let provider = at(&server);
    let mut call = call(provider.target());
    change(&mut call);
    let outcome = ask(provider.as_ref(), &call).await;
    (outcome, server)
}

/// A recorded answer of this API.
fn reply(name: &str) -> Act {
    recorded(&format!("responses/{name}")).act()
}

fn parameters() -> Value {
    json!({ "type": "object", "properties": { "path": { "type": "string", "default": null } } })
}

/// Offers the tools of the recordings.
fn with_tools(call: &mut ModelCall) {
    call.tools = vec![
        Arc::new(ToolSpec::new("current_time", "Tells the time.", parameters())),
        Arc::new(ToolSpec::new("json_query", "Finds values.", parameters())),
    ];
}

/// Adds an example and media.
fn media(call: &mut ModelCall) {
    call.examples = vec![Example { input: "?".to_owned(), answer: "{}".to_owned() }];
    let part = |index, kind, data: &'static [u8]| MediaPart::new(index, kind, Bytes::from_static(data));
    call.media = vec![part(0, MediaType::Png, b"aW1hZ2U="), part(2, MediaType::Pdf, b"cGRm")];
}

/// Adds a turn with calls, where one tool succeeded and the other failed.
fn with_round(call: &mut ModelCall, end: ModelEnd) {
    let replies = [(r#"{"time":null}"#, true), (r#"{"error":"no"}"#, false)];
    let replies = replies.map(|(content, ok)| ToolReply::new(content, ok));
    call.rounds = vec![ToolRound::new(end.turn, end.tool_calls.into_iter().zip(replies).collect())];
}
