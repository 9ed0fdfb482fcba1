//! Reads expectations of golden tests for module validation: reports their faults and the named places.
//! Judges nothing, because it does not know the contract. Omits places that are expected to be absent. If a
//! failure may satisfy an expectation, all of its places are omitted: no contract applies to partial data.

use cognitive_contract::ErrorCode;
use cognitive_contract::compose::PathStep;
use cognitive_contract::text::pointer;
use cognitive_library::validate::{ExpectationFault, ExpectationReader, NamedPlace, ReadExpectation};
use serde_json::{Map, Value, json};

use super::difference::Difference;
use super::expectation::{
    Expectation, ExpectationUse, ExpectedPlace, MemberCheck, PlaceCheck, envelope_member, is_whole,
    judged_members,
};
use super::pattern::ExpectedValue;
use super::place::{META_NAMES, PathWord, first_word, is_envelope_member, words};
use super::value_rule::RuleTest;

/// The expectation syntax of `docs/expectations.md`, for `cogn validate`.
#[derive(Debug, Clone, Copy, Default)]
pub struct GoldenExpectations;

impl ExpectationReader for GoldenExpectations {
    fn read(&self, expected: &Value) -> ReadExpectation {
        let mut read = ReadExpectation::default();
        let Value::Object(members) = expected else {
            read.faults.push(fault("", "an expectation must be an object"));
            return read;
        };
        let (whole, succeeds) = (is_whole(members), succeeds(members));
        let mut count = 0;
        for (name, value) in judged_members(members) {
            count += 1;
            match envelope_member(name, value, ExpectationUse::Golden, whole) {
                Err(message) => read.faults.push(fault(&pointer("", name), &message)),
                Ok(checks) if succeeds => {
                    for check in &checks {
                        named_by(check, name, value, &mut read.places);
                    }
                }
                Ok(_) => {}
            }
        }
        if count == 0 {
            read.faults.push(fault("", "the expectation is empty"));
        }
        read.allows_refusal = !succeeds && allows_refusal(expected);
        read
    }
}

fn fault(pointer: &str, message: &str) -> ExpectationFault {
    ExpectationFault { pointer: pointer.to_owned(), message: message.to_owned() }
}

/// Returns whether only a success can satisfy it.
fn succeeds(members: &Map<String, Value>) -> bool {
    let of_failure =
        |name: &String| first_word(name).is_some_and(|word| word == "error" || word == "partial_data");
    members.get("ok").is_none_or(|ok| *ok == Value::Bool(true)) && !members.keys().any(of_failure)
}

/// Returns whether the refusal of an input may satisfy it. Only the outcome and the code count: the rest of a refusal
/// depends on the input.
fn allows_refusal(expected: &Value) -> bool {
    let refusal = json!({ "ok": false, "error": { "code": ErrorCode::InvalidInput.number() } });
    let decides = |difference: &Difference| matches!(difference.path.as_str(), "ok" | "error.code");
    let read = Expectation::parse(expected, ExpectationUse::Golden);
    read.is_ok_and(|read| !read.differences(&refusal).iter().any(decides))
}

/// Collects the places of one check; `name` and `value` are the member that it was parsed from.
fn named_by(check: &MemberCheck, name: &str, value: &Value, places: &mut Vec<NamedPlace>) {
    let at = pointer("", name);
    match check {
        MemberCheck::Place(check) => {
            let Some(ways) = ways(&check.place) else { return };
            let (at, is_key) = find_place(check, at, value);
            collect_places(&check.pattern, NamedPlace { pointer: at, is_key, ways, text: None }, places);
        }
        MemberCheck::Field(rule) => {
            let ways = rule.names().flat_map(named_paths).collect();
            let at = pointer(&at, rule.source());
            places.push(NamedPlace { pointer: at, is_key: true, ways, text: None });
        }
        MemberCheck::Somewhere { name, .. } => {
            places.push(NamedPlace {
                pointer: pointer(&at, name),
                is_key: true,
                ways: named_paths(name),
                text: None,
            });
        }
    }
}

