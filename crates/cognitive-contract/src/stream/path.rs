//! Appends text at a dotted path such as `data.analysis.description`.
//! Paths are untrusted: a path cannot build arrays of any length, nest deeper than [`MAX_DEPTH`], or overwrite an
//! existing value of another type. Such text is dropped, because the final chunk contains it anyway.

use serde_json::{Map, Value};

/// The maximum number of names in a path. Deep enough for any schema, and shallow enough not to overflow the stack.
const MAX_DEPTH: usize = 100;

/// Appends `text` to the string at `field` within `data`, and creates the string if it is missing. In a list, a numeric
/// name is an index: of an existing element, or of the next one to add.
///
/// Returns `false` and changes nothing if the path is invalid. A valid path starts with `data.`, has no empty name and
/// not too many names, and meets no value of the wrong type.
pub(super) fn append(data: &mut Map<String, Value>, field: &str, text: &str) -> bool {
    let Some(path) = field.strip_prefix("data.") else { return false };
    if path.split('.').count() > MAX_DEPTH || path.split('.').any(str::is_empty) {
        return false;
    }
    let mut names = path.split('.');
    let Some(first) = names.next() else { return false };
    let mut place = data.entry(first).or_insert(Value::Null);
    for name in names {
        match step(place, name) {
            Some(next) => place = next,
            None => return false,
        }
    }
    write(place, text)
}

/// Descends one level. Null counts as missing, because a model may write null before it knows the value. Below a newly
/// created value a step always succeeds, so a rejected path has created nothing.
fn step<'a>(place: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    if place.is_null() {
        *place = Value::Object(Map::new());
    }
    match place {
        Value::Object(members) => Some(members.entry(name).or_insert(Value::Null)),
        Value::Array(list) => {
            let index: usize = name.parse().ok()?;
            if index == list.len() {
                list.push(Value::Null);
            }
            list.get_mut(index)
        }
        _ => None,
    }
}

fn write(place: &mut Value, text: &str) -> bool {
    match place {
        Value::Null => *place = Value::from(text),
        Value::String(so_far) => so_far.push_str(text),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(before: &Value, field: &str, after: &Value) {
        let mut data = before.as_object().unwrap().clone();
        let written = append(&mut data, field, "x");
        assert_eq!(Value::Object(data), *after, "{field}");
        assert_eq!(written, before != after, "{field}");
    }

    #[test]
    fn stream_007_text_is_appended_or_begun() {
        check(&json!({}), "data.rationale", &json!({ "rationale": "x" }));
        check(&json!({ "rationale": "a" }), "data.rationale", &json!({ "rationale": "ax" }));
        check(&json!({}), "data.a.b.0", &json!({ "a": { "b": { "0": "x" } } }));
        check(&json!({ "a": null }), "data.a.b", &json!({ "a": { "b": "x" } }));
    }

    #[test]
    fn stream_007_numbers_are_indices_where_a_list_stands() {
        let list = json!({ "a": [{ "t": "0" }, "1"] });
        check(&list, "data.a.0.t", &json!({ "a": [{ "t": "0x" }, "1"] }));
        check(&list, "data.a.1", &json!({ "a": [{ "t": "0" }, "1x"] }));
        check(&list, "data.a.2.t", &json!({ "a": [{ "t": "0" }, "1", { "t": "x" }] }));
    }

    #[test]
    fn stream_007_paths_that_lead_nowhere_change_nothing() {
        let data = json!({ "a": [1], "n": 5, "s": "text", "o": {} });
        for field in [
            "",
            "data",
            "data.",
            "meta.explain",
            "rationale",
            "data..a",
            "data.a.",
            "data.a.4000000000",
            "data.a.-1",
            "data.a.99999999999999999999999",
            "data.a.b",
            "data.a.0",
            "data.n",
            "data.n.x",
            "data.s.x",
            "data.o",
        ] {
            check(&data, field, &data);
        }
    }

    #[test]
    fn stream_007_depth_is_bounded() {
        let deep = |names: usize| format!("data{}", ".a".repeat(names));
        let mut data = Map::new();
        assert!(append(&mut data, &deep(MAX_DEPTH), "x"));
        assert!(append(&mut data, &deep(MAX_DEPTH), "y"));
        assert!(!append(&mut data, &deep(MAX_DEPTH + 1), "x"));
        assert!(!append(&mut data, &deep(1_000_000), "x"));
    }
}
