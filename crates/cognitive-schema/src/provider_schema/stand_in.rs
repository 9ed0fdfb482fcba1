//! The way back: a target that wants every member to be there gets `null` for those that are absent, and in the answer
//! these nulls mean "absent" again. Drops no null that the contract allows and none that leaves a gap behind.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::text::pointer;
use crate::validate::{Contract, Section};

/// How often an answer is looked through; each time, nulls may come to light that others hid.
const ROUNDS: usize = 16;

/// Takes the nulls out of an answer that only stand for absent members, and says where they were.
///
/// A null goes if the contract refuses it and the member may be missing. The envelope's own `data` and `error` are the
/// business of whoever repairs the answer: one of them does not apply, and that one is dropped there.
pub fn drop_stand_ins(contract: &Contract, reply: &mut Map<String, Value>) -> Vec<String> {
    if !reply.values().any(has_null) {
        return Vec::new();
    }
    let sections = [("data", Some(contract.data())), ("error", contract.error()), ("meta", contract.meta())];
    let mut dropped = Vec::new();
    for (name, section) in sections {
        if let (Some(section), Some(value)) = (section, reply.get_mut(name).filter(|value| has_null(value))) {
            let gone = drop_refused(section, value);
            dropped.extend(gone.into_iter().map(|path| format!("/{name}{path}")));
        }
    }
    if reply.get("_emitted_context").is_some_and(Value::is_null) {
        reply.shift_remove("_emitted_context");
        dropped.push("/_emitted_context".to_owned());
    }
    if let Some(emitted) = reply.get_mut("_emitted_context") {
        // No schema judges emitted context here, so there every null is one that the target asked for.
        drop_all(emitted, "/_emitted_context", &mut dropped);
    }
    dropped
}

/// Most answers have none, and then the contract need not be asked.
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

fn parent_of<'a>(value: &'a mut Value, path: &str) -> Option<(&'a mut Map<String, Value>, String)> {
    let (parent, token) = path.rsplit_once('/')?;
    Some((value.pointer_mut(parent)?.as_object_mut()?, name_of(token)))
}

fn name_of(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Removes members of objects, those of one object all at once; says which there were. The items of a list stay: their
/// places mean something.
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
