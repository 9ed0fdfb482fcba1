//! Runs saved replies through the whole pipeline: three modules, a provider with a configurable finish, one poll per
//! run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cognitive_contract::ports::{
    CallSink, DecodeMode, Finish, ModelCall, ModelEnd, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_contract::{Envelope, Module};
use cognitive_library::{Folder, load};
use cognitive_runtime::{Host, Replay, RunRequest, run};
use cognitive_testkit::{LoadedModule, poll_now};
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
    LOADED.lock().unwrap().entry(name.to_owned()).or_insert_with(|| loaded(name)).clone()
}

fn loaded(name: &str) -> Arc<Module> {
    let files = BTreeMap::from([
        ("module.yaml".to_owned(), manifest(name).to_string().into_bytes()),
        ("schema.json".to_owned(), schema().to_string().into_bytes()),
        ("prompt.md".to_owned(), b"Answer the question.".to_vec()),
    ]);
    Arc::new(load(&Folder::memory("sample", files)).unwrap())
}

/// A saved reply with a configured finish.
struct Ending(String, Finish);

impl Provider for Ending {
    fn name(&self) -> &'static str {
        "ending"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        sink.piece(&self.0);
        let mut end = ModelEnd::complete("m", DecodeMode::Prompt);
        end.finish = self.1.clone();
        Box::pin(async { Ok(end) })
    }
}

/// The options of a run.
#[derive(Clone, Copy, Default)]
pub struct How {
    pub strict: bool,
    /// Set to include the receipt, with all liberties, in `meta.provenance`.
    pub receipt: bool,
}

pub fn answer(module: &Arc<Module>, text: &str, finish: Finish, how: How) -> Value {
    go(module, Arc::new(Ending(text.to_owned(), finish)), how)
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