/// Returns where the name of a place was written: in the member itself, or within `_validate` or `$validate`.
fn find_place(check: &PlaceCheck, member: String, value: &Value) -> (String, bool) {
    let Some(rule) = check.spelled.as_ref().and_then(|spelled| spelled.strip_prefix("_validate.")) else {
        return match &check.place {
            ExpectedPlace::Path(path) if member == "/$validate" => (pointer(&member, path), true),
            _ => (member, true),
        };
    };
    let at = pointer(&member, rule);
    let listed = value.get(rule).and_then(Value::as_array).into_iter().flatten();
    let place = match &check.place {
        ExpectedPlace::Named(name) => {
            listed.enumerate().find(|(_, item)| *item == name).map(|(place, _)| place)
        }
        _ => None,
    };
    place.map_or((at.clone(), true), |place| (pointer(&at, &place.to_string()), false))
}

/// Collects the place and everything below it, outermost first.
fn collect_places(pattern: &ExpectedValue, place: NamedPlace, places: &mut Vec<NamedPlace>) {
    let step = |step: PathStep| -> Vec<Vec<PathStep>> {
        place.ways.iter().map(|way| way.iter().cloned().chain([step.clone()]).collect()).collect()
    };
    // Items have no names.
    let is_key = !matches!(pattern, ExpectedValue::List(_));
    let (mut inner, mut text) = (Vec::new(), None);
    match pattern {
        ExpectedValue::Scalar(value) => text = value.as_str().map(str::to_owned),
        ExpectedValue::Object(members, _) => {
            for (name, pattern) in members {
                let at = pointer(&place.pointer, name);
                inner.push((pattern, at, step(PathStep::Member(name.clone()))));
            }
        }
        ExpectedValue::List(items) => {
            for (index, pattern) in items.iter().enumerate() {
                inner.push((pattern, pointer(&place.pointer, &index.to_string()), step(PathStep::All)));
            }
        }
        ExpectedValue::Rules(rules) => {
            if rules.iter().any(|rule| matches!(rule.test, RuleTest::Absent | RuleTest::AbsentOrNull)) {
                return;
            }
            for rule in rules {
                let at = pointer(&place.pointer, &rule.name);
                match &rule.test {
                    RuleTest::Part(pattern) => inner.push((&**pattern, at, place.ways.clone())),
                    RuleTest::Some(pattern) | RuleTest::Every(pattern) => {
                        inner.push((&**pattern, at, step(PathStep::All)));
                    }
                    _ => {}
                }
            }
        }
    }
    places.push(NamedPlace { text, ..place });
    for (pattern, pointer, ways) in inner {
        collect_places(pattern, NamedPlace { pointer, is_key, ways, text: None }, places);
    }
}

/// Returns the possible paths of a place, from the envelope; `None` for the payload as a whole.
fn ways(place: &ExpectedPlace) -> Option<Vec<Vec<PathStep>>> {
    Some(match place {
        ExpectedPlace::Path(path) => by_path(path),
        ExpectedPlace::Named(name) => named_paths(name),
        ExpectedPlace::InPayload(path) => steps(&words(path), true),
        ExpectedPlace::Member(name) | ExpectedPlace::Result(name) => {
            vec![vec![PathStep::Member(name.clone())]]
        }
        ExpectedPlace::Payload => return None,
    })
}

/// The paths that [`View::named_paths`](super::place::View::named_paths) may follow.
fn named_paths(name: &str) -> Vec<Vec<PathStep>> {
    let own = vec![PathStep::Member("data".to_owned()), PathStep::Member(name.to_owned())];
    let mut ways = if META_NAMES.contains(&name) { by_path(&format!("meta.{name}")) } else { by_path(name) };
    if !ways.contains(&own) {
        ways.push(own);
    }
    ways
}

/// A path from the envelope or from the payload, depending on its first word.
fn by_path(path: &str) -> Vec<Vec<PathStep>> {
    let in_payload = !first_word(path).is_some_and(|word| is_envelope_member(&word));
    steps(&words(path), in_payload)
}

/// A number may be the index of an item or the name of a member, so both are returned.
fn steps(words: &[PathWord], in_payload: bool) -> Vec<Vec<PathStep>> {
    let read = |numbers: bool| -> Vec<PathStep> {
        let step = |word: &PathWord| match word {
            PathWord::Every => PathStep::All,
            PathWord::Name(name) => match name.parse() {
                Ok(index) if numbers => PathStep::Index(index),
                _ => PathStep::Member(name.clone()),
            },
        };
        let data = in_payload.then(|| PathStep::Member("data".to_owned()));
        data.into_iter().chain(words.iter().map(step)).collect()
    };
    let (items, members) = (read(true), read(false));
    if items == members { vec![items] } else { vec![items, members] }
}
