//! Paths such as `$.data.changes[*].risk`, which select a value of an object. (COMP-030, COMP-032)
//! A path without a match is missing, never an error. Computes nothing except `.length`, and reads only its root.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::cursor::{Cursor, Slip, is_name, within_limit};

/// A compiled path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    steps: Vec<PathStep>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// `.name` or `['name']`.
    Member(String),
    /// `.length`: the length of a list or a text; for an object, its member of this name.
    Length,
    /// `[3]`.
    Index(usize),
    /// `[*]`: every element of a list.
    All,
}

/// The value of `$`.
#[derive(Debug, Clone, Copy)]
pub enum PathRoot<'a> {
    /// One value: the input, or the envelope of one module.
    Value(&'a Value),
    /// Several values by name, as if they were the members of one object.
    Named(&'a [(&'a str, &'a Value)]),
}

impl<'a> From<&'a Value> for PathRoot<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

impl<'a> PathRoot<'a> {
    /// Returns the root as one value.
    #[must_use]
    pub fn value(self) -> Cow<'a, Value> {
        match self {
            Self::Value(value) => Cow::Borrowed(value),
            Self::Named(members) => {
                let member = |(name, value): &(&str, &Value)| ((*name).to_owned(), (*value).clone());
                Cow::Owned(Value::Object(members.iter().map(member).collect::<Map<_, _>>()))
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in &self.steps {
            match step {
                PathStep::Member(name) if name.chars().all(is_name) && name != "length" => {
                    write!(f, ".{name}")?;
                }
                PathStep::Member(name) => {
                    write!(f, "['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))?;
                }
                PathStep::Length => f.write_str(".length")?,
                PathStep::Index(place) => write!(f, "[{place}]")?,
                PathStep::All => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl Path {
    /// A path to a member of the root.
    pub(super) fn member(name: &str) -> Self {
        Self { steps: vec![PathStep::Member(name.to_owned())] }
    }

    /// Parses a path; the whole text must be one.
    pub fn parse(text: &str) -> Result<Self, Slip> {
        within_limit(text)?;
        let mut cursor = Cursor::new(text, 0);
        cursor.skip_space();
        let path = Self::read(&mut cursor)?;
        cursor.skip_space();
        match cursor.peek() {
            None => Ok(path),
            Some(_) => Err(cursor.expected_error("`.name`, `[0]`, `[*]`, `['name']` or the end of the path")),
        }
    }

    /// Parses the path that starts at the cursor with `$`.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Slip> {
        if !cursor.skip_token("$") {
            return Err(cursor.expected_error("a path such as `$.data.items[0]`"));
        }
        Self::read_steps(cursor)
    }

    /// Parses the steps after the root.
    pub(super) fn read_steps(cursor: &mut Cursor<'_>) -> Result<Self, Slip> {
        let mut steps = Vec::new();
        loop {
            if cursor.skip_token(".") {
                match cursor.take_while(is_name) {
                    "" => return Err(cursor.expected_error("a name of letters, digits, `-` and `_`")),
                    "length" => steps.push(PathStep::Length),
                    name => steps.push(PathStep::Member(name.to_owned())),
                }
            } else if cursor.skip_token("[") {
                cursor.skip_space();
                steps.push(bracket(cursor)?);
                cursor.skip_space();
                if !cursor.skip_token("]") {
                    return Err(cursor.expected_error("`]`"));
                }
            } else {
                return Ok(Self { steps });
            }
        }
    }

    /// Returns the value at the path; `None` if it is missing. With `[*]`, returns the list of all existing values.
    #[must_use]
    pub fn find<'a>(&self, root: impl Into<PathRoot<'a>>) -> Option<Cow<'a, Value>> {
        match self.places(root.into())? {
            Places::One(value) => Some(value),
            Places::Many(values) => {
                Some(Cow::Owned(values.into_iter().map(Cow::into_owned).collect::<Value>()))
            }
        }
    }

    /// Returns whether a value exists; with `[*]`, whether at least one does.
    #[must_use]
    pub fn exists<'a>(&self, root: impl Into<PathRoot<'a>>) -> bool {
        match self.places(root.into()) {
            None => false,
            Some(Places::One(_)) => true,
            Some(Places::Many(values)) => !values.is_empty(),
        }
    }

    /// Returns the steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// Returns the first member of the path, if it begins with one.
    #[must_use]
    pub fn first_member(&self) -> Option<&str> {
        self.steps.first().and_then(PathStep::name)
    }

    fn places<'a>(&self, root: PathRoot<'a>) -> Option<Places<'a>> {
        let (start, steps) = self.enter(root)?;
        let first_all = steps.iter().position(|step| *step == PathStep::All).unwrap_or(steps.len());
        let (before, after) = steps.split_at(first_all);
        let one = before.iter().try_fold(start, |value, step| step.follow(value))?;
        if after.is_empty() {
            return Some(Places::One(one));
        }
        // Only a borrowed list has elements; a computed value never does.
        let Cow::Borrowed(Value::Array(_)) = &one else { return None };
        let mut values = vec![one];
        for step in after {
            values = match step {
                PathStep::All => values.into_iter().flat_map(elements).collect(),
                _ => values.into_iter().filter_map(|value| step.follow(value)).collect(),
            };
        }
        Some(Places::Many(values))
    }

    /// Returns the start value and the remaining steps.
    fn enter<'a, 's>(&'s self, root: PathRoot<'a>) -> Option<(Cow<'a, Value>, &'s [PathStep])> {
        match (root, self.steps.split_first()) {
            (PathRoot::Named(members), Some((first, rest))) => {
                let (_, value) = members.iter().find(|(name, _)| first.name() == Some(*name))?;
                Some((Cow::Borrowed(*value), rest))
            }
            _ => Some((root.value(), &self.steps)),
        }
    }
}

/// The matches of a path.
enum Places<'a> {
    One(Cow<'a, Value>),
    Many(Vec<Cow<'a, Value>>),
}

impl PathStep {
    /// Returns the object member that the step selects, if it can select one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Member(name) => Some(name),
            Self::Length => Some("length"),
            Self::Index(_) | Self::All => None,
        }
    }

    /// Follows one step; a computed value has no parts.
    fn follow<'a>(&self, value: Cow<'a, Value>) -> Option<Cow<'a, Value>> {
        let Cow::Borrowed(value) = value else { return None };
        let found = match (self, value) {
            (Self::Length, Value::Array(list)) => return Some(Cow::Owned(Value::from(list.len()))),
            (Self::Length, Value::String(text)) => {
                return Some(Cow::Owned(Value::from(text.chars().count())));
            }
            (Self::Index(index), Value::Array(list)) => list.get(*index),
            (_, Value::Object(members)) => members.get(self.name()?),
            _ => None,
        };
        found.map(Cow::Borrowed)
    }
}

