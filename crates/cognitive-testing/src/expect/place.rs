//! Places in an envelope, in every accepted spelling: `data.issues[0].type`, `issues.0.type`,
//! `/data/issues/0/type`, and `issues[*].type` for every item. A path starts at the envelope if its first
//! word is an envelope member, otherwise at the payload. Guesses nothing: a missing place is reported as
//! such.

use cognitive_contract::envelope::{FAILURE_MEMBERS, SUCCESS_MEMBERS};
use serde_json::Value;

/// The self-assessment of a module, in `meta`.
pub(super) const META_NAMES: [&str; 3] = ["confidence", "risk", "explain"];

/// An envelope for lookups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) envelope: &'a Value,
}

/// The result of following a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundPlace<'a> {
    /// The whole path from the top of the envelope.
    pub(crate) at: String,
    /// The value there, if any.
    pub(crate) value: Option<&'a Value>,
}

impl<'a> View<'a> {
    /// Returns the payload: `data`, or the `partial_data` of a failure.
    pub(crate) fn payload(self) -> FoundPlace<'a> {
        match (self.envelope.get("data"), self.envelope.get("partial_data")) {
            (None, Some(partial)) => FoundPlace { at: "partial_data".to_owned(), value: Some(partial) },
            (data, _) => FoundPlace { at: "data".to_owned(), value: data },
        }
    }

    /// Returns every place of a path: one, or with `*` one per item. The first word decides whether the path
    /// starts at the envelope or at the payload. The result is never empty: a missing place is returned
    /// without a value.
    pub(crate) fn find_all(self, path: &str) -> Vec<FoundPlace<'a>> {
        let words = words(path);
        if words.first().is_some_and(|word| matches!(word, PathWord::Name(name) if is_envelope_member(name)))
        {
            walk(FoundPlace { at: String::new(), value: Some(self.envelope) }, &words)
        } else {
            walk(self.payload(), &words)
        }
    }

    /// Returns the places of a name in a rule. A payload member with that name comes first, even if the name
    /// contains a dot. Otherwise the name is a path; `confidence`, `risk` and `explain` are looked up in
    /// `meta`. Documents from before the split of `data` and `meta` use these names alone (TEST-002).
    pub(crate) fn find_named(self, name: &str) -> Vec<FoundPlace<'a>> {
        let payload = self.payload();
        let own = payload.value.and_then(|payload| payload.get(name));
        if own.is_some() {
            return vec![FoundPlace { at: member(&payload.at, name), value: own }];
        }
        if META_NAMES.contains(&name) {
            return self.find_all(&format!("meta.{name}"));
        }
        self.find_all(name)
    }

    /// Follows a path from the payload.
    pub(crate) fn find_in_payload(self, path: &str) -> FoundPlace<'a> {
        let payload = self.payload();
        let nothing = FoundPlace { at: payload.at.clone(), value: None };
        walk(payload, &words(path)).into_iter().next().unwrap_or(nothing)
    }
}

/// The first word of a path.
pub(crate) fn first_word(path: &str) -> Option<String> {
    match words(path).into_iter().next()? {
        PathWord::Name(name) => Some(name),
        PathWord::Every => None,
    }
}

/// Returns whether an envelope can have a member with this name.
pub(crate) fn is_envelope_member(name: &str) -> bool {
    SUCCESS_MEMBERS.contains(&name) || FAILURE_MEMBERS.contains(&name)
}

/// Follows the JSON pointer of a violation from the judged value.
pub(crate) fn at_pointer<'a>(at: &str, value: &'a Value, pointer: &str) -> FoundPlace<'a> {
    let start = FoundPlace { at: at.to_owned(), value: Some(value) };
    walk(start.clone(), &words(pointer)).into_iter().next().unwrap_or(start)
}

