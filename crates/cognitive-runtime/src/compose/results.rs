//! The results of the parts of a composition, for the prompt of the whole module. (PROMPT-009, PROMPT-010)
//! Contains only what a prompt may show. Trace ids, times and tokens are left out, so that the same answers
//! make the same prompt. Nothing in a result is read as a directive.

use std::collections::{BTreeMap, HashSet};

use cognitive_contract::compose::calls::{Call, Directives, Insert};
use serde_json::{Map, Value, json};

/// The results by module name, and by the position of a call in the prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    named: BTreeMap<String, Option<Value>>,
    calls: Vec<CallReplacement>,
}

/// The replacement of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallReplacement {
    /// This result; `None` if the call was optional and failed.
    Result(Option<Value>),
    /// An empty text: the prompt does not refer to the result. (COMP-065)
    Nothing,
}

/// The replacement of a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ValueReplacement {
    /// The text as the author wrote it: no such module has run.
    AsWritten,
    /// An empty text: the module has no such value.
    Missing,
    /// This text.
    Text(String),
}

impl Results {
    /// Adds the envelope of a module; `None` if it has no result.
    pub fn add(&mut self, module: &str, envelope: Option<Value>) {
        self.named.insert(module.to_owned(), envelope);
    }

    /// Adds the replacement of the next call.
    pub(crate) fn add_call(&mut self, said: CallReplacement) {
        self.calls.push(said);
    }

    /// Returns whether there are no results.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.calls.is_empty()
    }

    /// The replacement of the call at this position; `None` leaves it as written.
    pub(crate) fn in_place_of(&self, call: &Call, place: usize) -> Option<String> {
        let result = match (self.calls.get(place), self.named.get(&call.module)) {
            (Some(CallReplacement::Nothing), _) => return Some(String::new()),
            (Some(CallReplacement::Result(result)), _) | (None, Some(result)) => result,
            (None, None) => return None,
        };
        let shown = result.as_ref().map_or(Value::Null, shown_result);
        let json = serde_json::to_string_pretty(&shown).unwrap_or_default();
        Some(format!("[Result from @call:{}]:\n{json}", call.module))
    }

    /// The replacement of a value.
    pub(crate) fn value_of(&self, insert: &Insert) -> ValueReplacement {
        match self.named.get(&insert.module) {
            None => ValueReplacement::AsWritten,
            Some(result) => {
                let text = result.as_ref().and_then(|envelope| insert.text(envelope));
                text.map_or(ValueReplacement::Missing, ValueReplacement::Text)
            }
        }
    }

    /// The results that the prompt does not place itself, by module; `None` if there are none.
    pub(crate) fn unplaced_results(&self, directives: &Directives) -> Option<String> {
        let called = directives.calls.iter().map(|call| call.module.as_str());
        let inserted = directives.inserts.iter().map(|insert| insert.module.as_str());
        let placed: HashSet<&str> = called.chain(inserted).collect();
        let rest = self.named.iter().filter(|(name, _)| !placed.contains(name.as_str()));
        let rest: Map<String, Value> = rest
            .map(|(name, result)| (name.clone(), result.as_ref().map_or(Value::Null, shown_result)))
            .collect();
        (!rest.is_empty()).then(|| format!("Results of other modules as JSON.\n{}", Value::Object(rest)))
    }
}

/// A result without the runtime's own notes.
fn shown_result(envelope: &Value) -> Value {
    let member = |pointer: &str| envelope.pointer(pointer).cloned().unwrap_or(Value::Null);
    json!({
        "ok": member("/ok"),
        "meta": {
            "confidence": member("/meta/confidence"),
            "risk": member("/meta/risk"),
            "explain": member("/meta/explain"),
        },
        "data": member("/data"),
    })
}
