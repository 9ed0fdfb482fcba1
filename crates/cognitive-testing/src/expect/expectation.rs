//! A whole expectation: places and their expected values. Parses and judges those of golden tests, labelled
//! cases and vectors.
//!
//! - A name and a value: `{"label": "billing"}`. The place of a name depends on the judged object; see
//!   [`ExpectationUse`].
//! - `_validate` and `_contains`: the older spelling of rules, see `named_rules`.
//! - `$validate`: JSON Schema for places, `{"$validate": {"data.issues": schema}}`.
//! - `$example`, `$comment` and `$schema` explain and are not compared.
//!
//! Refuses unknown rules and empty expectations.

use serde_json::{Map, Value};

use super::difference::{Difference, Differences};
use super::field_rule::FieldRule;
use super::named_rules;
use super::pattern::{ExpectedValue, OtherMembers, is_note};
use super::place::{FoundPlace, View, first_word, is_envelope_member, member};
use super::schema_check::{RULE, SchemaCheck};
use super::value::value_text;
use super::value_rule::{RULE_NAMES, RuleTest, ValueRule, occurs};

/// The kind of judged object. It decides only where a name is looked up and how unmentioned members are
/// treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectationUse {
    /// An envelope, by a golden test. `confidence`, `risk` and `explain` are looked up in `meta`.
    Golden,
    /// An envelope, by a labelled case. A payload member named `risk` takes precedence over that of `meta`.
    Labelled,
    /// The object returned by an operation. Names are its members, and further members are allowed
    /// everywhere.
    Vector,
}

/// The members of `meta` that tell about one run. A golden test compares the answer. (D-24)
const OF_THE_RUN: [&str; 6] =
    ["trace_id", "model", "latency_ms", "processing_time_ms", "usage", "provenance"];

/// The complete expectation for one answer.
#[derive(Debug)]
pub(crate) struct Expectation {
    pub(crate) members: Vec<ExpectedMember>,
}

/// One member of an expectation, as written, with its checks.
#[derive(Debug)]
pub(crate) struct ExpectedMember {
    pub(crate) written: String,
    checks: Vec<MemberCheck>,
}

#[derive(Debug)]
pub(super) enum MemberCheck {
    /// A pattern that must hold at every place that a name refers to.
    Place(PlaceCheck),
    /// A rule of `_validate` whose name contains a field.
    Field(FieldRule),
    /// `_contains`: each text must occur at one of the places.
    Somewhere { name: String, words: Vec<String> },
}

/// A pattern for a place.
#[derive(Debug)]
pub(super) struct PlaceCheck {
    pub(super) place: ExpectedPlace,
    pub(super) pattern: ExpectedValue,
    /// The rule name for reports, if the pattern uses an older spelling.
    pub(super) spelled: Option<String>,
}

/// The place of an expected value.
#[derive(Debug)]
pub(super) enum ExpectedPlace {
    /// A path from the envelope or from the payload.
    Path(String),
    /// A member of the payload, of `meta`, or a path; see [`View::find_named`].
    Named(String),
    /// The payload itself.
    Payload,
    /// A path from the payload.
    InPayload(String),
    /// A member of the judged object.
    Member(String),
    /// A member of an operation's result.
    Result(String),
}

impl Expectation {
    /// Parses an expectation; the error describes the fault.
    pub(crate) fn parse(expected: &Value, used: ExpectationUse) -> Result<Self, String> {
        let Value::Object(members) = expected else {
            return Err("an expectation must be an object".to_owned());
        };
        let whole = is_whole(members);
        let mut parsed = Vec::new();
        for (name, value) in judged_members(members) {
            let checks = match used {
                ExpectationUse::Vector => vec![vector_member(name, value)?],
                ExpectationUse::Golden | ExpectationUse::Labelled => {
                    envelope_member(name, value, used, whole)?
                }
            };
            parsed.push(ExpectedMember { written: name.clone(), checks });
        }
        if parsed.is_empty() {
            Err("the expectation is empty".to_owned())
        } else {
            Ok(Self { members: parsed })
        }
    }

    /// Returns all differences from an answer. An empty list means that the answer is as expected.
    pub(crate) fn differences(&self, answer: &Value) -> Vec<Difference> {
        let mut found = Differences::default();
        for member in &self.members {
            member.compare(View { envelope: answer }, &mut found);
        }
        found.into_vec()
    }
}

