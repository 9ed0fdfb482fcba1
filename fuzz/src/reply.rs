//! A reply of a model, as any text cut into any pieces: one valid envelope, the same however it is cut, and the same
//! from the stream.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use cognitive_contract::ports::{ModuleSource, NullSink};
use cognitive_contract::stream::{Chunk, assemble};
use cognitive_contract::{Envelope, Failure, Module};
use cognitive_library::{Folder, load};
use cognitive_runtime::{Host, Replay, RunRequest, run, stream};
use serde_json::{Value, json};

/// One module, whatever it is called.
pub struct One(pub Arc<Module>);

impl ModuleSource for One {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

static MODULES: LazyLock<[Arc<Module>; 3]> = LazyLock::new(|| {
    [
        module(&json!({ "tier": "decision" })),
        module(&json!({ "tier": "decision", "compat": { "accepts_v21_payload": true } })),
        module(&json!({ "tier": "exec" })),
    ]
});

/// A module that can be streamed, of which a part of the manifest is given.
pub fn module(part: &Value) -> Arc<Module> {
    let mut manifest = part.clone();
    manifest["response"] = json!({ "mode": "streaming" });
    let schema = json!({
        "input": { "type": "object" },
        "data": {
            "type": "object", "required": ["rationale", "answer"],
            "properties": {
                "rationale": { "type": "string" }, "answer": { "type": "string" },
                "severity": { "enum": ["minor", "major"] }, "count": { "type": "integer", "minimum": 0 },
                "items": { "type": "array", "items": { "type": "string" } },
            },
        },
    });
    let files = BTreeMap::from([
        ("module.yaml".to_owned(), manifest.to_string().into_bytes()),
        ("schema.json".to_owned(), schema.to_string().into_bytes()),
        ("prompt.md".to_owned(), b"Answer the question.".to_vec()),
    ]);
    Arc::new(load(&Folder::memory("sample", files)).expect("a module of our own"))
}

/// Any reply. The first byte chooses the module and the length of the pieces.
pub fn reply(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some(module) = MODULES.get(usize::from(*choice) % 3) else { return };
    let size = usize::from(*choice) / 3 + 1;
    let pieces = pieces(text, size);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let host = |pieces: Vec<String>| {
        Host::new(Arc::new(One(Arc::clone(module))), Arc::new(Replay::pieces(pieces, None)))
    };
    let request = || RunRequest::new("sample", json!({}));
    let whole = runtime.block_on(run(&host(vec![text.to_owned()]), request(), &mut NullSink));
    let whole = settled(serde_json::to_value(&whole).expect("an envelope is JSON"));
    let cut = runtime.block_on(run(&host(pieces.clone()), request(), &mut NullSink));
    assert_eq!(
        whole,
        settled(serde_json::to_value(&cut).expect("an envelope is JSON")),
        "in pieces of {size}"
    );
    let mut log: Vec<Chunk> = Vec::new();
    runtime.block_on(stream(&host(pieces), request(), |chunk| log.push(chunk)));
    let log: Vec<Value> =
        log.iter().map(|chunk| serde_json::to_value(chunk).expect("a chunk is JSON")).collect();
    let streamed = serde_json::to_value(assemble(log)).expect("an envelope is JSON");
    assert_eq!(whole, settled(streamed), "as a stream");
    let whole: Value = serde_json::from_str(&whole).expect("an envelope is JSON");
    assert!(Envelope::from_value(whole).is_ok(), "a run ends with a valid envelope");
}

/// The text in pieces of so many characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// What has to be the same of two runs.
fn settled(mut value: Value) -> String {
    for (place, members) in
        [("/meta", &["trace_id", "latency_ms", "processing_time_ms"][..]), ("", &["streaming", "session_id"])]
    {
        if let Some(Value::Object(object)) = value.pointer_mut(place) {
            for member in members {
                object.shift_remove(*member);
            }
        }
    }
    value.to_string()
}
