//! What a module hands on: only types that it declares, only values that keep the declared schema, each with its life
//! and its key. Whatever is dropped is dropped with a notice; the answer itself stands.

use std::time::SystemTime;

use serde_json::{Map, Value};

use super::entry::{ContextEntry, Ttl};
use super::key::{Variables, default_pattern, key};
use super::{EMITTED, NOTICE, notice};
use crate::manifest::EmitEntry;
use crate::meta::Warning;
use crate::module::Module;
use crate::violation::{Side, Violation, summarise};

/// Where and when context is emitted.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    /// What keys are made of.
    pub variables: Variables<'a>,
    /// The moment.
    pub now: SystemTime,
}

/// Emitted context that passed.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Emission {
    /// By type: what the envelope shows, and what the rest of the request can see.
    pub visible: Map<String, Value>,
    /// What is to be stored.
    pub entries: Vec<ContextEntry>,
    /// Notices for `meta.warnings`.
    pub warnings: Vec<Warning>,
}

/// Judges the `_emitted_context` of an answer; `None` where the answer has none.
#[must_use]
pub fn emitted(module: &Module, emitted: Option<&Value>, origin: &Origin<'_>) -> Emission {
    let mut emission = Emission::default();
    let given = match emitted {
        None => return emission,
        Some(Value::Object(given)) => given,
        Some(_) => {
            emission
                .warnings
                .push(Warning::new(NOTICE, format!("`{EMITTED}` was dropped: expected an object")));
            return emission;
        }
    };
    let declared = |kind: &str| module.manifest.context.emits.iter().find(|emit| emit.kind == kind);
    let (mut undeclared, mut homeless) = (Vec::new(), Vec::new());
    for (kind, value) in given {
        let Some(emit) = declared(kind) else {
            undeclared.push(kind.as_str());
            continue;
        };
        if let Some(warning) = broken(module, emit, value) {
            emission.warnings.push(warning);
            continue;
        }
        emission.visible.insert(kind.clone(), value.clone());
        match entry(emit, value, origin) {
            EmitFate::Stored(entry) => emission.entries.push(*entry),
            EmitFate::NoKey => homeless.push(kind.as_str()),
            EmitFate::Passing => {}
        }
    }
    let dropped = "emitted context that the module does not declare was dropped";
    emission.warnings.extend(notice(dropped, undeclared));
    let not_stored = "emitted context is not stored, because its key names an id that the run does not have";
    emission.warnings.extend(notice(not_stored, homeless));
    emission
}

/// The notice about a value that breaks its declared schema.
fn broken(module: &Module, emit: &EmitEntry, value: &Value) -> Option<Warning> {
    let section = emit.schema.as_deref().and_then(|place| module.contract.context(place))?;
    let found = Violation::find(section, value, Side::Output);
    if found.is_empty() {
        return None;
    }
    let why = summarise(&found.iter().collect::<Vec<_>>());
    Some(Warning::new(NOTICE, format!("emitted context `{}` was dropped: {why}", emit.kind)))
}

enum EmitFate {
    Stored(Box<ContextEntry>),
    /// A variable of its key has no value.
    NoKey,
    /// For this request only.
    Passing,
}

fn entry(emit: &EmitEntry, value: &Value, origin: &Origin<'_>) -> EmitFate {
    let ttl = Ttl::parse(emit.ttl).unwrap_or(Ttl::Request);
    if ttl == Ttl::Request {
        return EmitFate::Passing;
    }
    let filled = match &emit.key_pattern {
        Some(pattern) => key(pattern, &origin.variables),
        None => key(&default_pattern(&emit.kind), &origin.variables),
    };
    let Some(key) = filled else { return EmitFate::NoKey };
    let entry = ContextEntry::new(&emit.kind, key, value.clone(), ttl, origin.now);
    EmitFate::Stored(Box::new(entry.of_module(origin.variables.module)))
}
