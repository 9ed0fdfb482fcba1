//! The way back: a target that wants every member to be there gets `null` for those that are absent, and in the answer
//! these nulls mean "absent" again. Drops no null that the contract allows and none that leaves a gap behind.

use serde_json::{Map, Value};

use crate::module::Module;
use crate::schema::{Section, Side};
use crate::text::pointer;

/// How often an answer is looked through; each time, nulls may come to light that others hid.
const ROUNDS: usize = 16;

/// Takes the nulls out of an answer that only stand for absent members, and says where they were.
///
/// A null goes if the contract refuses it and the member may be missing. The envelope's own `data` and `error` are the
/// business of [`repair`](crate::repair), which drops the one that does not apply.
pub fn drop_stand_ins(module: &Module, reply: &mut Map<String, Value>) -> Vec<String> {
    if !reply.values().any(has_null) {
        return Vec::new();
    }
    let contract = &module.contract;
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
    let mut needed: Vec<String> = Vec::new();
    for _ in 0..ROUNDS {
        let found = section.violations(value, Side::Output);
        let refused: Vec<String> = found
            .into_iter()
            .map(|violation| violation.path)
            .filter(|path| !needed.contains(path) && value.pointer(path).is_some_and(Value::is_null))
            .collect();
        if refused.is_empty() {
            break;
        }
        let removed: Vec<String> = refused.into_iter().filter(|path| remove(value, path)).collect();
        let missing: Vec<String> =
            section.violations(value, Side::Output).into_iter().map(|violation| violation.path).collect();
        for path in removed {
            if missing.contains(&path) {
                restore(value, &path);
                needed.push(path);
            } else {
                dropped.push(path);
            }
        }
    }
    dropped
}

fn parent_of<'a>(value: &'a mut Value, path: &str) -> Option<(&'a mut Map<String, Value>, String)> {
    let (parent, token) = path.rsplit_once('/')?;
    let name = token.replace("~1", "/").replace("~0", "~");
    Some((value.pointer_mut(parent)?.as_object_mut()?, name))
}

/// Removes a member of an object. The items of a list stay: their places mean something.
fn remove(value: &mut Value, path: &str) -> bool {
    parent_of(value, path).is_some_and(|(members, name)| members.shift_remove(&name).is_some())
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
