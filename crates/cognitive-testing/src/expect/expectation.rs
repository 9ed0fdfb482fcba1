//! A whole expectation: places, and what is expected there. Golden tests, labelled cases and vectors are read and judged here.
//!
//! - A name and a value: `{"label": "billing"}`. Where a name is looked up depends on what is judged; see [`ExpectationUse`].
//! - `_validate` and `_contains`: the older spelling of rules, see `named_rules`.
//! - `$validate`: JSON Schema for places, `{"$validate": {"data.issues": schema}}`.
//! - `$example`, `$comment` and `$schema` explain and are not compared.
//!
//! Refuses rules it does not know and expectations that expect nothing.

use serde_json::{Map, Value};

use super::difference::{Difference, Differences};
use super::field_rule::FieldRule;
use super::named_rules;
use super::pattern::{ExpectedValue, OtherMembers, is_note};
use super::place::{FoundPlace, View, first_word, is_envelope_member, member};
use super::schema_check::{RULE, SchemaCheck};
use super::value::shown;
use super::value_rule::{RULE_NAMES, RuleTest, ValueRule, occurs};

/// What is judged. The language is one; only the place of a name and the meaning of an unmentioned member depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectationUse {
    /// An envelope, by a golden test. `confidence`, `risk` and `explain` stand in `meta`.
    Golden,
    /// An envelope, by a labelled case. A member of the payload that is called `risk` goes before that of `meta`.
    Labelled,
    /// The object that an operation returned. Names are its members, and further members are allowed everywhere.
    Vector,
}

/// Everything that one answer has to satisfy.
#[derive(Debug)]
pub(crate) struct Expectation {
    pub(crate) members: Vec<ExpectedMember>,
}

/// One member of an expectation, as it was written, and what it asks for.
#[derive(Debug)]
pub(crate) struct ExpectedMember {
    pub(crate) written: String,
    checks: Vec<MemberCheck>,
}

#[derive(Debug)]
pub(super) enum MemberCheck {
    /// A pattern that holds at every place a name leads to.
    Place(PlaceCheck),
    /// A rule of `_validate` whose name has a field in it.
    Field(FieldRule),
    /// `_contains`: each text occurs at one of the places.
    Somewhere { name: String, words: Vec<String> },
}

/// A pattern for a place.
#[derive(Debug)]
pub(super) struct PlaceCheck {
    pub(super) place: ExpectedPlace,
    pub(super) pattern: ExpectedValue,
    /// What a difference is called, where the pattern was spelled in another way.
    pub(super) spelled: Option<String>,
}

/// Where something is expected.
#[derive(Debug)]
pub(super) enum ExpectedPlace {
    /// A path from the envelope or from the payload.
    Path(String),
    /// A member of the payload, of `meta`, or a path; see [`View::named`].
    Named(String),
    /// The payload itself.
    Payload,
    /// A path from the payload.
    InPayload(String),
    /// A member of the object that is judged.
    Member(String),
    /// A member of what an operation returned.
    Result(String),
}

impl Expectation {
    /// Reads an expectation; the error says what is wrong with it.
    pub(crate) fn parse(expected: &Value, used: ExpectationUse) -> Result<Self, String> {
        let Value::Object(members) = expected else {
            return Err("an expectation is an object".to_owned());
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
        if parsed.is_empty() { Err("it expects nothing".to_owned()) } else { Ok(Self { members: parsed }) }
    }

    /// Everything in which an answer is not as expected. An empty list means that it is.
    pub(crate) fn differences(&self, answer: &Value) -> Vec<Difference> {
        let mut found = Differences::default();
        for member in &self.members {
            member.compare(View { envelope: answer }, &mut found);
        }
        found.into_vec()
    }
}

impl ExpectedMember {
    /// Says where an answer is not as this member expects it.
    pub(crate) fn compare(&self, view: View<'_>, found: &mut Differences) {
        for check in &self.checks {
            match check {
                MemberCheck::Place(check) => check.compare(view, found),
                MemberCheck::Field(rule) => rule.compare(view, found),
                MemberCheck::Somewhere { name, words } => somewhere(name, words, view, found),
            }
        }
    }

