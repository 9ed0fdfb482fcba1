//! Combines several results into one. (COMP-050)
//! A null result counts as missing: it never replaces another. Values are not interpreted.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::manifest::Aggregate;

type Function = dyn Fn(&[Value]) -> Value + Send + Sync;

/// A host function for `aggregate: custom`. It gets the sources in order, with null for a missing result.
#[derive(Clone)]
pub struct CustomAggregate(Arc<Function>);

impl CustomAggregate {
    /// Wraps a function.
    pub fn new(function: impl Fn(&[Value]) -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }
}

impl fmt::Debug for CustomAggregate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CustomAggregate")
    }
}

/// Combines several values in source order. Returns `None` only for `custom` without a function.
#[must_use]
pub fn aggregate(strategy: Aggregate, values: Vec<Value>, custom: Option<&CustomAggregate>) -> Option<Value> {
    match strategy {
        Aggregate::Merge => Some(merge(values)),
        Aggregate::Array => Some(Value::Array(values)),
        Aggregate::First => Some(values.into_iter().find(|value| !value.is_null()).unwrap_or(Value::Null)),
        Aggregate::Custom => custom.map(|CustomAggregate(function)| function(&values)),
    }
}

/// Merges objects member by member at every depth. For all other values, including lists, the later one wins.
#[must_use]
pub fn merge(values: impl IntoIterator<Item = Value>) -> Value {
    let present = values.into_iter().filter(|value| !value.is_null());
    present.reduce(merge_two).unwrap_or(Value::Null)
}

fn merge_two(earlier: Value, later: Value) -> Value {
    match (earlier, later) {
        (Value::Object(mut earlier), Value::Object(later)) => {
            merge_members(&mut earlier, later);
            Value::Object(earlier)
        }
        (_, later) => later,
    }
}

/// Recurses as deep as the shallower of the two, which the JSON parser limits.
fn merge_members(earlier: &mut Map<String, Value>, later: Map<String, Value>) {
    for (name, value) in later {
        match (earlier.get_mut(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge_members(old, new),
            (_, value) => {
                earlier.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn aggregated(strategy: Aggregate, values: Value) -> Value {
        let Value::Array(values) = values else { panic!("no list") };
        aggregate(strategy, values, None).unwrap()
    }

    #[test]
    fn comp_050_merge_is_deep_later_wins_and_lists_are_replaced() {
        let values = json!([
            { "a": { "x": 1, "y": [1, 2] }, "b": 1, "c": { "d": 1 } },
            { "a": { "y": [3], "z": { "q": 1 } }, "c": 2 },
            { "a": { "z": { "r": 2 } }, "b": null },
        ]);
        let merged = json!({ "a": { "x": 1, "y": [3], "z": { "q": 1, "r": 2 } }, "b": null, "c": 2 });
        assert_eq!(aggregated(Aggregate::Merge, values), merged);
    }

    #[test]
    fn comp_012_a_missing_result_erases_nothing() {
        assert_eq!(aggregated(Aggregate::Merge, json!([{ "a": 1 }, null])), json!({ "a": 1 }));
        assert_eq!(aggregated(Aggregate::First, json!([null, { "a": 1 }, { "b": 2 }])), json!({ "a": 1 }));
        assert_eq!(aggregated(Aggregate::Array, json!([{ "a": 1 }, null])), json!([{ "a": 1 }, null]));
        for strategy in [Aggregate::Merge, Aggregate::First] {
            assert_eq!(aggregated(strategy, json!([null, null])), Value::Null);
            assert_eq!(aggregated(strategy, json!([])), Value::Null);
        }
    }

    #[test]
    fn comp_050_custom_needs_a_function() {
        let values = vec![json!({ "n": 1 }), Value::Null, json!({ "n": 2 })];
        assert_eq!(aggregate(Aggregate::Custom, values.clone(), None), None);
        let count = CustomAggregate::new(|values| json!({ "count": values.len() }));
        assert_eq!(aggregate(Aggregate::Custom, values, Some(&count)), Some(json!({ "count": 3 })));
    }
}