fn elements(value: Cow<'_, Value>) -> impl Iterator<Item = Cow<'_, Value>> {
    let list = match value {
        Cow::Borrowed(value) => value.as_array(),
        Cow::Owned(_) => None,
    };
    list.into_iter().flatten().map(Cow::Borrowed)
}

fn bracket(cursor: &mut Cursor<'_>) -> Result<PathStep, Slip> {
    match cursor.peek() {
        Some('*') => {
            cursor.bump();
            Ok(PathStep::All)
        }
        Some('\'' | '"') => cursor.parse_quoted().map(PathStep::Member),
        Some('0'..='9') => {
            let start = cursor.at();
            let digits = cursor.take_while(|letter| letter.is_ascii_digit());
            let too_large = |_| Slip::new(start..cursor.at(), "expected a smaller list index");
            digits.parse().map(PathStep::Index).map_err(too_large)
        }
        _ => Err(cursor.expected_error("an index, `*` or a name between quotes")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(path: &str, root: &Value) -> Option<Value> {
        Path::parse(path).unwrap().find(root).map(Cow::into_owned)
    }

    fn sample() -> Value {
        json!({
            "quick-check": { "meta": { "confidence": 0.6 } },
            "a_b": [{ "id": 1, "tags": ["x", "y"] }, { "no": 0 }, { "id": null, "tags": [] }],
            "length": { "of": 3 }, "größe": "äöü", "it's.odd": true, "null": null,
        })
    }

    #[test]
    fn comp_030_every_form_of_a_path() {
        let root = sample();
        for (path, value) in [
            ("$.quick-check.meta.confidence", json!(0.6)),
            ("$['quick-check']['meta'].confidence", json!(0.6)),
            ("$.a_b[0].id", json!(1)),
            ("$.a_b[ 0 ][\"id\"]", json!(1)),
            ("$.a_b[*].id", json!([1, null])),
            ("$.a_b[*].tags[*]", json!(["x", "y"])),
            ("$.a_b[*].tags[0]", json!(["x"])),
            ("$['it\\'s.odd']", json!(true)),
            ("$.größe", json!("äöü")),
            ("$.null", json!(null)),
            (" $.null ", json!(null)),
            ("$", root.clone()),
        ] {
            assert_eq!(found(path, &root), Some(value), "{path}");
            let read = Path::parse(path).unwrap();
            assert_eq!(Path::parse(&read.to_string()), Ok(read), "{path}");
        }
    }

    #[test]
    fn comp_040_length_of_lists_and_texts() {
        let root = sample();
        for (path, value) in [
            ("$.a_b.length", Some(json!(3))),
            ("$.größe.length", Some(json!(3))),
            ("$.a_b[*].tags.length", Some(json!([2, 0]))),
            ("$.length.of", Some(json!(3))),
            ("$.a_b['length']", None),
            ("$.quick-check.length", None),
            ("$.null.length", None),
            ("$.a_b.length.length", None),
        ] {
            assert_eq!(found(path, &root), value, "{path}");
        }
    }

    #[test]
    fn comp_032_what_is_not_there_is_missing_and_elements_without_it_are_skipped() {
        let root = sample();
        for path in
            ["$.x", "$.x.y[0]", "$.a_b[3]", "$.a_b.id", "$.null.x", "$[0]", "$.quick-check[*]", "$.x[*]"]
        {
            assert_eq!(found(path, &root), None, "{path}");
        }
        assert_eq!(found("$.a_b[*].nothing", &root), Some(json!([])));
        assert_eq!(found("$[*]", &json!([])), Some(json!([])));
    }

    #[test]
    fn comp_031_several_sources_are_one_object_by_name() {
        let (one, two) = (json!({ "meta": { "risk": "low" } }), json!([1, 2]));
        let members = [("a-b", &one), ("length", &two)];
        let root = PathRoot::Named(&members);
        let find = |path: &str| Path::parse(path).unwrap().find(root).map(Cow::into_owned);
        assert_eq!(find("$.a-b.meta.risk"), Some(json!("low")));
        assert_eq!(find("$.length.length"), Some(json!(2)));
        assert_eq!(find("$.length[*]"), Some(json!([1, 2])));
        assert_eq!(find("$"), Some(json!({ "a-b": one, "length": two })));
        for missing in ["$.c", "$[0]", "$[*]"] {
            assert_eq!(find(missing), None, "{missing}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_place() {
        for (text, start) in [
            ("", 0),
            ("data", 0),
            ("$.", 2),
            ("$..a", 2),
            ("$.a b", 4),
            ("$[", 2),
            ("$[a]", 2),
            ("$[-1]", 2),
            ("$[0", 3),
            ("$['a", 2),
            ("$[99999999999999999999999]", 2),
            ("$.a[?(@.x)]", 4),
            ("$.a + 1", 4),
        ] {
            assert_eq!(Path::parse(text).unwrap_err().span.start, start, "{text}");
        }
        assert!(Path::parse(&format!("${}", ".a".repeat(500))).is_err());
    }

    #[test]
    fn existence_is_about_the_place_and_not_the_value() {
        let root = sample();
        let exists = |path: &str| Path::parse(path).unwrap().exists(&root);
        assert!(exists("$.null") && exists("$.a_b[*].id") && exists("$"));
        assert!(!exists("$.x") && !exists("$.a_b[*].nothing"));
    }
}
