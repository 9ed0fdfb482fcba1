//! Choices: checks whether branches exclude each other, and writes a choice or a `null`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::merge::{types_of, union_of, values_of};

/// With more branches than this, pairs are not compared. The check then only searches for one tag that distinguishes
/// all branches. The number of pairs grows with the square of the branches.
const MAX_COMPARED: usize = 64;

/// Returns whether no value can match two of the branches, as far as types, listed values and tags show.
pub(super) fn is_disjoint(branches: &[Value]) -> bool {
    if branches.len() > MAX_COMPARED {
        return have_one_tag(branches);
    }
    branches
        .iter()
        .enumerate()
        .all(|(index, branch)| branches.iter().skip(index + 1).all(|other| exclude(branch, other)))
}

/// Returns whether all are objects with a common required member whose listed values differ. Visits each branch once
/// for each member of the first.
fn have_one_tag(branches: &[Value]) -> bool {
    let tells_apart = |name: &String| {
        let mut seen = HashSet::new();
        branches.iter().all(|branch| {
            let values = branch.as_object().and_then(|branch| tag_values(branch, name));
            values.is_some_and(|values| values.into_iter().all(|value| seen.insert(value)))
        })
    };
    let first = branches.first().and_then(|branch| branch.get("properties")).and_then(Value::as_object);
    first.into_iter().flat_map(Map::keys).take(MAX_TAGS).any(tells_apart)
}

/// The listed string values of a required member. Numbers are left out, because differently written numbers can be
/// equal.
fn tag_values(branch: &Map<String, Value>, name: &str) -> Option<Vec<Value>> {
    let is_object = branch.get("type").is_some_and(|kind| kind == "object");
    let required = branch.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|each| each == name));
    let member = branch.get("properties").and_then(|members| members.get(name)).and_then(Value::as_object)?;
    let mut values = values_of(member).filter(|values| values.iter().all(Value::is_string))?;
    values.dedup();
    (is_object && is_required).then_some(values)
}

/// The number of members that are tried as the tag of a large choice. Authors put the tag first.
const MAX_TAGS: usize = 8;

/// Returns whether no value can match both.
pub(super) fn exclude(a: &Value, b: &Value) -> bool {
    let (a, b) = match (a, b) {
        (Value::Object(a), Value::Object(b)) => (a, b),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => return true,
        _ => return false,
    };
    for (choice, other) in [(a, b), (b, a)] {
        if let Some((_, branches)) = union_of(choice) {
            let other = Value::Object(other.clone());
            return branches.iter().all(|branch| exclude(branch, &other));
        }
    }
    if let (Some(first), Some(second)) = (types_of(a), types_of(b)) {
        let same =
            |x: &str, y: &str| x == y || matches!((x, y), ("integer", "number") | ("number", "integer"));
        if !first.iter().any(|x| second.iter().any(|y| same(x, y))) {
            return true;
        }
    }
    have_other_values(a, b) || have_other_tags(a, b)
}

fn have_other_values(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    match (values_of(a), values_of(b)) {
        (Some(first), Some(second)) => !first.iter().any(|value| second.contains(value)),
        _ => false,
    }
}

/// Returns whether both are objects with the same required member but with different values of it.
fn have_other_tags(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let is_object = |node: &Map<String, Value>| node.get("type").is_some_and(|name| name == "object");
    let requires = |node: &Map<String, Value>, name: &str| {
        let required = node.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|each| each == name))
    };
    let member = |node: &Map<String, Value>, name: &str| {
        node.get("properties").and_then(|properties| properties.get(name)).and_then(Value::as_object).cloned()
    };
    let names = a.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    is_object(a) && is_object(b) && names.into_iter().any(|name| {
        requires(a, name)
            && requires(b, name)
            && matches!((member(a, name), member(b, name)), (Some(x), Some(y)) if have_other_values(&x, &y))
    })
}

/// A choice among the given schemas; `None` if there are none.
pub(super) fn any_of(mut said: Vec<Value>) -> Option<Value> {
    if said.iter().all(is_bare_type) && said.len() > 1 {
        let mut names: Vec<Value> = Vec::new();
        for name in said.iter().filter_map(|each| each.get("type")) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        return match names.as_slice() {
            [one] => Some(json!({ "type": one })),
            _ => Some(json!({ "type": names })),
        };
    }
    match said.len() {
        0 => None,
        1 => said.pop(),
        _ => Some(json!({ "anyOf": said })),
    }
}

