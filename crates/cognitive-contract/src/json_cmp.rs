//! Equality and order of JSON values: numbers by value, strings exactly. Converts no types.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Returns whether two values are deeply equal. `0` equals `0.0`, and the order of members is ignored.
#[must_use]
pub fn deep_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => number_order(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| deep_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_in_right = |(name, value): (&String, &Value)| {
                right.get(name).is_some_and(|other| deep_equal(value, other))
            };
            left.len() == right.len() && left.iter().all(is_in_right)
        }
        _ => left == right,
    }
}

/// Returns the order of two numbers, or of two strings by code points. All other pairs have none, not even
/// `null` and `null`.
#[must_use]
pub fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => number_order(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Integers are compared as integers: two large ones can be the same float and still differ.
fn number_order(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_by_value_and_nothing_else_loosely() {
        for (left, right) in [
            (json!(0), json!(0.0)),
            (json!([1, { "a": 2.0 }]), json!([1.0, { "a": 2 }])),
            (json!({ "a": 1, "b": 2 }), json!({ "b": 2, "a": 1 })),
        ] {
            assert!(deep_equal(&left, &right), "{left} {right}");
        }
        for (left, right) in [
            (json!(1), json!(true)),
            (json!(0), json!(null)),
            (json!("1"), json!(1)),
            (json!({ "a": 1 }), json!({ "a": 1, "b": 1 })),
            (json!({ "a": 1 }), json!({ "b": 1 })),
            (json!([1]), json!([1, 1])),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        ] {
            assert!(!deep_equal(&left, &right), "{left} {right}");
        }
    }

    #[test]
    fn only_numbers_and_texts_have_an_order() {
        assert_eq!(order(&json!(1), &json!(1.5)), Some(Ordering::Less));
        assert_eq!(order(&json!(u64::MAX), &json!(-1)), Some(Ordering::Greater));
        assert_eq!(order(&json!("a"), &json!("Z")), Some(Ordering::Greater));
        for (left, right) in [
            (json!(null), json!(null)),
            (json!(true), json!(false)),
            (json!([1]), json!([0])),
            (json!({}), json!({})),
            (json!("1"), json!(0)),
        ] {
            assert_eq!(order(&left, &right), None, "{left} {right}");
        }
    }
}
