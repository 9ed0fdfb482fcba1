//! The repair pass: fixes the form of an answer, never its meaning.
//! Fills in `meta`, shortens `explain`, matches the spelling of declared enum values, drops members that an
//! envelope cannot have. Does not clamp, convert, invent or complete anything, and lists all that it did.

use cognitive_schema::MAX_VIOLATIONS;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::envelope::{FAILURE_MEMBERS, SUCCESS_MEMBERS};
use crate::insights::UNDECLARED;
use crate::manifest::RiskRule;
use crate::meta::{EXPLAIN_LIMIT, Warning};
use crate::risk_level::Risk;
use crate::text::{self, pointer};
use crate::violation::Violation;
use crate::{risk, wrap_v21};

/// One change, with enough to undo it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repair {
    /// JSON pointer into the answer.
    pub path: String,
    /// The kind of change.
    pub rule: RepairRule,
    /// The value before; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; `None` if the member is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The number of further dropped members that are not listed. Only the last listed one has any.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The changes that are allowed. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairRule {
    /// A missing or null member of `meta` was filled in.
    Filled,
    /// `explain` was cut to its first 280 characters.
    Truncated,
    /// White space around a value was removed, because that made it valid.
    Trimmed,
    /// A value was written as declared; only case and outer white space differed.
    Matched,
    /// A member that the envelope cannot have was dropped.
    Dropped,
}

impl Repair {
    /// The change as a notice for `meta.warnings`.
    #[must_use]
    pub fn warning(&self) -> Warning {
        let path = &self.path;
        let length = |value: &Option<Value>| {
            value.as_ref().and_then(Value::as_str).map_or(0, |text| text.chars().count())
        };
        let message = match self.rule {
            RepairRule::Filled => format!("`{path}` was missing and was filled in"),
            RepairRule::Truncated => {
                format!("`{path}` truncated from {} to {}", length(&self.before), length(&self.after))
            }
            RepairRule::Trimmed => format!("white space around `{path}` was removed"),
            RepairRule::Matched => format!("`{path}` was written in its declared spelling"),
            RepairRule::Dropped if self.more > 0 => {
                format!(
                    "`{path}` and {} more were dropped, because an envelope has no such members",
                    self.more
                )
            }
            RepairRule::Dropped => format!("`{path}` was dropped, because an envelope has no such member"),
        };
        Warning::new("REPAIRED", message)
    }
}

/// Repairs an answer in place, given what is wrong with it.
pub fn repair(reply: &mut Map<String, Value>, found: &[Violation], rule: RiskRule) -> Vec<Repair> {
    let mut repairs = Vec::new();
    let Some(ok) = reply.get("ok").and_then(Value::as_bool) else { return repairs };
    drop_members(reply, ok, &mut repairs);
    fill_meta(reply, ok, rule, &mut repairs);
    shorten_explain(reply, &mut repairs);
    match_enums(reply, found, &mut repairs);
    drop_undeclared(reply, found, &mut repairs);
    repairs
}

/// Drops the members below `extensions` that nothing declares. (D-29)
fn drop_undeclared(reply: &mut Map<String, Value>, found: &[Violation], repairs: &mut Vec<Repair>) {
    for violation in found.iter().filter(|each| each.rule == UNDECLARED) {
        let Some((above, name)) = holder(reply, &violation.path) else { continue };
        let Some(before) = above.shift_remove(&name) else { continue };
        let (path, before) = (violation.path.clone(), Some(before));
        repairs.push(Repair { path, rule: RepairRule::Dropped, before, after: None, more: 0 });
    }
}

/// The object that holds a member, and the member's name.
fn holder<'a>(reply: &'a mut Map<String, Value>, path: &str) -> Option<(&'a mut Map<String, Value>, String)> {
    let (above, name) = path.rsplit_once('/')?;
    Some((place(reply, above)?.as_object_mut()?, name.replace("~1", "/").replace("~0", "~")))
}

fn drop_members(reply: &mut Map<String, Value>, ok: bool, repairs: &mut Vec<Repair>) {
    let allowed: &[&str] = if ok { &SUCCESS_MEMBERS } else { &FAILURE_MEMBERS };
    let belongs_elsewhere = ["data", "error", "partial_data"];
    let mut count = 0;
    reply.retain(|name, value| {
        let known = allowed.contains(&name.as_str());
        // A null `error` next to data means "none". A real error is a contradiction, which is not resolved
        // here.
        let dropped = !known && (!belongs_elsewhere.contains(&name.as_str()) || value.is_null());
        if dropped {
            match repairs.last_mut().filter(|_| count == MAX_VIOLATIONS) {
                Some(last) => last.more += 1,
                None => {
                    let (path, before) = (pointer("", name), Some(value.take()));
                    repairs.push(Repair { path, rule: RepairRule::Dropped, before, after: None, more: 0 });
                    count += 1;
                }
            }
        }
        !dropped
    });
}

