//! Whole answers that are kept, so that the same question costs one call. Only for modules that declare to emit
//! `analysis_cache`, for as long as they say, under a key that names the input. (S-46)
//! Gives out nothing that the module, the operator or the caller would not accept today.

use cognitive_contract::context::key::default_pattern;
use cognitive_contract::context::{ContextEntry, Key, Ttl, key};
use cognitive_contract::{Enforcement, Envelope, Module, Warning};
use serde_json::{Map, Value, json};

use crate::host::{Host, RunOptions};
use crate::memory::{CACHE, Memory, NOTICE};
use crate::receipt::canonical_sha256;
use crate::stages::input::ValidInput;
use crate::stages::media::MediaSet;

/// The type under which whole answers are kept, apart from what the module itself emits.
const KIND: &str = "_answer";

/// The place of the answer to one question.
pub(crate) struct Shelf<'a> {
    memory: &'a Memory<'a>,
    key: Key,
    ttl: Ttl,
}

/// An answer from an earlier run.
pub(crate) struct Kept {
    pub(crate) envelope: Envelope,
    /// `provider/model` that wrote it.
    pub(crate) model: Option<String>,
    /// What was said of it then, such as what was repaired.
    pub(crate) notices: Vec<Warning>,
}

impl<'a> Shelf<'a> {
    /// Where the answer would be kept; `None` if the module does not want that, and if schemas are not enforced.
    pub(crate) fn find(
        memory: &'a Memory<'a>,
        host: &Host,
        module: &Module,
        input: &ValidInput,
        media: &MediaSet,
        options: &RunOptions,
    ) -> Option<Self> {
        memory.store.filter(|_| options.enforcement == Enforcement::Full)?;
        let emit = module.manifest.context.emits.iter().find(|emit| emit.kind == CACHE)?;
        let ttl = Ttl::parse(emit.ttl).filter(|ttl| *ttl != Ttl::Request)?;
        let pattern = emit.key_pattern.clone().unwrap_or_else(|| default_pattern(CACHE));
        let hash = || input.sha256();
        // Without the input in its key, an entry would answer any question.
        let mut key =
            key(&pattern, &memory.variables(module, &hash)).filter(|key| key.input_hash.is_some())?;
        // An answer depends on more than the input. With another of these it is another question.
        let bound = canonical_sha256(&json!({
            "module": module.digest.module,
            "context": others(input.context()),
            "provider": host.provider.name(),
            // The same service at another address, or another model of it, is somebody else.
            "identity": host.provider.identity(),
            // What stands at an address can become something else; the input would not show it.
            "media": media.fingerprint(),
        }));
        key.text = format!("{}:{bound}", key.text);
        Some(Self { memory, key, ttl })
    }

    /// The answer that is kept here, if it still holds.
    pub(crate) fn take(&self, host: &Host, module: &Module) -> Option<Kept> {
        let store = self.memory.store?;
        let entry = store.get(&self.memory.owner, KIND, &self.key.text, self.memory.now()).ok()??;
        let model = entry.value.get("model").and_then(Value::as_str).map(str::to_owned);
        let envelope = module.accept(entry.value.get("envelope")?.clone(), Enforcement::Full).ok()?;
        let holds = envelope.ok() && host.gate.refusal(module.manifest.tier, &envelope).is_none();
        holds.then(|| Kept { envelope, model, notices: notices(&entry.value) })
    }

    /// Keeps an answer; the warning says why it could not.
    pub(crate) fn put(&self, module: &Module, answer: &Kept) -> Option<Warning> {
        let Kept { envelope, model, notices } = answer;
        let store = self.memory.store.filter(|_| envelope.ok())?;
        let value = json!({ "model": model, "notices": notices, "envelope": envelope });
        let now = self.memory.now();
        let entry = ContextEntry::new(KIND, self.key.clone(), value, self.ttl, now);
        let kept = store.put(&self.memory.owner, &entry.of_module(&module.manifest.name), now);
        kept.err().map(|reason| Warning::new(NOTICE, format!("the answer is not kept: {reason}")))
    }
}

fn notices(value: &Value) -> Vec<Warning> {
    let notices = value.get("notices").and_then(Value::as_array).into_iter().flatten();
    let text = |notice: &Value, name: &str| notice.get(name).and_then(Value::as_str).map(str::to_owned);
    notices.filter_map(|each| Some(Warning::new(text(each, "code")?, text(each, "message")?))).collect()
}

/// The notice of an answer that is not new.
pub(crate) fn notice() -> Warning {
    Warning::new("CACHED", "the answer was kept from an earlier run with the same input; no model was asked")
}

/// Context without what the module said of this very input before: that cannot make it another question.
fn others(context: &Map<String, Value>) -> Map<String, Value> {
    let others = context.iter().filter(|(kind, _)| *kind != CACHE);
    others.map(|(kind, value)| (kind.clone(), value.clone())).collect()
}