impl ExpectedMember {
    /// Records where an answer differs from this member.
    pub(crate) fn compare(&self, view: View<'_>, found: &mut Differences) {
        for check in &self.checks {
            match check {
                MemberCheck::Place(check) => check.compare(view, found),
                MemberCheck::Field(rule) => rule.compare(view, found),
                MemberCheck::Somewhere { name, words } => check_anywhere(name, words, view, found),
            }
        }
    }

    /// Returns the places of a value written without an outer rule; empty for `_validate` and similar
    /// members.
    pub(crate) fn places<'a>(&self, view: View<'a>) -> Vec<FoundPlace<'a>> {
        match self.checks.as_slice() {
            [MemberCheck::Place(check)] if !self.written.starts_with(['_', '$']) => check.place.find(view),
            _ => Vec::new(),
        }
    }

    /// Returns the expected text, if the expectation is a plain text.
    pub(crate) fn plain_text(&self) -> Option<&Value> {
        match self.checks.as_slice() {
            [
                MemberCheck::Place(PlaceCheck {
                    pattern: ExpectedValue::Scalar(text @ Value::String(_)),
                    ..
                }),
            ] => Some(text),
            _ => None,
        }
    }
}

impl PlaceCheck {
    /// A rule in its older spelling.
    pub(super) fn from_old_spelling(place: ExpectedPlace, spelled: &str, test: RuleTest) -> Self {
        let rule = ValueRule { name: spelled.to_owned(), test };
        Self { place, pattern: ExpectedValue::rule(rule), spelled: Some(spelled.to_owned()) }
    }

    pub(super) fn compare(&self, view: View<'_>, found: &mut Differences) {
        let mut here = Differences::default();
        for place in self.place.find(view) {
            self.pattern.compare(place.value, &place.at, &mut here);
        }
        for mut difference in here.into_vec() {
            if let Some(spelled) = &self.spelled {
                difference.rule.clone_from(spelled);
            }
            found.push(difference);
        }
    }
}

impl ExpectedPlace {
    fn find<'a>(&self, view: View<'a>) -> Vec<FoundPlace<'a>> {
        match self {
            Self::Path(path) => view.find_all(path),
            Self::Named(name) => view.find_named(name),
            Self::Payload => vec![view.payload()],
            Self::InPayload(path) => vec![view.find_in_payload(path)],
            Self::Member(name) => vec![FoundPlace { at: member("", name), value: view.envelope.get(name) }],
            Self::Result(name) => vec![FoundPlace { at: member("$", name), value: view.envelope.get(name) }],
        }
    }
}

/// The members that are compared with an answer.
pub(super) fn judged_members(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    members.iter().filter(|(name, _)| !is_note(name) && *name != "$schema")
}

/// Returns whether an expectation is a whole envelope: all given members are required, and others are
/// allowed.
pub(crate) fn is_whole(members: &Map<String, Value>) -> bool {
    members.contains_key("ok")
        && ["meta", "data", "partial_data"].iter().any(|name| members.contains_key(*name))
}