fn fill_meta(reply: &mut Map<String, Value>, ok: bool, rule: RiskRule, repairs: &mut Vec<Repair>) {
    let usable = matches!(reply.get("meta"), None | Some(Value::Null | Value::Object(_)));
    if !usable {
        return;
    }
    let defaults = if ok { success_defaults(reply, rule) } else { failure_defaults(reply) };
    if !reply.get("meta").is_some_and(Value::is_object) {
        // `meta` is inserted right after `ok`, where people expect it.
        reply.shift_remove("meta");
        reply.shift_insert(usize::from(reply.contains_key("ok")), "meta".to_owned(), json!({}));
    }
    let Some(Value::Object(meta)) = reply.get_mut("meta") else { return };
    for (name, value) in defaults {
        if meta.get(name).is_none_or(Value::is_null) {
            let before = meta.insert(name.to_owned(), value.clone());
            repairs.push(Repair {
                path: pointer("/meta", name),
                rule: RepairRule::Filled,
                before,
                after: Some(value),
                more: 0,
            });
        }
    }
}

fn success_defaults(reply: &Map<String, Value>, rule: RiskRule) -> [(&'static str, Value); 3] {
    let empty = Map::new();
    let data = reply.get("data").and_then(Value::as_object).unwrap_or(&empty);
    let risk = risk::aggregate(data, rule).unwrap_or(Risk::Medium);
    [
        ("confidence", wrap_v21::confidence_of(data)),
        ("risk", json!(risk.word())),
        ("explain", json!(wrap_v21::explain_of(data))),
    ]
}

fn failure_defaults(reply: &Map<String, Value>) -> [(&'static str, Value); 3] {
    let message = reply.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
    let explain = message.map_or(wrap_v21::NO_EXPLANATION, |message| text::cut(message, EXPLAIN_LIMIT));
    [("confidence", json!(0.0)), ("risk", json!(Risk::High.word())), ("explain", json!(explain))]
}

fn shorten_explain(reply: &mut Map<String, Value>, repairs: &mut Vec<Repair>) {
    let Some(Value::String(explain)) = reply.get_mut("meta").and_then(|meta| meta.get_mut("explain")) else {
        return;
    };
    if text::fits(explain, EXPLAIN_LIMIT) {
        return;
    }
    let trimmed = explain.trim();
    let (rule, after) = if text::fits(trimmed, EXPLAIN_LIMIT) {
        (RepairRule::Trimmed, trimmed.to_owned())
    } else {
        (RepairRule::Truncated, text::cut(explain, EXPLAIN_LIMIT).to_owned())
    };
    let before = Some(Value::String(std::mem::replace(explain, after.clone())));
    repairs.push(Repair {
        path: "/meta/explain".to_owned(),
        rule,
        before,
        after: Some(Value::String(after)),
        more: 0,
    });
}

fn match_enums(reply: &mut Map<String, Value>, found: &[Violation], repairs: &mut Vec<Repair>) {
    for violation in found {
        let Some(options) = violation.options.as_ref().and_then(|options| options.as_array()) else {
            continue;
        };
        let Some(place) = place(reply, &violation.path) else { continue };
        let Value::String(written) = &*place else { continue };
        let Some(declared) = declared_spelling(written, options) else { continue };
        let rule = if written.trim() == declared { RepairRule::Trimmed } else { RepairRule::Matched };
        let after = Value::String(declared.to_owned());
        let before = Some(std::mem::replace(place, after.clone()));
        repairs.push(Repair { path: violation.path.clone(), rule, before, after: Some(after), more: 0 });
    }
}

/// Restores a changed or dropped value at its place.
pub fn restore_value(reply: &mut Map<String, Value>, path: &str, before: Value) {
    if let Some((above, name)) = holder(reply, path) {
        above.insert(name, before);
    } else if let Some(place) = place(reply, path) {
        *place = before;
    }
}

fn place<'a>(reply: &'a mut Map<String, Value>, path: &str) -> Option<&'a mut Value> {
    let rest = path.strip_prefix('/')?;
    let first = rest.split('/').next()?;
    let below = rest.get(first.len()..)?;
    reply.get_mut(&first.replace("~1", "/").replace("~0", "~"))?.pointer_mut(below)
}

