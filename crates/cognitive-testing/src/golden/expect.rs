//! What a golden test expects, read from `<case>.expected.json`.
//!
//! - A name and a value: the payload's member of this name equals the value. `ok` and `error` are looked up in the
//!   envelope, `confidence`, `risk` and `explain` in `meta`.
//! - A whole envelope (`ok` with `meta`, `data` or `partial_data`): every part that is given is there, more may be.
//! - `_validate` and `_contains`: rules about answers whose words nobody can foresee.
//! - `$validate`: JSON Schema for a place, as `{"field": {"$validate": schema}}` or `{"$validate": {"path": schema}}`.
//! - `$example`, `$comment` and `$schema` explain and are not compared.
//!
//! Refuses rules it does not know and expectations that expect nothing: a check that cannot fail is a defect.

use serde_json::{Map, Value};

use super::pattern::{GoldenPattern, OtherMembers, is_note};
use super::rule::GoldenRule;
use crate::expect::difference::{Difference, Differences};
use crate::expect::place::{View, member};
use crate::expect::schema_check::{RULE, SchemaCheck};

/// Everything that one answer has to satisfy.
#[derive(Debug)]
pub(super) struct GoldenExpectation {
    checks: Vec<ExpectationCheck>,
}

#[derive(Debug)]
enum ExpectationCheck {
    /// A member of the envelope, of `meta` or of the payload.
    Member { of: Of, name: String, pattern: GoldenPattern },
    /// A rule of `_validate` or `_contains`.
    Rule(GoldenRule),
    /// A schema for a place.
    Shape { path: String, shape: Box<SchemaCheck> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Envelope,
    Meta,
    Payload,
}

impl GoldenExpectation {
    /// Reads an expectation; the error says what is wrong with it.
    pub(super) fn parse(expected: &Value) -> Result<Self, String> {
        let Value::Object(members) = expected else {
            return Err("an expectation is an object".to_owned());
        };
        let whole = members.contains_key("ok")
            && ["meta", "data", "partial_data"].iter().any(|name| members.contains_key(*name));
        let mut checks = Vec::new();
        for (name, value) in members {
            match name.as_str() {
                "_validate" => {
                    checks.extend(GoldenRule::parse_validate(value)?.into_iter().map(ExpectationCheck::Rule));
                }
                "_contains" => {
                    checks.extend(GoldenRule::parse_contains(value)?.into_iter().map(ExpectationCheck::Rule));
                }
                RULE => checks.extend(parse_shapes(value)?),
                "$schema" => {}
                note if is_note(note) => {}
                _ if whole => checks.push(member_of_envelope(name, value)?),
                _ => checks.push(member_by_name(name, value)?),
            }
        }
        if checks.is_empty() { Err("it expects nothing".to_owned()) } else { Ok(Self { checks }) }
    }

    /// Everything in which an envelope is not as expected. An empty list means that it is.
    pub(super) fn differences(&self, envelope: &Value) -> Vec<Difference> {
        let view = View { envelope };
        let mut found = Differences::default();
        for check in &self.checks {
            match check {
                ExpectationCheck::Rule(rule) => rule.compare(view, &mut found),
                ExpectationCheck::Shape { path, shape } => {
                    for place in view.find_all(path) {
                        shape.compare(place.value, &place.at, &mut found);
                    }
                }
                ExpectationCheck::Member { of, name, pattern } => {
                    let (at, object) = match of {
                        Of::Envelope => (String::new(), Some(envelope)),
                        Of::Meta => ("meta".to_owned(), envelope.get("meta")),
                        Of::Payload => {
                            let payload = view.payload();
                            (payload.at, payload.value)
                        }
                    };
                    let value = object.and_then(|object| object.get(name.as_str()));
                    pattern.compare(value, &member(&at, name), &mut found);
                }
            }
        }
        found.into_vec()
    }
}

/// `{"path": schema}`: a schema for each place.
fn parse_shapes(argument: &Value) -> Result<Vec<ExpectationCheck>, String> {
    let shapes: &Map<String, Value> = match argument {
        Value::Object(shapes) if !shapes.is_empty() => shapes,
        Value::Object(_) => return Err(format!("`{RULE}`: it asks for nothing")),
        _ => return Err(format!("`{RULE}`: expected an object of paths and schemas")),
    };
    let parse = |(path, schema): (&String, &Value)| {
        if path.trim().is_empty() {
            return Err(format!("`{RULE}`: expected a path such as `data.summary`"));
        }
        let shape = Box::new(SchemaCheck::compile(schema, &member(RULE, path))?);
        Ok(ExpectationCheck::Shape { path: path.clone(), shape })
    };
    shapes.iter().map(parse).collect()
}

/// A part of a whole envelope.
fn member_of_envelope(name: &str, value: &Value) -> Result<ExpectationCheck, String> {
    let pattern = match name {
        "ok" => yes_or_no(value)?,
        "error" => GoldenPattern::parse_error(value, OtherMembers::Allowed)?,
        _ => GoldenPattern::parse(value, OtherMembers::Allowed, name)?,
    };
    Ok(ExpectationCheck::Member { of: Of::Envelope, name: name.to_owned(), pattern })
}

/// A member that is looked up where its name says.
fn member_by_name(name: &str, value: &Value) -> Result<ExpectationCheck, String> {
    let (of, pattern) = match name {
        "ok" => (Of::Envelope, yes_or_no(value)?),
        "error" => (Of::Envelope, GoldenPattern::parse_error(value, OtherMembers::Refused)?),
        "confidence" | "risk" | "explain" => {
            (Of::Meta, GoldenPattern::parse(value, OtherMembers::Refused, name)?)
        }
        // A misspelled rule would otherwise be looked for in the payload and blamed on the answer.
        _ if name.starts_with(['_', '$']) => {
            return Err(format!(
                "`{name}`: no such rule; there are `_validate`, `_contains` and `$validate`. \
                 A member of this name is expected by a whole envelope: `{{\"ok\": true, \"data\": {{…}}}}`"
            ));
        }
        _ => (Of::Payload, GoldenPattern::parse(value, OtherMembers::Refused, name)?),
    };
    Ok(ExpectationCheck::Member { of, name: name.to_owned(), pattern })
}

fn yes_or_no(value: &Value) -> Result<GoldenPattern, String> {
    match value {
        Value::Bool(_) => Ok(GoldenPattern::Scalar(value.clone())),
        _ => Err("`ok`: expected `true` or `false`".to_owned()),
    }
}

#[cfg(test)]
mod tests;