/// Parses a member of an expectation about an envelope.
pub(super) fn envelope_member(
    name: &str,
    value: &Value,
    used: ExpectationUse,
    whole: bool,
) -> Result<Vec<MemberCheck>, String> {
    match name {
        "_validate" => return named_rules::parse_validate(value),
        "_contains" => return named_rules::parse_contains(value),
        RULE => return parse_shapes(value),
        // A misspelled rule would otherwise be looked up in the payload and reported as a fault of the
        // answer.
        _ if name.starts_with(['_', '$']) => return Err(no_such_member(name)),
        _ => {}
    }
    let mut pattern = ExpectedValue::parse(value, other_members(name, whole), name)?;
    if name == "meta" && used == ExpectationUse::Golden {
        pattern = pattern.without_plain(&OF_THE_RUN);
    }
    let rules = matches!(pattern, ExpectedValue::Rules(_));
    if name == "ok" && !rules && !matches!(pattern, ExpectedValue::Scalar(Value::Bool(_))) {
        return Err("`ok`: expected `true` or `false`".to_owned());
    }
    if name == "error" && !rules && !matches!(pattern, ExpectedValue::Object(..)) {
        return Err(r#"`error`: expected an object such as `{"code": "E2004"}`"#.to_owned());
    }
    let place = match name {
        _ if first_word(name).is_some_and(|word| is_envelope_member(&word)) => {
            ExpectedPlace::Path(name.to_owned())
        }
        "confidence" | "risk" | "explain" if used == ExpectationUse::Golden => {
            ExpectedPlace::Path(format!("meta.{name}"))
        }
        _ if whole => ExpectedPlace::Member(name.to_owned()),
        _ => ExpectedPlace::Named(name.to_owned()),
    };
    Ok(vec![MemberCheck::Place(PlaceCheck { place, pattern, spelled: None })])
}

/// Members of the envelope may contain unmentioned members; members of the payload may not.
pub(crate) fn other_members(name: &str, whole: bool) -> OtherMembers {
    if whole || is_envelope_member(name) { OtherMembers::Allowed } else { OtherMembers::Refused }
}

fn no_such_member(name: &str) -> String {
    let rules = RULE_NAMES.join(", ");
    format!(
        "`{name}`: unknown rule; there are `_validate`, `_contains` and `$validate`, and for a value: \
         {rules}. A member of this name is called `data.{name}`"
    )
}

/// Parses `{"path": schema}`: one schema per place.
fn parse_shapes(argument: &Value) -> Result<Vec<MemberCheck>, String> {
    let shapes: &Map<String, Value> = match argument {
        Value::Object(shapes) if !shapes.is_empty() => shapes,
        Value::Object(_) => return Err(format!("`{RULE}`: the rule is empty")),
        _ => return Err(format!("`{RULE}`: expected an object of paths and schemas")),
    };
    let parse = |(path, schema): (&String, &Value)| {
        if path.trim().is_empty() {
            return Err(format!("`{RULE}`: expected a path such as `data.summary`"));
        }
        let check = SchemaCheck::compile(schema, &member(RULE, path))?;
        let rule = ValueRule { name: RULE.to_owned(), test: RuleTest::Validate(Box::new(check)) };
        let place = ExpectedPlace::Path(path.clone());
        Ok(MemberCheck::Place(PlaceCheck { place, pattern: ExpectedValue::rule(rule), spelled: None }))
    };
    shapes.iter().map(parse).collect()
}

/// Parses a member of an operation's result. Two names are special: `not_contains` checks `context`,
/// `none_match` checks `chunks`.
fn vector_member(name: &str, value: &Value) -> Result<MemberCheck, String> {
    let at = member("$", name);
    let (place, pattern) = match name {
        "not_contains" => {
            let rule = ValueRule::parse("$json_lacks", value, OtherMembers::Allowed, &at)?;
            ("context", ExpectedValue::rule(rule))
        }
        "none_match" => {
            let items = value.as_array().filter(|items| !items.is_empty());
            let items = items.ok_or_else(|| format!("`{at}`: expected a list of patterns"))?;
            let patterns = items.iter().map(|item| ExpectedValue::parse(item, OtherMembers::Allowed, &at));
            let test = RuleTest::NoneOf(patterns.collect::<Result<_, _>>()?);
            ("chunks", ExpectedValue::rule(ValueRule { name: "none_match".to_owned(), test }))
        }
        _ => (name, ExpectedValue::parse(value, OtherMembers::Allowed, &at)?),
    };
    let place = ExpectedPlace::Result(place.to_owned());
    Ok(MemberCheck::Place(PlaceCheck { place, pattern, spelled: None }))
}

/// Checks that each text occurs at one of several places.
fn check_anywhere(name: &str, words: &[String], view: View<'_>, found: &mut Differences) {
    let places = view.find_named(name);
    let has = |place: &FoundPlace<'_>, word: &str| place.value.is_some_and(|value| occurs(word, value));
    for word in words.iter().filter(|word| !places.iter().any(|place| has(place, word))) {
        let expected = format!("a text with {}", value_text(&Value::from(word.as_str())));
        match places.as_slice() {
            [place] => found.add_broken(&place.at, "_contains", expected, place.value),
            _ => {
                let texts: Vec<Value> = places.iter().filter_map(|place| place.value.cloned()).collect();
                found.add_broken(name, "_contains", expected, Some(&Value::Array(texts)));
            }
        }
    }
}

impl From<PlaceCheck> for MemberCheck {
    fn from(check: PlaceCheck) -> Self {
        Self::Place(check)
    }
}
