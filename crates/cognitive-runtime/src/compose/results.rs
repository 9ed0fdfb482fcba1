//! What the parts of a composition said, for the prompt of the whole. (PROMPT-009, PROMPT-010)
//! Only what a prompt may show: trace ids, times and tokens of a part are left out, so that the same answers make the
//! same prompt. Nothing in a result is read as a directive.

use std::collections::{BTreeMap, HashSet};

use cognitive_contract::compose::calls::{Call, Directives, Insert};
use serde_json::{Map, Value, json};

/// Results by the name of the module, and by the place of a call in the prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    named: BTreeMap<String, Option<Value>>,
    calls: Vec<Said>,
}

/// What stands in the place of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// This result; `None` if the call was optional and failed.
    Result(Option<Value>),
    /// Nothing: nobody refers to the result. (COMP-065)
    Nothing,
}

/// What stands in the place of a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// What the author wrote: no such module has run.
    AsWritten,
    /// Nothing: the module has no such value.
    Missing,
    /// This text.
    Text(String),
}

impl Results {
    /// Notes the envelope of a module; `None` for one that has no result.
    pub fn add(&mut self, module: &str, envelope: Option<Value>) {
        self.named.insert(module.to_owned(), envelope);
    }

    /// Notes what stands in the place of the next call.
    pub(crate) fn add_call(&mut self, said: Said) {
        self.calls.push(said);
    }

    /// Whether there is nothing to put anywhere.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.calls.is_empty()
    }

    /// The text in place of the call that stands at this place among all; `None` leaves it as it is written.
    pub(crate) fn in_place_of(&self, call: &Call, place: usize) -> Option<String> {
        let result = match (self.calls.get(place), self.named.get(&call.module)) {
            (Some(Said::Nothing), _) => return Some(String::new()),
            (Some(Said::Result(result)), _) | (None, Some(result)) => result,
            (None, None) => return None,
        };
        let shown = result.as_ref().map_or(Value::Null, shown);
        let json = serde_json::to_string_pretty(&shown).unwrap_or_default();
        Some(format!("[Result from @call:{}]:\n{json}", call.module))
    }

    /// What stands in the place of a value.
    pub(crate) fn value_of(&self, insert: &Insert) -> Shown {
        match self.named.get(&insert.module) {
            None => Shown::AsWritten,
            Some(result) => {
                let text = result.as_ref().and_then(|envelope| insert.shown(envelope));
                text.map_or(Shown::Missing, Shown::Text)
            }
        }
    }

    /// The results that the prompt does not place itself, by module; `None` if there are none.
    pub(crate) fn not_placed(&self, directives: &Directives) -> Option<String> {
        let called = directives.calls.iter().map(|call| call.module.as_str());
        let inserted = directives.inserts.iter().map(|insert| insert.module.as_str());
        let placed: HashSet<&str> = called.chain(inserted).collect();
        let rest = self.named.iter().filter(|(name, _)| !placed.contains(name.as_str()));
        let rest: Map<String, Value> =
            rest.map(|(name, result)| (name.clone(), result.as_ref().map_or(Value::Null, shown))).collect();
        (!rest.is_empty()).then(|| format!("Results of other modules as JSON.\n{}", Value::Object(rest)))
    }
}

/// A result without the runtime's own notes.
fn shown(envelope: &Value) -> Value {
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
