//! Sorts the members of an envelope into the order in which a model writes them. Changes no value and drops none.

use std::collections::{HashSet, VecDeque};
use std::ptr;

use serde_json::{Map, Value};

use super::merge::union_of;
use super::{EnvelopeRules, envelope_schema};
use crate::validate::Contract;

/// Sorts the members of an envelope at every depth, in the order of every target: `ok`, the payload with its
/// `rationale` first, `meta` last. Undescribed members keep their order after the others.
#[must_use]
pub fn in_order(contract: &Contract, rules: &EnvelopeRules<'_>, envelope: &Value) -> Value {
    let schema = envelope_schema(contract, rules);
    sort_members(envelope, &[&schema], &schema)
}

fn sort_members(value: &Value, schemas: &[&Value], root: &Value) -> Value {
    let schemas = plain(schemas, root);
    match value {
        Value::Object(members) => {
            let (mut names, mut seen): (Vec<&String>, HashSet<&String>) = Default::default();
            let known = schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
            for name in known.flat_map(Map::keys).chain(members.keys()) {
                if members.contains_key(name) && seen.insert(name) {
                    names.push(name);
                }
            }
            let member = |name: &String| {
                let below: Vec<&Value> =
                    schemas.iter().filter_map(|schema| schema.get("properties")?.get(name)).collect();
                Some((name.clone(), sort_members(members.get(name)?, &below, root)))
            };
            Value::Object(names.into_iter().filter_map(member).collect())
        }
        Value::Array(items) => {
            let below: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
            Value::Array(items.iter().map(|item| sort_members(item, &below, root)).collect())
        }
        scalar => scalar.clone(),
    }
}

/// Resolves schemas: the target of a reference, and each branch of a choice. Visits each once.
fn plain<'a>(schemas: &[&'a Value], root: &'a Value) -> Vec<&'a Value> {
    let mut next: VecDeque<&Value> = schemas.iter().copied().collect();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while let Some(schema) = next.pop_front() {
        let Some(members) = schema.as_object().filter(|_| seen.insert(ptr::from_ref(schema))) else {
            continue;
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            next.extend(reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)));
            continue;
        }
        // A choice may have other keywords next to it, such as at the top of the envelope.
        found.push(schema);
        next.extend(union_of(members).into_iter().flat_map(|(_, branches)| branches));
    }
    found
}
