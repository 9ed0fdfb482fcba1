//! When two JSON values are the same: numbers by value, texts exact, booleans only equal booleans.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Deep equality in which `0` is `0.0`. The order of members plays no part.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => same_number(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_in_right =
                |(name, value): (&String, &Value)| right.get(name).is_some_and(|other| same(value, other));
            left.len() == right.len() && left.iter().all(is_in_right)
        }
        _ => left == right,
    }
}

/// Whole numbers are compared as such: two large ones can be the same float and yet differ.
fn same_number(left: &Number, right: &Number) -> bool {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left == right,
        _ => match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => left.partial_cmp(&right) == Some(Ordering::Equal),
            _ => false,
        },
    }
}