/// Returns the path of a member. A name with other characters than letters, digits and `_-$@` is quoted.
pub(crate) fn member(parent: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|each| each.is_alphanumeric() || "_-$@".contains(each));
    match (parent, plain) {
        ("", true) => name.to_owned(),
        (_, true) => format!("{parent}.{name}"),
        (_, false) => format!("{parent}[{}]", Value::from(name)),
    }
}

/// Returns the path of a list item.
pub(crate) fn item(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// A step of a path.
pub(super) enum PathWord {
    Name(String),
    /// `*`: every item of a list, every member of an object.
    Every,
}

/// Splits a path into steps. Names that contain dots, brackets or stars can only be reached by a JSON
/// pointer.
pub(super) fn words(path: &str) -> Vec<PathWord> {
    if let Some(pointer) = path.strip_prefix('/') {
        let names = pointer.split('/').map(|word| word.replace("~1", "/").replace("~0", "~"));
        return names.map(PathWord::Name).collect();
    }
    let parts = path.split(['.', '[']).map(|part| part.strip_suffix(']').unwrap_or(part));
    let step = |part: &str| if part == "*" { PathWord::Every } else { PathWord::Name(part.to_owned()) };
    parts.filter(|part| !part.is_empty()).map(step).collect()
}

fn walk<'a>(start: FoundPlace<'a>, words: &[PathWord]) -> Vec<FoundPlace<'a>> {
    let mut found = vec![start];
    for word in words {
        found = found.into_iter().flat_map(|each| each.step(word)).collect();
    }
    found
}

impl FoundPlace<'_> {
    /// Follows one step. A missing value still gets a path, so that it can be reported.
    fn step(self, word: &PathWord) -> Vec<Self> {
        let nothing = |at: String| vec![FoundPlace { at, value: None }];
        match (word, self.value) {
            (PathWord::Every, Some(Value::Array(items))) if !items.is_empty() => {
                let place = |(index, value)| FoundPlace { at: item(&self.at, index), value: Some(value) };
                items.iter().enumerate().map(place).collect()
            }
            (PathWord::Every, Some(Value::Object(members))) if !members.is_empty() => {
                let place = |(name, value): (&String, _)| FoundPlace {
                    at: member(&self.at, name),
                    value: Some(value),
                };
                members.iter().map(place).collect()
            }
            (PathWord::Every, _) => nothing(format!("{}[*]", self.at)),
            (PathWord::Name(name), Some(Value::Array(items))) => match name.parse::<usize>() {
                Ok(index) => vec![FoundPlace { at: item(&self.at, index), value: items.get(index) }],
                Err(_) => nothing(member(&self.at, name)),
            },
            (PathWord::Name(name), value) => {
                let value = value.and_then(|value| value.get(name.as_str()));
                vec![FoundPlace { at: member(&self.at, name), value }]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(envelope: &Value, path: &str) -> (String, Option<Value>) {
        let found = View { envelope }.find_all(path).remove(0);
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

    // TEST-003: `[*]` is every item, and an item without the member is a place without a value.
    #[test]
    fn test_003_a_star_stands_for_every_item() {
        let envelope =
            json!({ "data": { "issues": [{ "type": "a" }, {}, { "type": "b" }], "none": [], "*": 1 } });
        let all = |path: &str| {
            let found = View { envelope: &envelope }.find_all(path).into_iter();
            found.map(|each| (each.at, each.value.cloned())).collect::<Vec<_>>()
        };
        let at = |path: &str, value: Option<Value>| (path.to_owned(), value);
        let types = [
            at("data.issues[0].type", Some(json!("a"))),
            at("data.issues[1].type", None),
            at("data.issues[2].type", Some(json!("b"))),
        ];
        assert_eq!(all("issues[*].type"), types);
        assert_eq!(all("data.issues.*.type"), types);
        assert_eq!(all("none[*].type"), [at("data.none[*].type", None)]);
        assert_eq!(all("absent[*]"), [at("data.absent[*]", None)]);
        assert_eq!(all("/data/*"), [at(r#"data["*"]"#, Some(json!(1)))], "a pointer has no stars");
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
