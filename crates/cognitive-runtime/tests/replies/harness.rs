//! Runs saved replies through the whole pipeline: three modules, a provider that ends as it is told, one poll a run.

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

/// The modules of the corpus. They differ in how much is forgiven, not in what is asked.
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

/// A saved reply that ends as it is told.
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

/// How a reply is to be run.
#[derive(Clone, Copy, Default)]
pub struct How {
    pub strict: bool,
    /// Whether the receipt, with all liberties, is in `meta.provenance`.
    pub receipt: bool,
}

pub fn answer(module: &Arc<Module>, text: &str, finish: Finish, how: How) -> Value {
    go(module, Arc::new(Ending(text.to_owned(), finish)), how)
}

/// The reply in pieces, as a stream brings it.
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
