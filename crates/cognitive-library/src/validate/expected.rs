//! What golden tests expect against what the module can answer: members that its contract never has, values that no list has, and
//! expectations that are none. A test like that can only fail, and says so late.
//!
//! The language of expectations is not known here. An [`ExpectationReader`] reads it and names the places; where they lead in the
//! contract is judged here. What a contract leaves open is never reported.

use std::collections::BTreeSet;

use cognitive_contract::compose::PathStep;
use serde_json::Value;

use super::near::{did_you_mean, listed};
use super::parts::{Astray, ContractView, PathEnd, follow, said_astray};
use crate::finding::{Finding, FindingLocation, Severity, quoted};

const RULE: &str = "tests/expected";

/// Reads what golden tests expect.
pub trait ExpectationReader {
    /// The faults of an expectation and the places that it names.
    fn read(&self, expected: &Value) -> ReadExpectation;
}

/// An expectation as it was read.
#[derive(Debug, Default)]
pub struct ReadExpectation {
    /// What no test can be made of.
    pub faults: Vec<ExpectationFault>,
    /// Places that have to be in the envelope of a success; none where a failure may be expected.
    pub places: Vec<NamedPlace>,
}

/// Something that is no expectation.
#[derive(Debug)]
pub struct ExpectationFault {
    /// JSON pointer of the member that it is in.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

/// A place that an expectation names.
#[derive(Debug)]
pub struct NamedPlace {
    /// JSON pointer of what names it.
    pub pointer: String,
    /// Whether the name is that of a member, or a value.
    pub is_key: bool,
    /// The ways that the name can mean, from the envelope. One of them has to lead somewhere; the first is the likeliest.
    pub ways: Vec<Vec<PathStep>>,
    /// The text that has to be there, where nothing but a text is expected.
    pub text: Option<String>,
}

/// What there is to say about the expectation in a file.
pub(super) fn findings(
    reader: &dyn ExpectationReader,
    view: &ContractView,
    file: &str,
    expected: &Value,
) -> Vec<Finding> {
    let ReadExpectation { faults, places } = reader.read(expected);
    let fault = |fault: ExpectationFault| {
        Finding::error(file, FindingLocation::Value(fault.pointer), RULE, fault.message)
    };
    let mut found: Vec<Finding> = faults.into_iter().map(fault).collect();
    let mut lost: Vec<String> = Vec::new();
    for place in &places {
        // What is below a place that is not there has been said with it.
        if lost.iter().any(|above| place.pointer.starts_with(above.as_str())) {
            continue;
        }
        match end_of(place, view) {
            Ok(Some(end)) => found.extend(never(place, &end, file)),
            Err(Some((way, astray))) => {
                lost.push(format!("{}/", place.pointer));
                found.push(stranger(place, way, &astray, file));
            }
            Ok(None) | Err(None) => {}
        }
    }
    found
}

type LostWay<'a> = Option<(&'a [PathStep], Astray<'a>)>;

/// Where a place is in the contract: the first way that leads there. `None` where a contract leaves it open.
fn end_of<'a>(place: &'a NamedPlace, view: &'a ContractView) -> Result<Option<PathEnd<'a>>, LostWay<'a>> {
    let Some(envelope) = view.envelope() else { return Ok(None) };
    let mut lost = None;
    for way in &place.ways {
        match follow(way, &envelope) {
            Ok(end) => return Ok(end),
            Err(astray) => {
                lost.get_or_insert((way.as_slice(), astray));
            }
        }
    }
    Err(lost)
}

fn stranger(place: &NamedPlace, way: &[PathStep], astray: &Astray<'_>, file: &str) -> Finding {
    let name = |step: &PathStep| step.name().unwrap_or("[…]").to_owned();
    let names: Vec<String> = way.iter().map(name).collect();
    let wrong = names.get(astray.step).map_or("", String::as_str);
    let before = names.get(..astray.step).unwrap_or_default().join(".");
    let before = if before.is_empty() { "the envelope" } else { before.as_str() };
    let (severity, message) = said_astray(wrong, before, astray);
    let at = if place.is_key {
        FindingLocation::Key(place.pointer.as_str().into())
    } else {
        FindingLocation::Value(place.pointer.clone())
    };
    let hint = did_you_mean(wrong, astray.known.iter().copied());
    Finding { severity, hint, ..Finding::error(file, at, RULE, message) }
}

/// A text that the contract does not allow at its place.
fn never(place: &NamedPlace, end: &PathEnd<'_>, file: &str) -> Option<Finding> {
    let (text, contract) = (place.text.as_ref()?, end.place.as_ref()?);
    if contract.may_be(&Value::from(text.as_str())) {
        return None;
    }
    let message = format!("this is never {}: the contract does not allow that value", quoted(text));
    let known: BTreeSet<&str> = contract.listed().into_iter().filter_map(Value::as_str).collect();
    let list = || (!known.is_empty()).then(|| format!("It is one of {}", listed(&known)));
    let hint = did_you_mean(text, known.iter().copied()).or_else(list);
    let finding = Finding::error(file, FindingLocation::Value(place.pointer.clone()), RULE, message);
    Some(Finding { severity: Severity::Error, hint, ..finding })
}
