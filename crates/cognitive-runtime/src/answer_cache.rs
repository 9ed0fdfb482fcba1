//! The cache of whole answers, so that the same question costs one call. Only for modules that declare to
//! emit `analysis_cache`, for the lifetime they declare, under a key that contains the input hash. (S-46)
//! Never returns an answer that the module, the operator or the caller would not accept today.

use cognitive_contract::context::key::default_pattern;
use cognitive_contract::context::{ContextEntry, Key, Ttl, key};
use cognitive_contract::ports::{Event, EventSink, Stage};
use cognitive_contract::{Enforcement, Envelope, Warning};
use serde_json::{Map, Value, json};

use crate::receipt::canonical_sha256;
use crate::run::Run;
use crate::run_context::{CACHE, NOTICE};
use crate::stages::call;
use crate::stages::input::ValidInput;
use crate::stages::media::MediaSet;
use crate::stages::output::JudgedAnswer;

/// The context type of cached answers. It keeps them apart from what the module itself emits.
const KIND: &str = "_answer";

/// The cache entry for the answer to one question.
pub(crate) struct AnswerCache {
    key: Key,
    ttl: Ttl,
}

/// An answer of an earlier run.
struct CachedAnswer {
    envelope: Envelope,
    /// The `provider/model` that wrote it.
    model: Option<String>,
    /// The notices of the original run, such as repairs.
    notices: Vec<Warning>,
}

impl AnswerCache {
    /// Returns the entry of a question. `None` if the module does not cache its answers or schemas are not
    /// enforced. Also `None` if the module has parts: their answers can change without it.
    pub(crate) fn for_question(run: &Run<'_, '_>, input: &ValidInput, media: &MediaSet) -> Option<Self> {
        let module = run.module;
        if run.context.store.is_none() || run.plan.settings.enforcement() != Enforcement::Full {
            return None;
        }
        if !module.is_standalone() {
            return None;
        }
        let emit = module.manifest.context.emits.iter().find(|emit| emit.kind == CACHE)?;
        let ttl = Ttl::parse(emit.ttl).filter(|ttl| *ttl != Ttl::Request)?;
        let pattern = emit.key_pattern.clone().unwrap_or_else(|| default_pattern(CACHE));
        let hash = || input.sha256();
        // Without the input in its key, an entry would answer any question.
        let mut key =
            key(&pattern, &run.context.variables(module, &hash)).filter(|key| key.input_hash.is_some())?;
        // An answer depends on more than the input. A change to any of these makes it another question.
        let mut bound = json!({
            "module": module.digest.module,
            "context": question_context(input.context()),
            "provider": run.provider.name(),
            // The same service at another address, or another of its models, may answer differently.
            "identity": identity(run),
            // The content behind an address can change without a change of the input.
            "media": media.fingerprint(),
        });
        // Without a thinking budget, the key stays the same as before this member existed.
        if let (Some(tokens), Some(members)) =
            (call::thinking(&run.plan.settings, module), bound.as_object_mut())
        {
            members.insert("thinking".to_owned(), json!(tokens));
        }
        key.text = format!("{}:{}", key.text, canonical_sha256(&bound));
        Some(Self { key, ttl })
    }

    /// Returns the answer of an earlier run, if it is still valid and the caller accepts it.
    pub(crate) fn lookup(&self, run: &mut Run<'_, '_>) -> Option<JudgedAnswer> {
        if run.plan.settings.bypasses_cache() {
            return None;
        }
        let cached = self.find(run)?;
        run.listeners.event(Event::Stage(Stage::Kept));
        run.receipt.kept = true;
        run.receipt.model = cached.model;
        let message =
            "the answer comes from the cache of an earlier run with the same input; no model was called";
        let warnings = [vec![Warning::new("CACHED", message)], cached.notices].concat();
        Some(JudgedAnswer { warnings, ..JudgedAnswer::new(Ok(cached.envelope)) })
    }

    fn find(&self, run: &Run<'_, '_>) -> Option<CachedAnswer> {
        let (context, module) = (&run.context, run.module);
        let entry = context.store?.get(&context.owner, KIND, &self.key.text, context.now()).ok()??;
        let model = entry.value.get("model").and_then(Value::as_str).map(str::to_owned);
        let envelope = module.accept(entry.value.get("envelope")?.clone(), Enforcement::Full).ok()?;
        let holds = envelope.ok() && run.host.gate.refusal(module.manifest.tier, &envelope).is_none();
        holds.then(|| CachedAnswer { envelope, model, notices: notices(&entry.value) })
    }

    /// Stores a good new answer. Answers that used tools are not stored: a tool may return something else the
    /// next time.
    pub(crate) fn store(&self, run: &mut Run<'_, '_>, answer: &JudgedAnswer) {
        let (Some(store), Ok(envelope)) = (run.context.store, &answer.outcome) else { return };
        if !envelope.ok() || run.receipt.kept || !run.receipt.tools.is_empty() {
            return;
        }
        let value =
            json!({ "model": run.receipt.model, "notices": answer.notices(&[]), "envelope": envelope });
        let now = run.context.now();
        let entry = ContextEntry::new(KIND, self.key.clone(), value, self.ttl, now)
            .with_module(&run.module.manifest.name);
        if let Err(reason) = store.put(&run.context.owner, &entry, now) {
            run.warnings.push(Warning::new(NOTICE, format!("the answer is not cached: {reason}")));
        }
    }
}

fn notices(value: &Value) -> Vec<Warning> {
    let notices = value.get("notices").and_then(Value::as_array).into_iter().flatten();
    let text = |notice: &Value, name: &str| notice.get(name).and_then(Value::as_str).map(str::to_owned);
    notices.filter_map(|each| Some(Warning::new(text(each, "code")?, text(each, "message")?))).collect()
}

/// Returns the context without cached answers of this module, which do not change the question.
fn question_context(context: &Map<String, Value>) -> Map<String, Value> {
    let others = context.iter().filter(|(kind, _)| *kind != CACHE);
    others.map(|(kind, value)| (kind.clone(), value.clone())).collect()
}
/// The identities of all models that may have answered: the provider, and the models above it.
fn identity(run: &Run<'_, '_>) -> String {
    let above = run.above.iter().map(|rung| format!(" {} {}", rung.name(), rung.identity()));
    std::iter::once(run.provider.identity()).chain(above).collect()
}