    /// The places of a value that was written without rules around it; nothing for `_validate` and its like.
    pub(crate) fn places<'a>(&self, view: View<'a>) -> Vec<FoundPlace<'a>> {
        match self.checks.as_slice() {
            [MemberCheck::Place(check)] if !self.written.starts_with(['_', '$']) => check.place.find(view),
            _ => Vec::new(),
        }
    }

    /// The text that is expected, where it is nothing but a text.
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
    pub(super) fn spelled(place: ExpectedPlace, spelled: &str, test: RuleTest) -> Self {
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
            Self::Named(name) => view.named(name),
            Self::Payload => vec![view.payload()],
            Self::InPayload(path) => vec![view.find_in_payload(path)],
            Self::Member(name) => vec![FoundPlace { at: member("", name), value: view.envelope.get(name) }],
            Self::Result(name) => vec![FoundPlace { at: member("$", name), value: view.envelope.get(name) }],
        }
    }
}

/// The members that say something of an answer.
pub(super) fn judged_members(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    members.iter().filter(|(name, _)| !is_note(name) && *name != "$schema")
}

/// Whether an expectation is a whole envelope: then everything that is given has to be there, and more may be.
pub(crate) fn is_whole(members: &Map<String, Value>) -> bool {
    members.contains_key("ok")
        && ["meta", "data", "partial_data"].iter().any(|name| members.contains_key(*name))
}

/// A member of an expectation about an envelope.
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
        // A misspelled rule would otherwise be looked for in the payload and blamed on the answer.
        _ if name.starts_with(['_', '$']) => return Err(no_such_member(name)),
        _ => {}
    }
    let pattern = ExpectedValue::parse(value, others(name, whole), name)?;
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

/// Members of the envelope may have more in them than is mentioned; what stands in the payload may not.
pub(crate) fn others(name: &str, whole: bool) -> OtherMembers {
    if whole || is_envelope_member(name) { OtherMembers::Allowed } else { OtherMembers::Refused }
}

fn no_such_member(name: &str) -> String {
    let rules = RULE_NAMES.join(", ");
    format!(
        "`{name}`: no such rule; there are `_validate`, `_contains` and `$validate`, and for a value: {rules}. \
         A member of this name is called `data.{name}`"
    )
}

/// `{"path": schema}`: a schema for each place.
fn parse_shapes(argument: &Value) -> Result<Vec<MemberCheck>, String> {
    let shapes: &Map<String, Value> = match argument {
        Value::Object(shapes) if !shapes.is_empty() => shapes,
        Value::Object(_) => return Err(format!("`{RULE}`: it asks for nothing")),
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

/// A member of what an operation returned. Two names are special: `not_contains` is about `context`, `none_match` about `chunks`.
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

/// Of several places, one is enough for each text.
fn somewhere(name: &str, words: &[String], view: View<'_>, found: &mut Differences) {
    let places = view.named(name);
    let has = |place: &FoundPlace<'_>, word: &str| place.value.is_some_and(|value| occurs(word, value));
    for word in words.iter().filter(|word| !places.iter().any(|place| has(place, word))) {
        let expected = format!("a text with {}", shown(&Value::from(word.as_str())));
        match places.as_slice() {
            [place] => found.broken(&place.at, "_contains", expected, place.value),
            _ => {
                let texts: Vec<Value> = places.iter().filter_map(|place| place.value.cloned()).collect();
                found.broken(name, "_contains", expected, Some(&Value::Array(texts)));
            }
        }
    }
}

impl From<PlaceCheck> for MemberCheck {
    fn from(check: PlaceCheck) -> Self {
        Self::Place(check)
    }
}
