//! The displayed form of a manifest: all defaults are explicit, also those of a composition. The manifest itself stores
//! a composition as written, because a default limit binds only the root module of a run.

use serde_json::{Map, Value, json};

use super::Manifest;
use crate::compose::graph::DEFAULT_DEPTH;
use crate::compose::plan::DEFAULT_TIMEOUT;

impl Manifest {
    /// The manifest with all defaults, as JSON.
    #[must_use]
    pub fn effective(&self) -> Value {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        if let Some(composition) = shown.get_mut("composition").and_then(Value::as_object_mut) {
            complete(composition);
        }
        shown
    }
}

fn complete(composition: &mut Map<String, Value>) {
    let timeout = u64::try_from(DEFAULT_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    for (name, value) in [
        ("pattern", json!("sequential")),
        ("requires", json!([])),
        ("max_depth", json!(DEFAULT_DEPTH)),
        ("timeout_ms", json!(timeout)),
        ("dataflow", json!([])),
        ("routing", json!([])),
    ] {
        composition.entry(name).or_insert(value);
    }
    // The fallback of each part that sets none.
    let stand_in = composition.get("fallback").cloned().unwrap_or_default();
    let parts = composition.get_mut("requires").and_then(Value::as_array_mut).into_iter().flatten();
    for part in parts.filter_map(Value::as_object_mut) {
        part.entry("version").or_insert_with(|| json!("*"));
        part.entry("fallback").or_insert_with(|| stand_in.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    // MAN-003: the effective values are shown, including defaults.
    #[test]
    fn man_003_the_defaults_of_a_composition_are_shown() {
        let written = json!({
            "name": "m", "version": "1.0.0", "responsibility": "r", "tier": "decision",
            "composition": { "requires": [{ "name": "a" }, { "name": "b", "version": "^1.0.0", "fallback": "c" }] },
        });
        let shown = Manifest::from_value(&written, Format::V22).unwrap().effective();
        assert_eq!(
            shown["composition"],
            json!({
                "pattern": "sequential", "max_depth": 5, "timeout_ms": 60_000, "dataflow": [], "routing": [],
                "requires": [
                    { "name": "a", "version": "*", "optional": false, "fallback": null },
                    { "name": "b", "version": "^1.0.0", "optional": false, "fallback": "c" },
                ],
            })
        );
        let alone = json!({ "name": "m", "version": "1.0.0", "responsibility": "r" });
        assert_eq!(Manifest::from_value(&alone, Format::V21).unwrap().effective().get("composition"), None);
    }
}
