//! The call of a model: the advice after a failure, and the receipt's facts about it.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::{DecodeMode, ModelEnd, NullSink, Provider, ProviderError};
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_schema::SchemaTarget;
use cognitive_testkit::{FakeProvider, NamedModules, open_schema, poll_now};
use serde_json::{Value, json};

use crate::{go, good};

fn ask(provider: FakeProvider) -> Value {
    let mut request = RunRequest::new("sample", json!({ "q": "?" }));
    request.options.settings.receipt = Some(true);
    go(&json!({ "tier": "decision" }), Arc::new(provider), request)
}

// D-16: each failure of a service says what helps.
#[test]
fn d_16_a_failure_of_a_service_says_what_helps() {
    let said = |text: &str| text.to_owned();
    for (error, code, advice) in [
        (
            ProviderError::ContextOverflow(said("m")),
            "E4003",
            "Send less input, or choose a model with a larger",
        ),
        (ProviderError::Timeout, "E2002", "Run it again, or allow more time"),
        (ProviderError::RateLimited { retry_after: Some(Duration::from_secs(7)) }, "E4002", "Wait 7 seconds"),
        (ProviderError::RateLimited { retry_after: None }, "E4002", "Wait 30 seconds"),
        (ProviderError::Unsupported(said("m")), "E4001", "`cogn lower sample --target grammar` lists"),
    ] {
        let envelope = ask(FakeProvider::new(move |_, _| Err(error.clone())));
        assert_eq!(envelope["error"]["code"], code, "{envelope}");
        let suggestion = envelope["error"]["suggestion"].as_str().unwrap_or_default();
        assert!(suggestion.contains(advice), "{envelope}");
    }
}

// A service caches a stable prefix, which costs more to write: instructions with the input or with results are none.
#[test]
fn only_instructions_that_every_run_shares_are_a_stable_prefix() {
    for (prompt, is_stable) in
        [("Answer.", true), ("Answer $ARGUMENTS.", false), ("Use @call:part($INPUT).", false)]
    {
        let model = Arc::new(FakeProvider::with_reply(good()));
        let modules = NamedModules::default()
            .with("part", json!({ "tier": "decision" }), &open_schema(), "Help.")
            .with("sample", json!({ "tier": "decision" }), &open_schema(), prompt);
        let host = Host::new(Arc::new(modules), Arc::clone(&model) as Arc<dyn Provider>);
        let request = RunRequest::new("sample", json!({ "query": "why?" }));
        assert!(poll_now(run(&host, request, &mut NullSink)).ok());
        let mut calls = model.calls();
        assert_eq!(calls.pop().unwrap().has_stable_prefix, is_stable, "{prompt}");
        assert!(calls.iter().all(|of_part| of_part.has_stable_prefix), "{prompt}");
    }
}

// D-05: the receipt tells if a service answered as if it had received no schema.
#[test]
fn d_05_a_service_that_ignored_its_schema_is_named_in_the_receipt() {
    let broken = json!({ "ok": true, "meta": good()["meta"], "data": { "rationale": "r", "answer": 7 } });
    let padded = |text: &str| format!("{text}{}", " ".repeat(2 << 20));
    // Judged by the schema up to a size, and above it by its syntax alone.
    for (reply, is_ignored) in [
        (good().to_string(), false),
        (broken.to_string(), true),
        (format!("Here it is: {}", good()), true),
        (padded(&broken.to_string()), false),
        (padded(&format!("Here it is: {}", good())), true),
    ] {
        let provider = FakeProvider::new({
            let reply = reply.clone();
            move |_, sink| {
                sink.piece(&reply);
                Ok(ModelEnd::complete("m", DecodeMode::NativeSchema))
            }
        });
        let envelope = ask(provider.with(|service| service.target = Some(SchemaTarget::Gemini)));
        let flag = &envelope["meta"]["provenance"]["schema_ignored"];
        assert_eq!(flag == &json!(true), is_ignored, "{reply:.200}: {envelope}");
    }
}
