//! Checks the expectations of golden tests against the contract: members that it never has, values that no list has,
//! and invalid expectations. Such a test can only fail, and does so late.
//!
//! Does not know the language of expectations. An [`ExpectationReader`] parses it and names locations; this module
//! looks them up in the contract. Never reports what a contract leaves open.

use std::collections::BTreeSet;

use cognitive_contract::compose::PathStep;
use serde_json::Value;

use super::nearest_name::{did_you_mean, list_text};
use super::parts::{ContractView, PathEnd, UndescribedPath, follow, unknown_name_message};
use crate::finding::{Finding, FindingLocation, Severity, quote};

const RULE: &str = "tests/expected";

/// A parser for the expectations of golden tests.
pub trait ExpectationReader {
    /// Returns the faults of an expectation and the locations that it names.
    fn read(&self, expected: &Value) -> ReadExpectation;
}

/// A parsed expectation.
#[derive(Debug, Default)]
pub struct ReadExpectation {
    /// The parts that cannot become a test.
    pub faults: Vec<ExpectationFault>,
    /// The locations that a successful envelope must have; empty if the expectation allows a failure.
    pub places: Vec<NamedPlace>,
    /// Set if the refusal of an input that breaks the input schema (E1001) is as expected.
    pub allows_refusal: bool,
}

/// An invalid part of an expectation.
#[derive(Debug)]
pub struct ExpectationFault {
    /// The JSON pointer of the invalid member.
    pub pointer: String,
    /// The fault.
    pub message: String,
}

/// A location that an expectation names.
#[derive(Debug)]
pub struct NamedPlace {
    /// The JSON pointer of the name.
    pub pointer: String,
    /// True if the name is a member name, false if it is a value.
    pub is_key: bool,
    /// The possible paths of the name, from the envelope. One of them must exist; the first is the most likely.
    pub ways: Vec<Vec<PathStep>>,
    /// The required text, if only a text is expected.
    pub text: Option<String>,
}

/// The findings about the expectation in one file, after its reader has parsed it.
pub(super) fn findings(
    ReadExpectation { faults, places, .. }: ReadExpectation,
    view: &ContractView,
    file: &str,
) -> Vec<Finding> {
    let fault = |fault: ExpectationFault| {
        Finding::error(file, FindingLocation::Value(fault.pointer), RULE, fault.message)
    };
    let mut found: Vec<Finding> = faults.into_iter().map(fault).collect();
    let mut lost: Vec<String> = Vec::new();
    for place in &places {
        // The missing parent was reported already.
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

type LostWay<'a> = Option<(&'a [PathStep], UndescribedPath<'a>)>;

/// Returns the end of the first path that the contract has; `None` if the contract leaves it open.
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

fn stranger(place: &NamedPlace, way: &[PathStep], astray: &UndescribedPath<'_>, file: &str) -> Finding {
    let name = |step: &PathStep| step.name().unwrap_or("[…]").to_owned();
    let names: Vec<String> = way.iter().map(name).collect();
    let wrong = names.get(astray.step).map_or("", String::as_str);
    let before = names.get(..astray.step).unwrap_or_default().join(".");
    let before = if before.is_empty() { "the envelope" } else { before.as_str() };
    let (severity, message) = unknown_name_message(wrong, before, astray);
    let at = if place.is_key {
        FindingLocation::Key(place.pointer.as_str().into())
    } else {
        FindingLocation::Value(place.pointer.clone())
    };
    let hint = did_you_mean(wrong, astray.known.iter().copied());
    Finding { severity, hint, ..Finding::error(file, at, RULE, message) }
}

/// Reports a text that the contract does not allow at its location.
fn never(place: &NamedPlace, end: &PathEnd<'_>, file: &str) -> Option<Finding> {
    let (text, contract) = (place.text.as_ref()?, end.place.as_ref()?);
    if contract.may_be(&Value::from(text.as_str())) {
        return None;
    }
    let message = format!("this is never {}: the contract does not allow that value", quote(text));
    let known: BTreeSet<&str> = contract.listed_values().into_iter().filter_map(Value::as_str).collect();
    let list = || (!known.is_empty()).then(|| format!("It is one of {}", list_text(&known)));
    let hint = did_you_mean(text, known.iter().copied()).or_else(list);
    let finding = Finding::error(file, FindingLocation::Value(place.pointer.clone()), RULE, message);
    Some(Finding { severity: Severity::Error, hint, ..finding })
}
