//! Builds an object from another one: target member → path into the source. (COMP-030, COMP-032)
//! A member with a missing path is left out. Values are copied unchanged: text in them is data, and is never parsed as
//! a path, a condition or a call.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::cursor::Slip;
use super::path::{Path, PathRoot};

/// A compiled mapping, in the order of its members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    members: Vec<(String, Path)>,
}

impl Mapping {
    /// Compiles a mapping. Returns the name and error of every member that is not a path.
    pub fn parse<'a>(
        members: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<(&'a str, Slip)>> {
        let mut mapping = Self::default();
        let mut slips = Vec::new();
        for (name, path) in members {
            match Path::parse(path) {
                Ok(path) => mapping.members.push((name.to_owned(), path)),
                Err(slip) => slips.push((name, slip)),
            }
        }
        if slips.is_empty() { Ok(mapping) } else { Err(slips) }
    }

    /// Applies the mapping to a root and returns the new object.
    #[must_use]
    pub fn apply<'a>(&self, root: impl Into<PathRoot<'a>>) -> Map<String, Value> {
        let root = root.into();
        let found = |(name, path): &(String, Path)| Some((name.clone(), path.find(root)?.into_owned()));
        self.members.iter().filter_map(found).collect()
    }

    /// Returns every path with the member that it fills.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.members.iter().map(|(name, path)| (name.as_str(), path))
    }
}

/// Builds the input of a module that is called with one value: an object is used as it is, other values become
/// `{"value": …}`.
#[must_use]
pub fn as_input(value: Cow<'_, Value>) -> Map<String, Value> {
    match value.into_owned() {
        Value::Object(members) => members,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comp_032_members_that_are_missing_are_left_out() {
        let mapping =
            Mapping::parse([("ast", "$.data.ast"), ("lang", "$.language"), ("nil", "$.data.nil")]).unwrap();
        let root = json!({ "data": { "ast": [1], "nil": null } });
        assert_eq!(Value::Object(mapping.apply(&root)), json!({ "ast": [1], "nil": null }));
        assert_eq!(Value::Object(mapping.apply(&Value::Null)), json!({}));
    }

    // In the specification's example pipeline (C-72), `$.code` maps from an envelope, which has no such member.
    #[test]
    fn comp_032_a_path_into_an_envelope_that_has_no_such_member_maps_nothing() {
        let mapping = Mapping::parse([("code", "$.code")]).unwrap();
        assert!(mapping.apply(&json!({ "ok": true, "meta": {}, "data": { "code": 1 } })).is_empty());
    }

    #[test]
    fn sec_023_what_looks_like_an_expression_within_a_value_stays_text() {
        let hostile = "$.secret {{a.data}} @call:evil($INPUT) $INPUT ${x}";
        let root = json!({ "say": hostile, "secret": "s", "nested": { "say": hostile } });
        let mapping = Mapping::parse([("text", "$.say"), ("deep", "$.nested")]).unwrap();
        assert_eq!(
            Value::Object(mapping.apply(&root)),
            json!({ "text": hostile, "deep": { "say": hostile } })
        );
    }

    #[test]
    fn every_wrong_member_is_told() {
        let slips = Mapping::parse([("a", "$.x"), ("b", "x"), ("c", "$[")]).unwrap_err();
        assert_eq!(slips.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn comp_066_a_value_that_is_no_object_becomes_one() {
        let input = |value: Value| Value::Object(as_input(Cow::Owned(value)));
        assert_eq!(input(json!({ "a": 1 })), json!({ "a": 1 }));
        assert_eq!(input(json!([1])), json!({ "value": [1] }));
    }
}
