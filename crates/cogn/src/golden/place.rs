//! Places in an envelope, as people write them: `data.issues[0].type`, `issues.0.type`, `/data/issues/0/type`.
//! A path starts at the envelope if its first word is one of the envelope's members, otherwise at the payload.
//! Guesses nothing: a place that is not there is reported as such.

use cognitive_contract::envelope::{FAILURE_MEMBERS, SUCCESS_MEMBERS};
use serde_json::Value;

/// An envelope to look things up in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) envelope: &'a Value,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found<'a> {
    /// The whole path from the top of the envelope.
    pub(crate) at: String,
    /// What is there.
    pub(crate) value: Option<&'a Value>,
}

impl<'a> View<'a> {
    /// The payload: `data`, or what a failure kept of it.
    pub(super) fn payload(self) -> Found<'a> {
        match (self.envelope.get("data"), self.envelope.get("partial_data")) {
            (None, Some(partial)) => Found { at: "partial_data".to_owned(), value: Some(partial) },
            (data, _) => Found { at: "data".to_owned(), value: data },
        }
    }

    /// Follows a path from the envelope or from the payload, as its first word asks.
    pub(crate) fn find(self, path: &str) -> Found<'a> {
        let words = words(path);
        if words.first().is_some_and(|word| is_envelope_member(word)) {
            walk("", Some(self.envelope), &words)
        } else {
            self.find_in_payload(path)
        }
    }

    /// Follows a path from the payload.
    pub(super) fn find_in_payload(self, path: &str) -> Found<'a> {
        let payload = self.payload();
        walk(&payload.at, payload.value, &words(path))
    }
}

/// Whether an envelope can have a member of this name.
pub(super) fn is_envelope_member(name: &str) -> bool {
    SUCCESS_MEMBERS.contains(&name) || FAILURE_MEMBERS.contains(&name)
}

/// Follows the JSON pointer of a violation from the value that was judged.
pub(super) fn below<'a>(at: &str, value: &'a Value, pointer: &str) -> Found<'a> {
    walk(at, Some(value), &words(pointer))
}

/// The path of a member. A name that would read as something else is put in quotes.
pub(super) fn member(parent: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|each| each.is_alphanumeric() || "_-$@".contains(each));
    match (parent, plain) {
        ("", true) => name.to_owned(),
        (_, true) => format!("{parent}.{name}"),
        (_, false) => format!("{parent}[{}]", Value::from(name)),
    }
}

/// The path of an item of a list.
pub(super) fn item(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// The steps of a path. Names with dots or brackets in them can be reached by a JSON pointer.
fn words(path: &str) -> Vec<String> {
    if let Some(pointer) = path.strip_prefix('/') {
        return pointer.split('/').map(|word| word.replace("~1", "/").replace("~0", "~")).collect();
    }
    let parts = path.split(['.', '[']).map(|part| part.strip_suffix(']').unwrap_or(part));
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn walk<'a>(start: &str, value: Option<&'a Value>, words: &[String]) -> Found<'a> {
    let mut found = Found { at: start.to_owned(), value };
    for word in words {
        let index = word.parse::<usize>().ok();
        found = match (found.value, index) {
            (Some(Value::Array(items)), Some(index)) => {
                Found { at: item(&found.at, index), value: items.get(index) }
            }
            (value, _) => {
                Found { at: member(&found.at, word), value: value.and_then(|value| value.get(word.as_str())) }
            }
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(envelope: &Value, path: &str) -> (String, Option<Value>) {
        let found = View { envelope }.find(path);
        (found.at, found.value.cloned())
    }

    #[test]
    fn a_path_starts_at_the_envelope_or_at_the_payload() {
        let envelope = json!({
            "ok": true, "meta": { "risk": "low" },
            "data": { "issues": [{ "type": "a" }], "data": 5, "a.b": { "c/d": 1 } },
        });
        for (path, at, value) in [
            ("issues.0.type", "data.issues[0].type", Some(json!("a"))),
            ("issues[0].type", "data.issues[0].type", Some(json!("a"))),
            ("/data/issues/0/type", "data.issues[0].type", Some(json!("a"))),
            ("data.issues", "data.issues", Some(json!([{ "type": "a" }]))),
            ("data.data", "data.data", Some(json!(5))),
            ("meta.risk", "meta.risk", Some(json!("low"))),
            ("/a.b/c~1d", r#"data["a.b"]["c/d"]"#, Some(json!(1))),
            ("issues.1.type", "data.issues[1].type", None),
            ("issues.type", "data.issues.type", None),
            ("nothing", "data.nothing", None),
        ] {
            assert_eq!(find(&envelope, path), (at.to_owned(), value), "{path}");
        }
    }

    #[test]
    fn the_payload_of_a_failure_is_what_it_kept() {
        let kept = json!({ "ok": false, "error": {}, "partial_data": { "a": 1 } });
        assert_eq!(find(&kept, "a"), ("partial_data.a".to_owned(), Some(json!(1))));
        let bare = json!({ "ok": false, "error": { "code": "E2004" } });
        assert_eq!(find(&bare, "a"), ("data.a".to_owned(), None));
        assert_eq!(find(&bare, "error.code"), ("error.code".to_owned(), Some(json!("E2004"))));
    }
}
