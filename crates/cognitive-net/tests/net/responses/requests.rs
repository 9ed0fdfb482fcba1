//! Requests: the schema, media, tools and thinking in their places, and what is left out after a refusal.

use cognitive_contract::media::Category;
use cognitive_contract::ports::{DecodeMode, ModelCall};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_net::{Kind, provider};
use cognitive_ports::openai_api::OpenAiApi;
use serde_json::{Value, json};

use super::{MODEL, at, media, parameters, play, reply, responses, with_round, with_tools};
use crate::support::{Act, KEY, Request, Server, TEXT, ask, call, config, recorded, run, schema, written};

/// Returns the only request of a call.
fn request(change: impl FnOnce(&mut ModelCall)) -> Request {
    let (outcome, server) = run(play(vec![reply("stream")], change));
    outcome.ok();
    server.seen().remove(0)
}

// D-05, ERR-015: the lowered schema in its place, nothing stored, and the key in one header.
#[test]
fn d_05_the_request_is_complete_and_nothing_is_stored() {
    let request = request(|_| {});
    assert_eq!(request.line, "POST /v1/responses HTTP/1.1");
    assert!(request.headers.contains(&format!("authorization: bearer {KEY}")));
    assert!(!request.body.contains(KEY) && request.headers.matches(KEY).count() == 1);
    assert_eq!(request.json(), written("responses/stream"));
    assert_eq!(request.json()["text"]["format"]["schema"], schema());
    assert!(!request.body.contains("previous_response_id"));
}

#[test]
fn examples_media_and_other_formats_have_their_places() {
    assert_eq!(request(media).json(), written("responses/media"));
    // PIPE-009: without a schema, JSON mode, which demands that a message speaks of JSON.
    let body = request(|call| (call.schema, call.max_output_tokens) = (None, None)).json();
    assert_eq!(body["text"], json!({ "format": { "type": "json_object" } }));
    assert_eq!((body.get("max_output_tokens"), body.get("seed")), (None, None));
    assert!(body["input"][0]["content"].as_str().unwrap().contains("JSON"));
}

#[test]
fn the_api_takes_images_and_documents_and_no_sound() {
    run(async {
        let server = Server::start(Vec::new()).await;
        let provider = at(&server);
        assert!(provider.takes(Category::Image).is_some() && provider.takes(Category::Document).is_some());
        assert!(provider.takes(Category::Audio).is_none() && provider.takes(Category::Video).is_none());
    });
}

#[test]
fn a_thought_is_an_effort_and_the_answer_keeps_its_room() {
    for (tokens, effort, outcome) in [
        (0, "none", ThoughtOutcome::Off),
        (500, "low", ThoughtOutcome::Effort),
        (2_000, "medium", ThoughtOutcome::Effort),
    ] {
        let (heard, server) = run(play(vec![reply("stream")], |call| call.thinking = Some(tokens)));
        let body = server.seen()[0].json();
        assert_eq!(body["reasoning"], json!({ "effort": effort }));
        assert_eq!(body["max_output_tokens"], 900 + tokens);
        assert_eq!(heard.ok().thinking, Some(outcome));
    }
}

/// Returns the requests of a dialogue with tools.
fn dialogue(script: Vec<Act>, answer_now: bool) -> Vec<Value> {
    run(async {
        let server = Server::start(script).await;
        let provider = at(&server);
        let mut call = call(provider.target());
        with_tools(&mut call);
        let end = ask(provider.as_ref(), &call).await.ok().clone();
        with_round(&mut call, end);
        call.answer_now = answer_now;
        let outcome = ask(provider.as_ref(), &call).await;
        assert_eq!((outcome.heard.text.as_str(), outcome.ok().tool_calls.len()), (TEXT, 0));
        server.seen().iter().map(Request::json).collect()
    })
}

