//! Recorded traffic of real servers: requests still match the recorded ones, and the recorded answers are parsed.

use std::path::Path;

use cognitive_contract::ports::{DecodeMode, Finish, Provider, ProviderError, Usage};
use cognitive_net::{Kind, probe, provider};
use cognitive_schema::SchemaTarget;
use serde_json::Value;

use crate::support::{Outcome, Request, Server, ask, call, config, recorded, run};

/// Calls the model of the recordings and returns all requests.
fn replay(names: &[&str]) -> (Outcome, Vec<Request>) {
    run(async {
        let script = names.iter().map(|name| recorded(&format!("recorded/{name}")).act()).collect();
        let server = Server::start(script).await;
        let provider = small(&server);
        let outcome = ask(provider.as_ref(), &call(provider.target())).await;
        (outcome, server.seen())
    })
}

fn small(server: &Server) -> std::sync::Arc<dyn Provider> {
    provider(config(Kind::LlamaCpp, &server.url).with_model("small")).unwrap()
}

/// Returns the request stored with a recorded answer.
fn sent(name: &str) -> Value {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/recorded");
    let text = std::fs::read_to_string(wire.join(format!("{name}.request.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

const OK: &str = "{\n  \"ok\": true\n}";

#[test]
fn a_server_that_takes_schemas_and_counts() {
    let (outcome, requests) = replay(&["llama-server/stream"]);
    assert_eq!(requests[0].json(), sent("llama-server/stream"));
    let end = outcome.ok();
    assert_eq!((outcome.heard.text.as_str(), end.model.as_str()), (OK, "small"));
    assert_eq!((&end.finish, end.decode), (&Finish::Complete, DecodeMode::NativeSchema));
    assert_eq!(end.usage.map(|usage| usage.input_tokens), Some(29));
    let (whole, _) = replay(&["llama-server/whole"]);
    assert_eq!((whole.heard.text.as_str(), &whole.ok().finish), (OK, &Finish::Complete));
    assert_eq!(whole.ok().usage, Some(Usage::new(29, 31).with_cache(28, 0)));
}

// PIPE-009: the request is repeated with JSON mode instead of the schema.
#[test]
fn pipe_009_a_server_that_fails_on_schemas_and_counts_nothing() {
    let names = ["llama-cpp-python/error-format", "llama-cpp-python/stream"];
    let (outcome, requests) = replay(&names);
    assert_eq!(requests.iter().map(Request::json).collect::<Vec<_>>(), names.map(sent));
    let end = outcome.ok();
    let object: Value = serde_json::from_str(&outcome.heard.text).unwrap();
    assert!(object.is_object(), "{object}");
    assert_eq!((&end.finish, end.decode, end.usage), (&Finish::Complete, DecodeMode::JsonMode, None));
    assert_eq!(outcome.statuses(), [Some(500), Some(200)]);
    let (whole, _) = replay(&["llama-cpp-python/whole"]);
    assert_eq!(whole.ok().usage, Some(Usage::new(29, 26)));
}

// PIPE-010: limits of both servers, with and without an error message.
#[test]
fn pipe_010_limits_of_real_servers() {
    for name in ["llama-server/length", "llama-cpp-python/length"] {
        let (outcome, _) = replay(&[name]);
        assert_eq!(
            (outcome.heard.text.as_str(), &outcome.ok().finish),
            ("{\n  \"", &Finish::CutOff),
            "{name}"
        );
    }
    for name in ["llama-server/error-context", "llama-cpp-python/error-context"] {
        let (outcome, requests) = replay(&[name]);
        assert!(
            matches!(outcome.error(), ProviderError::ContextOverflow(_)),
            "{name}: {:?}",
            outcome.error()
        );
        assert_eq!(requests.len(), 1, "{name}");
    }
    let (outcome, requests) = replay(&["llama-cpp-python/empty"; 3]);
    assert!(matches!(outcome.error(), ProviderError::Interrupted(_)), "{:?}", outcome.error());
    assert_eq!(requests.len(), 3, "nothing says that it is of no use");
}

// The OpenAI schema dialect cannot tell a success from an error; the grammars of this server can.
#[test]
fn d_05_a_server_with_grammars_is_told_all_that_they_can_say() {
    run(async {
        let server = Server::start(Vec::new()).await;
        assert_eq!(small(&server).target(), Some(SchemaTarget::Ollama));
    });
}

#[test]
fn both_list_their_model() {
    for name in ["recorded/llama-server/models", "recorded/llama-cpp-python/models"] {
        run(async {
            let server = Server::start(vec![recorded(name).act()]).await;
            let found = probe(&config(Kind::LlamaCpp, &server.url).with_model("small")).await.unwrap();
            assert_eq!((found.models.as_slice(), found.model_is_listed), (&["small".to_owned()][..], true));
        });
    }
}