/// The one declared value that differs only in ASCII case and outer white space.
fn declared_spelling<'a>(written: &str, options: &'a [Value]) -> Option<&'a str> {
    let trimmed = written.trim();
    let mut matches =
        options.iter().filter_map(Value::as_str).filter(|option| option.eq_ignore_ascii_case(trimmed));
    let first = matches.next()?;
    (first != written && matches.all(|other| other == first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::code::ErrorCode;

    fn repaired(mut reply: Value, found: &[Violation]) -> (Value, Vec<String>) {
        let repairs = repair(reply.as_object_mut().unwrap(), found, RiskRule::MaxChangesRisk);
        let list = repairs.iter().map(|each| format!("{} {:?}", each.path, each.rule)).collect();
        (reply, list)
    }

    fn enum_violation(path: &str, options: Value) -> Violation {
        Violation::new(path, ErrorCode::InvalidEnum, "enum", "m").with_options(Arc::new(options))
    }

    #[test]
    fn repair_002_missing_and_null_meta_members_are_filled() {
        let (value, list) = repaired(
            json!({ "ok": true, "data": { "rationale": "why" }, "meta": { "confidence": null } }),
            &[],
        );
        assert_eq!(value["meta"], json!({ "confidence": 0.5, "risk": "medium", "explain": "why" }));
        assert_eq!(list, ["/meta/confidence Filled", "/meta/risk Filled", "/meta/explain Filled"]);
        let (value, _) = repaired(json!({ "ok": false, "error": { "message": "no" } }), &[]);
        assert_eq!(value["meta"], json!({ "confidence": 0.0, "risk": "high", "explain": "no" }));
        assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["ok", "meta", "error"]);
    }

    #[test]
    fn repair_003_014_explain_is_cut_by_code_points_and_said() {
        let meta = json!({ "confidence": 1, "risk": "low", "explain": "😀".repeat(300) });
        let mut reply = json!({ "ok": true, "meta": meta, "data": {} });
        let repairs = repair(reply.as_object_mut().unwrap(), &[], RiskRule::Explicit);
        assert_eq!(reply["meta"]["explain"], "😀".repeat(280));
        assert_eq!(
            repairs[0].warning(),
            Warning::new("REPAIRED", "`/meta/explain` truncated from 300 to 280")
        );
    }

    #[test]
    fn repair_004_005_only_declared_spellings_are_matched() {
        let options = json!(["low", "medium", "Remove"]);
        let fix = |value: &str| {
            let reply = json!({ "ok": true, "meta": { "confidence": 1, "risk": "low", "explain": "" }, "data": { "a": [{ "b": value }] } });
            repaired(reply, &[enum_violation("/data/a/0/b", options.clone())]).0["data"]["a"][0]["b"].clone()
        };
        assert_eq!(fix(" low "), "low");
        assert_eq!(fix("LOW"), "low");
        assert_eq!(fix("moderate"), "moderate");
        assert_eq!(fix("re move"), "re move");
        let twins = [enum_violation("/data/x", json!(["A", "a"]))];
        let reply = json!({ "ok": true, "meta": { "confidence": 1, "risk": "low", "explain": "" }, "data": { "x": " a" } });
        assert_eq!(repaired(reply, &twins).0["data"]["x"], " a");
    }

    #[test]
    fn repair_006_to_009_011_012_nothing_else_is_touched() {
        let reply = json!({
            "ok": true, "meta": { "confidence": 1.5, "risk": " LOW", "explain": " spaces " },
            "data": { "rationale": "", "code": "  x  ", "n": "0.9" },
        });
        let (value, list) = repaired(reply.clone(), &[]);
        assert_eq!(value, reply);
        assert!(list.is_empty());
    }

    #[test]
    fn env_008_members_that_an_envelope_cannot_have_are_dropped_but_contradictions_stay() {
        let meta = json!({ "confidence": 1, "risk": "low", "explain": "" });
        let (value, list) = repaired(
            json!({ "ok": true, "note": 1, "error": null, "partial_data": {}, "meta": meta, "data": {} }),
            &[],
        );
        assert_eq!(list, ["/note Dropped", "/error Dropped"]);
        assert!(value.get("partial_data").is_some());
    }

    #[test]
    fn of_dropped_members_a_hundred_are_kept_and_the_rest_is_counted() {
        let members: Map<String, Value> = (0..10_000).map(|each| (format!("m{each}"), json!(1))).collect();
        let mut reply = Map::from_iter([("ok".to_owned(), json!(true))]);
        reply.extend(members);
        let repairs = repair(&mut reply, &[], RiskRule::Explicit);
        let dropped: Vec<&Repair> = repairs.iter().filter(|each| each.rule == RepairRule::Dropped).collect();
        assert_eq!((dropped.len(), dropped[99].more, reply.len()), (100, 9_900, 2));
        let message = "`/m99` and 9900 more were dropped, because an envelope has no such members";
        assert_eq!(dropped[99].warning(), Warning::new("REPAIRED", message));
    }

    #[test]
    fn repairing_twice_changes_nothing_more() {
        let (once, _) =
            repaired(json!({ "ok": true, "x": 1, "data": { "rationale": "r".repeat(500) } }), &[]);
        let (twice, list) = repaired(once.clone(), &[]);
        assert_eq!((twice, list.len()), (once, 0));
    }
}
