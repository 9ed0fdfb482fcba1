//! Compares two envelopes in the parts that the contract covers: success, data, error, and the values that middleware
//! routes on. Times, ids and costs differ in every run and are ignored. The number of differences is bounded, since a
//! longer list would not be read.

use cognitive_contract::text::pointer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The limit of reported differences. Two unrelated answers differ everywhere, and a longer list would not be read.
const MOST: usize = 500;

/// One difference.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct EnvelopeDifference {
    /// JSON pointer into the envelope.
    path: String,
    /// The value before; `None` if it did not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    /// The value after; `None` if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

/// Returns all differences of two envelopes, in document order.
pub(crate) fn contract_difference(before: &Value, after: &Value) -> Vec<EnvelopeDifference> {
    let mut found = Vec::new();
    let places = [
        "/ok",
        "/meta/confidence",
        "/meta/risk",
        "/meta/explain",
        "/data",
        "/error/code",
        "/error/message",
        "/partial_data",
    ];
    for place in places {
        compare(place, before.pointer(place), after.pointer(place), &mut found);
    }
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<EnvelopeDifference>) {
    if found.len() >= MOST {
        return;
    }
    match (before, after) {
        (None, None) => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => compare_members(path, one, other, found),
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                compare(&pointer(path, &index.to_string()), one.get(index), other.get(index), found);
            }
        }
        (Some(one), Some(other)) if one == other => {}
        (before, after) => found.push(EnvelopeDifference {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn compare_members(
    path: &str,
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    found: &mut Vec<EnvelopeDifference>,
) {
    for (name, value) in one {
        compare(&pointer(path, name), Some(value), other.get(name), found);
    }
    for (name, value) in other.iter().filter(|(name, _)| !one.contains_key(*name)) {
        compare(&pointer(path, name), None, Some(value), found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_contract_is_about_is_compared_and_nothing_else() {
        let before = json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "latency_ms": 3 },
                             "data": { "a/b": 1, "list": [1, 2], "gone": true } });
        let after = json!({ "ok": true, "meta": { "confidence": 0.5, "risk": "low", "latency_ms": 9 },
                            "data": { "a/b": 2, "list": [1], "new": null } });
        let told = serde_json::to_value(contract_difference(&before, &after)).unwrap();
        assert_eq!(
            told,
            json!([
                { "path": "/meta/confidence", "before": 0.9, "after": 0.5 },
                { "path": "/data/a~1b", "before": 1, "after": 2 },
                { "path": "/data/list/1", "before": 2 },
                { "path": "/data/gone", "before": true },
                { "path": "/data/new", "after": null },
            ])
        );
        assert!(contract_difference(&before, &before).is_empty());
    }

    #[test]
    fn there_is_an_end_to_differences() {
        let list = |value: u64| json!({ "data": vec![value; 10_000] });
        assert_eq!(contract_difference(&list(1), &list(2)).len(), MOST);
    }
}
