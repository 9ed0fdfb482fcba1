//! Runs saved replies through the whole pipeline: three modules, a provider with a configurable finish, one poll per
//! run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cognitive_contract::ports::{Finish, NullSink, Provider};
use cognitive_contract::{Envelope, Module};
use cognitive_runtime::{Host, Replay, RunRequest, run};
use cognitive_testkit::{FakeProvider, LoadedModule, complete, loaded_module, poll_now};
use serde_json::{Value, json};

pub const META: &str = r#"{"confidence": 0.95, "risk": "low", "explain": "e"}"#;

pub fn good() -> String {
    format!(r#"{{"ok": true, "meta": {META}, "data": {{"rationale": "r", "answer": "42"}}}}"#)
}

pub fn other() -> String {
    good().replace("42", "7")
}

/// The modules of the corpus. They differ in their leniency, not in their contract.
pub fn manifest(name: &str) -> Value {
    match name {
        "exec" => json!({ "tier": "exec" }),
        "wraps" => json!({ "tier": "decision", "compat": { "accepts_v21_payload": true } }),
        "silent" => json!({ "tier": "decision", "failure": { "partial_allowed": false } }),
        _ => json!({ "tier": "decision" }),
    }
}

fn schema() -> Value {
    json!({
        "input": { "type": "object" },
        "data": {
            "type": "object", "required": ["rationale", "answer"],
            "properties": {
                "rationale": { "type": "string" }, "answer": { "type": "string" },
                "severity": { "enum": ["minor", "major"] }, "count": { "type": "integer", "minimum": 0 },
                "items": { "type": "array", "items": { "type": "string" } },
            },
        },
    })
}

/// A module, loaded once.
pub fn module(name: &str) -> Arc<Module> {
    static LOADED: Mutex<BTreeMap<String, Arc<Module>>> = Mutex::new(BTreeMap::new());
    let load = || loaded_module(&manifest(name), &schema(), "Answer the question.");
    LOADED.lock().unwrap().entry(name.to_owned()).or_insert_with(load).clone()
}

/// The options of a run.
#[derive(Clone, Copy, Default)]
pub struct How {
    pub strict: bool,
    /// Set to include the receipt, with all liberties, in `meta.provenance`.
    pub receipt: bool,
}

pub fn answer(module: &Arc<Module>, text: &str, finish: Finish, how: How) -> Value {
    let text = text.to_owned();
    let provider = FakeProvider::new(move |_, sink| {
        sink.piece(&text);
        let mut end = complete();
        end.finish = finish.clone();
        Ok(end)
    });
    go(module, Arc::new(provider), how)
}

/// Runs the reply in pieces, as a stream delivers it.
pub fn answer_in_pieces(module: &Arc<Module>, pieces: Vec<String>) -> Value {
    go(module, Arc::new(Replay::pieces(pieces, None)), How::default())
}

fn go(module: &Arc<Module>, provider: Arc<dyn Provider>, how: How) -> Value {
    let host = Host::new(Arc::new(LoadedModule(module.clone())), provider);
    let mut request = RunRequest::new("sample", json!({}));
    request.options.settings.strict_parse = Some(how.strict);
    request.options.settings.receipt = Some(how.receipt);
    let envelope = poll_now(run(&host, request, &mut NullSink));
    let value = serde_json::to_value(&envelope).unwrap();
    assert!(Envelope::from_value(value.clone()).is_ok(), "every exit is a valid envelope: {value}");
    value
}
