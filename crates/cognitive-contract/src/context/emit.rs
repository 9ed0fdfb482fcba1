//! Checks the context that a module emits: only declared types, only values that match the declared schema, each with
//! its TTL and key. Dropped context causes a notice; the answer itself stays valid.

use std::time::SystemTime;

use serde_json::{Map, Value};

use super::entry::{ContextEntry, Ttl};
use super::key::{Variables, default_pattern, key};
use super::{EMITTED, NOTICE, notice};
use crate::manifest::EmitEntry;
use crate::meta::Warning;
use crate::module::Module;
use crate::violation::{Side, Violation, summarise};

/// The run and the moment in which context is emitted.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    /// The variables of key patterns.
    pub variables: Variables<'a>,
    /// The current time.
    pub now: SystemTime,
}

/// Emitted context that was accepted.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Emission {
    /// By type: the context in the envelope, which the rest of the request can also see.
    pub visible: Map<String, Value>,
    /// Entries to store.
    pub entries: Vec<ContextEntry>,
    /// Notices for `meta.warnings`.
    pub warnings: Vec<Warning>,
}

/// Checks the `_emitted_context` of an answer. Without one, returns an empty emission.
#[must_use]
pub fn check_emission(module: &Module, emitted: Option<&Value>, origin: &Origin<'_>) -> Emission {
    let mut emission = Emission::default();
    let given = match emitted {
        None => return emission,
        Some(Value::Object(given)) => given,
        Some(_) => {
            emission.warnings.push(not_context());
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
        if let Some(warning) = schema_warning(module, emit, value) {
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

/// The notice about emitted context that is not an object of types.
#[must_use]
pub fn not_context() -> Warning {
    Warning::new(NOTICE, format!("`{EMITTED}` was dropped: expected an object"))
}

/// The notice about a value that breaks its declared schema.
fn schema_warning(module: &Module, emit: &EmitEntry, value: &Value) -> Option<Warning> {
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
    /// A variable in the key pattern has no value.
    NoKey,
    /// Valid for this request only.
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
    EmitFate::Stored(Box::new(entry.with_module(origin.variables.module)))
}
