//! Removes placeholder nulls from an answer. A target that requires every member gets `null` for absent ones, and here
//! these nulls become absent again. Drops no null that the contract allows or that a required member needs.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::SchemaTarget;
use crate::text::pointer;
use crate::validate::{Contract, Section};

/// The maximum number of passes over an answer; each can reveal nulls that others hid. Each pass validates the whole
/// answer.
const ROUNDS: usize = 16;

/// Removes the nulls that only represent absent members, and returns their locations.
///
/// The null of the outcome that `ok` rules out goes where the target has one object for both outcomes. The null of an
/// optional member goes if the contract refuses it and the member may be missing.
pub fn drop_stand_ins(
    contract: &Contract,
    target: SchemaTarget,
    reply: &mut Map<String, Value>,
) -> Vec<String> {
    if !reply.values().any(has_null) {
        return Vec::new();
    }
    let mut dropped = Vec::new();
    if target.null_means_other_outcome() {
        dropped.extend(drop_other_outcome(reply));
    }
    if target.writes_null_for_absent() {
        drop_absent(contract, reply, &mut dropped);
    }
    dropped
}

/// Without a clear `ok`, both `data` and `error` stay for the judge to see.
fn drop_other_outcome(reply: &mut Map<String, Value>) -> Option<String> {
    let other = if reply.get("ok")?.as_bool()? { "error" } else { "data" };
    reply.get(other)?.is_null().then(|| {
        reply.shift_remove(other);
        pointer("", other)
    })
}

fn drop_absent(contract: &Contract, reply: &mut Map<String, Value>, dropped: &mut Vec<String>) {
    let sections = [("data", Some(contract.data())), ("error", contract.error()), ("meta", contract.meta())];
    for (name, section) in sections {
        if let (Some(section), Some(value)) = (section, reply.get_mut(name).filter(|value| has_null(value))) {
            let mut gone = drop_refused(section, value);
            gone.extend(drop_ambiguous(section, value));
            dropped.extend(gone.into_iter().map(|path| format!("/{name}{path}")));
        }
    }
    if reply.get("_emitted_context").is_some_and(Value::is_null) {
        reply.shift_remove("_emitted_context");
        dropped.push("/_emitted_context".to_owned());
    }
    if let Some(emitted) = reply.get_mut("_emitted_context") {
        // No schema validates emitted context here, so every null in it is one that the target asked for.
        drop_all(emitted, "/_emitted_context", dropped);
    }
}

/// Most answers have no null, and then the contract need not be checked.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn drop_refused(section: &Section, value: &mut Value) -> Vec<String> {
    let mut dropped: Vec<String> = Vec::new();
    let mut needed: HashSet<String> = HashSet::new();
    for _ in 0..ROUNDS {
        let found = section.violations(value);
        let refused: Vec<String> = found
            .into_iter()
            .map(|violation| violation.path)
            .filter(|path| !needed.contains(path) && value.pointer(path).is_some_and(Value::is_null))
            .collect();
        if refused.is_empty() {
            break;
        }
        let removed = remove(value, refused);
        let missing: HashSet<String> =
            section.violations(value).into_iter().map(|violation| violation.path).collect();
        for path in removed {
            if missing.contains(&path) {
                restore(value, &path);
                needed.insert(path);
            } else {
                dropped.push(path);
            }
        }
    }
    dropped
}

/// Drops the nulls that may mean "absent" although no violation names their place. An allowed null can break a rule about
/// the members of its object, a choice does not say which null it refuses, and a long list has more nulls than are
/// reported. Changes nothing unless the answer keeps the contract afterwards.
fn drop_ambiguous(section: &Section, value: &mut Value) -> Vec<String> {
    if !has_null(value) || section.accepts(value) {
        return Vec::new();
    }
    let mut nulls = Vec::new();
    null_members(value, "", &mut nulls);
    let mut without = value.clone();
    let mut removed = remove(&mut without, nulls);
    for _ in 0..ROUNDS {
        let missing: HashSet<String> =
            section.violations(&without).into_iter().map(|violation| violation.path).collect();
        let count = removed.len();
        removed.retain(|path| {
            let is_needed = missing.contains(path);
            if is_needed {
                restore(&mut without, path);
            }
            !is_needed
        });
        if removed.len() == count {
            break;
        }
    }
    if !section.accepts(&without) {
        return Vec::new();
    }
    *value = without;
    removed
}

fn null_members(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let at = pointer(path, name);
                if member.is_null() { found.push(at) } else { null_members(member, &at, found) }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                null_members(item, &pointer(path, &index.to_string()), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn parent_of<'a>(value: &'a mut Value, path: &str) -> Option<(&'a mut Map<String, Value>, String)> {
    let (parent, token) = path.rsplit_once('/')?;
    Some((value.pointer_mut(parent)?.as_object_mut()?, name_of(token)))
}

fn name_of(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Removes members of objects, grouped by object, and returns those that existed. Items of arrays stay, because their
/// positions matter.
fn remove(value: &mut Value, paths: Vec<String>) -> Vec<String> {
    let mut by_parent: HashMap<&str, HashSet<String>> = HashMap::new();
    for (parent, token) in paths.iter().filter_map(|path| path.rsplit_once('/')) {
        by_parent.entry(parent).or_default().insert(name_of(token));
    }
    by_parent.retain(|parent, names| {
        let members = value.pointer_mut(parent).and_then(Value::as_object_mut);
        members.is_some_and(|members| {
            names.retain(|name| members.contains_key(name));
            members.retain(|name, _| !names.contains(name));
            true
        })
    });
    let was_there = |path: &String| {
        let place = path.rsplit_once('/');
        place.is_some_and(|(parent, token)| {
            by_parent.get(parent).is_some_and(|names| names.contains(&name_of(token)))
        })
    };
    let mut seen = HashSet::new();
    paths.iter().filter(|path| was_there(path) && seen.insert(*path)).cloned().collect()
}

fn restore(value: &mut Value, path: &str) {
    if let Some((members, name)) = parent_of(value, path) {
        members.insert(name, Value::Null);
    }
}

fn drop_all(value: &mut Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| {
                let stays = !member.is_null();
                if !stays {
                    dropped.push(pointer(path, name));
                }
                stays
            });
            for (name, member) in members {
                drop_all(member, &pointer(path, name), dropped);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                drop_all(item, &pointer(path, &index.to_string()), dropped);
            }
        }
        _ => {}
    }
}