fn is_bare_type(said: &Value) -> bool {
    let is_scalar =
        |name: &Value| matches!(name.as_str(), Some("string" | "number" | "integer" | "boolean" | "null"));
    said.as_object().is_some_and(|members| members.len() == 1) && said.get("type").is_some_and(is_scalar)
}

/// Returns a schema that also accepts null.
pub(super) fn nullable(said: Value) -> Value {
    let Value::Object(mut members) = said else { return said };
    let is_listed = members.contains_key("enum") || members.contains_key("const");
    match members.get_mut("type") {
        Some(Value::String(name)) if name == "null" => {}
        Some(Value::String(name)) if !is_listed && !matches!(name.as_str(), "object" | "array") => {
            let both = json!([name, "null"]);
            members.insert("type".to_owned(), both);
        }
        Some(Value::Array(names)) => {
            if !names.iter().any(|name| name == "null") {
                names.push(json!("null"));
            }
        }
        _ => return choice_with_null(members),
    }
    Value::Object(members)
}

fn choice_with_null(mut members: Map<String, Value>) -> Value {
    let nothing = json!({ "type": "null" });
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        if !branches.contains(&nothing) {
            branches.push(nothing);
        }
        return Value::Object(members);
    }
    let description = members.shift_remove("description");
    let mut choice = Map::from_iter([("anyOf".to_owned(), json!([members, nothing]))]);
    if let Some(description) = description {
        choice.shift_insert(0, "description".to_owned(), description);
    }
    Value::Object(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_05_branches_exclude_each_other_by_type_value_or_tag() {
        let tagged = |tag: &str| json!({ "type": "object", "required": ["t"], "properties": { "t": { "const": tag } } });
        assert!(is_disjoint(&[json!({ "type": "string" }), json!({ "type": "object" })]));
        assert!(is_disjoint(&[json!({ "enum": ["a"] }), json!({ "const": "b" }), json!(false)]));
        assert!(is_disjoint(&[tagged("a"), tagged("b")]));
        assert!(!is_disjoint(&[tagged("a"), tagged("a")]));
        assert!(!is_disjoint(&[json!({ "type": "integer" }), json!({ "type": "number" })]));
        assert!(!is_disjoint(&[json!({ "minimum": 1 }), json!({ "maximum": 0 })]));
    }

    #[test]
    fn many_branches_are_told_apart_by_one_tag() {
        let tagged = |tag: usize| {
            let properties = json!({ "n": { "type": "integer" }, "t": { "enum": [format!("tag {tag}"), format!("other {tag}")] } });
            json!({ "type": "object", "required": ["t"], "properties": properties })
        };
        let mut branches: Vec<Value> = (0..500).map(tagged).collect();
        assert!(is_disjoint(&branches));
        branches[499] = tagged(7);
        assert!(!is_disjoint(&branches), "one tag stands twice");
        branches[499] = json!({ "type": "string" });
        assert!(!is_disjoint(&branches), "and one has none");
    }

    #[test]
    fn d_05_null_joins_a_type_or_becomes_a_branch() {
        assert_eq!(
            nullable(json!({ "type": "string", "pattern": "a" })),
            json!({ "type": ["string", "null"], "pattern": "a" })
        );
        assert_eq!(nullable(json!({ "type": ["string", "null"] })), json!({ "type": ["string", "null"] }));
        let listed = json!({ "type": "string", "enum": ["a"], "description": "d" });
        let expected =
            json!({ "description": "d", "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] });
        assert_eq!(nullable(listed), expected);
        assert_eq!(nullable(expected.clone()), expected);
        assert_eq!(nullable(json!({ "$ref": "#/$defs/a" }))["anyOf"][1], json!({ "type": "null" }));
    }

    #[test]
    fn d_05_bare_types_are_a_list() {
        assert_eq!(
            any_of(vec![json!({ "type": "string" }), json!({ "type": "null" })]),
            Some(json!({ "type": ["string", "null"] }))
        );
        assert_eq!(any_of(vec![json!({ "type": "string" })]), Some(json!({ "type": "string" })));
        assert_eq!(any_of(Vec::new()), None);
    }
}