// POL-004: a call without tools sends no members about tools.
#[test]
fn tools_are_offered_and_the_turn_goes_back_with_its_reasoning() {
    assert!(!request(|_| {}).body.contains("tool"));
    let requests = dialogue(vec![reply("tools"), reply("stream")], false);
    let tool = |name: &str, description: &str| {
        json!({ "type": "function", "name": name, "description": description,
                "parameters": parameters(), "strict": false })
    };
    let tools = json!([tool("current_time", "Tells the time."), tool("json_query", "Finds values.")]);
    for request in &requests {
        assert_eq!((&request["tools"], &request["store"]), (&tools, &json!(false)));
        assert_eq!(request["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(request["text"]["format"]["type"], "json_schema", "both go together here");
    }
    assert_eq!(requests[1], written("responses/tools"));
    let last = dialogue(vec![reply("tools"), reply("stream")], true).remove(1);
    assert_eq!((last.get("tools"), last.get("include")), (None, None));
    assert_eq!(last["input"].as_array().unwrap().len(), 8, "the turn stays");
}

// A model without reasoning refuses to encrypt it; the calls stay.
#[test]
fn a_model_that_encrypts_nothing_is_not_asked_to() {
    let script = vec![reply("error-encrypted"), reply("tools"), reply("stream")];
    let requests = dialogue(script, false);
    let includes: Vec<bool> = requests.iter().map(|request| request.get("include").is_some()).collect();
    assert_eq!(includes, [true, false, false], "remembered");
    assert!(requests.iter().all(|request| request["tools"].is_array()));
}

// A service that looks up items by their ids finds none, because none is stored.
#[test]
fn items_that_cannot_be_found_are_sent_without_ids() {
    let requests = dialogue(vec![reply("tools"), reply("error-ids"), reply("stream")], false);
    let ids = |request: &Value| {
        request["input"].as_array().unwrap().iter().filter(|item| item.get("id").is_some()).count()
    };
    assert_eq!(requests.iter().map(ids).collect::<Vec<_>>(), [0, 4, 0]);
    assert_eq!(requests[2]["input"][2]["encrypted_content"], "gAAAAAB-7");
}

#[test]
fn only_what_a_service_refuses_is_left_out() {
    for (refusal, member, decode, text) in [
        ("error-temperature", "/temperature", DecodeMode::NativeSchema, TEXT),
        ("error-effort", "/reasoning", DecodeMode::NativeSchema, TEXT),
        ("error-schema", "/text/format/schema", DecodeMode::JsonMode, TEXT),
        ("error-format", "/text/format/schema", DecodeMode::JsonMode, TEXT),
    ] {
        let script = vec![reply(refusal), reply("stream")];
        let (outcome, server) = run(play(script, |call| call.thinking = Some(2_000)));
        let has: Vec<bool> =
            server.seen().iter().map(|request| request.json().pointer(member).is_some()).collect();
        assert_eq!(has, [true, false], "{refusal}");
        assert_eq!((outcome.ok().decode, outcome.heard.text.as_str()), (decode, text), "{refusal}");
    }
    // An organization that is not verified may not stream.
    let (outcome, server) = run(play(vec![reply("error-stream"), reply("whole")], |_| {}));
    let streams: Vec<Value> = server.seen().iter().map(|request| request.json()["stream"].clone()).collect();
    assert_eq!((streams, outcome.heard.text.as_str()), (vec![json!(true), json!(false)], TEXT));
}

#[test]
fn the_api_is_chosen_by_the_model_the_setting_or_the_address() {
    let path = |change: &dyn Fn(cognitive_net::ProviderConfig) -> cognitive_net::ProviderConfig,
                chat: bool| {
        run(async {
            let answer = if chat { recorded("openai/stream") } else { recorded("responses/stream") };
            let server = Server::start(vec![answer.act()]).await;
            let provider = provider(change(config(Kind::OpenAi, &server.url))).unwrap();
            assert_eq!(ask(provider.as_ref(), &call(provider.target())).await.heard.text, TEXT);
            let line = server.seen()[0].line.clone();
            (provider.destination().unwrap().address.unwrap(), line)
        })
        .1
    };
    let is_chat = |line: &str| line.starts_with("POST /v1/chat/completions ");
    assert!(is_chat(&path(&|config| config, true)), "the default model");
    assert!(is_chat(&path(&|config| config.with_model(MODEL).with_api(OpenAiApi::Chat), true)));
    assert!(!is_chat(&path(&|config| config.with_model(MODEL), false)));
    assert!(!is_chat(&path(&|config| config.with_api(OpenAiApi::Responses), false)));
    let pasted = |config: cognitive_net::ProviderConfig| {
        let base = config.base_url.clone().unwrap();
        config.with_base_url(format!("{base}/responses"))
    };
    assert!(!is_chat(&path(&pasted, false)));
    // An API of its own has no other.
    for kind in [Kind::Anthropic, Kind::Gemini, Kind::Ollama] {
        let error = provider(config(kind, "http://127.0.0.1:9").with_api(OpenAiApi::Chat)).err().unwrap();
        assert!(error.to_string().ends_with("has its own API, so `api` has no effect"), "{kind}: {error}");
    }
}

// A service, or a model, that has only the other API.
#[test]
fn the_setting_is_named_where_it_helps() {
    let remedy = |config: fn(&str) -> cognitive_net::ProviderConfig, recording: &str| {
        run(async move {
            let server = Server::start(vec![recorded(recording).act()]).await;
            let provider = provider(config(&server.url)).unwrap();
            let outcome = ask(provider.as_ref(), &call(provider.target())).await;
            outcome.error();
            outcome.heard.attempts[0].failed.clone().unwrap().remedy
        })
    };
    let chat = |url: &str| config(Kind::OpenAi, url);
    assert!(remedy(responses, "responses/error-404").unwrap().contains("`api: chat`"));
    assert!(remedy(chat, "openai/error-404-responses").unwrap().contains("`api: responses`"));
    for recording in ["responses/error-404", "openai/error-404-model"] {
        assert_eq!(remedy(chat, recording), None, "{recording}");
    }
    assert_eq!(remedy(responses, "openai/error-404-model"), None);
}
