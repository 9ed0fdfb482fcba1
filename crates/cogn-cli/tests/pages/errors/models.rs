//! Errors of models and their services: saved replies, and a stub service on loopback.

use cognitive_testkit::{Act, FakeModel, Then, piece};
use serde_json::{Value, json};

use crate::home;

use super::modules::{error, module, plain};

/// Runs a module with a saved reply.
fn replayed(manifest: &str, schema: &Value, reply: &str) -> Value {
    let place = home();
    module(&place, "words", manifest, schema);
    place.write("reply.txt", reply);
    error(&place, &["run", "words", "--set", "text=x", "--reply", "reply.txt"])
}

/// Runs a module with a service that acts like this.
fn asked(act: Act, more: &[&str]) -> Value {
    let (place, service) = (home(), FakeModel::script(vec![act]));
    module(&place, "words", "response: {mode: both}", &plain());
    let url = service.url();
    let usual =
        ["run", "words", "--set", "text=x", "--provider", "openai", "--model", "stub", "--base-url", &url];
    error(&place, &[&usual, more].concat())
}

/// Returns a good answer with these members changed.
fn answer(meta: Value, data: Value) -> String {
    let mut whole = json!({ "ok": true, "meta": { "confidence": 0.95, "risk": "none", "explain": "e" },
                            "data": { "rationale": "r" } });
    for (name, members) in [("meta", meta), ("data", data)] {
        whole[name].as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    }
    whole.to_string()
}

/// Returns a schema with one more member in `data`.
fn with_member(name: &str, member: Value) -> Value {
    let mut schema = plain();
    schema["data"]["properties"][name] = member;
    schema
}

/// A code that the runtime never sets itself: it arrives unchanged from the model.
pub(crate) fn said_by_the_model(example: &Value) -> Value {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    replayed("", &plain(), &json!({ "ok": false, "meta": meta, "error": example }).to_string())
}

pub(crate) fn prose(_: &Value) -> Value {
    replayed("", &plain(), "I cannot see any code here.")
}

pub(crate) fn doubt(_: &Value) -> Value {
    replayed("tier: exec", &plain(), &answer(json!({ "confidence": 0.72 }), json!({})))
}

pub(crate) fn risky(_: &Value) -> Value {
    replayed("tier: exec", &plain(), &answer(json!({ "risk": "medium" }), json!({})))
}

pub(crate) fn wrong_value(_: &Value) -> Value {
    let schema = with_member("scope", json!({ "enum": ["file", "module"] }));
    replayed("", &schema, &answer(json!({}), json!({ "scope": "planet" })))
}

pub(crate) fn empty_rationale(_: &Value) -> Value {
    replayed("", &plain(), &answer(json!({}), json!({ "rationale": "" })))
}

pub(crate) fn too_many_insights(_: &Value) -> Value {
    let insights = vec![json!({ "text": "t", "suggested_mapping": "m" }); 6];
    let data = json!({ "extensions": { "insights": insights } });
    replayed("tier: decision", &plain(), &answer(json!({}), data))
}

pub(crate) fn custom_value(_: &Value) -> Value {
    let text = json!({ "type": "string" });
    let members = json!({ "custom": text, "reason": text });
    let custom = json!({ "type": "object", "required": ["custom", "reason"], "properties": members });
    let schema = with_member("type", json!({ "oneOf": [{ "enum": ["rename"] }, custom] }));
    let value = json!({ "type": { "custom": "inline", "reason": "It is used once" } });
    replayed("tier: exec", &schema, &answer(json!({}), value))
}

pub(crate) fn silence(_: &Value) -> Value {
    asked(Act::no_response(Then::Silence), &["--timeout", "1"])
}

pub(crate) fn silent_stream(_: &Value) -> Value {
    asked(Act::no_response(Then::Silence), &["--timeout", "1", "--stream"])
}

pub(crate) fn token_limit(_: &Value) -> Value {
    let begun = piece(r#"{"ok": true, "meta": {"confidence""#, None) + &piece("", Some("length"));
    asked(Act::stream(begun + "data: [DONE]\n\n"), &[])
}

pub(crate) fn refusal(_: &Value) -> Value {
    let delta = json!({ "refusal": "I cannot help with this request" });
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
    let said = format!("data: {}\n\n", json!({ "model": "stub-1", "choices": [choice] }));
    asked(Act::stream(said + &piece("", Some("stop")) + "data: [DONE]\n\n"), &[])
}

pub(crate) fn lost_connection(_: &Value) -> Value {
    asked(Act::stream(piece(r#"{"ok": true, "meta": {"#, None)), &[])
}

pub(crate) fn outage(_: &Value) -> Value {
    let body = json!({ "error": { "message": "The server is overloaded" } });
    let headers = "retry-after: 0\r\ncontent-type: application/json\r\n";
    asked(Act::reply(503, headers, body.to_string()), &[])
}

pub(crate) fn rate_limit(_: &Value) -> Value {
    let body = json!({ "error": { "message": "Rate limit reached", "code": "rate_limit_exceeded" } });
    let headers = "retry-after: 200\r\ncontent-type: application/json\r\n";
    asked(Act::reply(429, headers, body.to_string()), &[])
}

pub(crate) fn context_overflow(_: &Value) -> Value {
    let said = "This model's maximum context length is 128000 tokens";
    asked(Act::error(400, "context_length_exceeded", said), &[])
}

pub(crate) fn no_key(_: &Value) -> Value {
    let place = home();
    module(&place, "words", "", &plain());
    error(&place, &["run", "words", "--set", "text=x", "--provider", "gemini"])
}
