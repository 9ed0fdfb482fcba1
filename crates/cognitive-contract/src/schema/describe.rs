//! The validator's findings in our own words: where, which rule, what was expected; never the value itself.
//! Owns the wording so that messages stay the same when the validator library changes.

use std::cmp::Reverse;
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::{SchemaProblem, SectionRef};
use crate::code::ErrorCode;
use crate::text::pointer;
use crate::violation::Violation;

/// More findings than this help nobody, and a hostile value could make millions.
const MOST: usize = 100;

/// Which side of a run a value comes from; it decides the specific code of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What the caller sent.
    Input,
    /// What the model answered.
    Output,
}

/// Everything that `value` breaks. The validator's yes-or-no path runs first: most values are valid.
pub(crate) fn all_of(validator: &Validator, value: &Value, side: Side) -> Vec<Violation> {
    let mut found = Vec::new();
    if validator.is_valid(value) {
        return found;
    }
    for error in validator.iter_errors(value) {
        push(&error, side, &mut found);
        if found.len() >= MOST {
            break;
        }
    }
    drop_echoes(&mut found);
    found
}

/// A value of the wrong type is outside its closed list too. The list says more, so the type is not said as well.
fn drop_echoes(found: &mut Vec<Violation>) {
    let listed: Vec<String> =
        found.iter().filter(|each| each.rule == "enum").map(|each| each.path.clone()).collect();
    found.retain(|each| each.rule != "type" || !listed.contains(&each.path));
}

/// What makes a section itself not a Draft-07 schema.
pub(super) fn schema_problems(schema: &Value, place: &SectionRef) -> Vec<SchemaProblem> {
    let meta_schema = jsonschema::draft7::meta::validator();
    let mut problems = Vec::new();
    for error in meta_schema.iter_errors(schema).take(MOST) {
        // `$schema` is a label, whatever it says.
        if error.instance_path().as_str() == "/$schema" {
            continue;
        }
        let at = format!("{}{}", place.pointer, error.instance_path());
        let message = format!("not a Draft-07 schema: {}", words(error.kind()));
        problems.push(SchemaProblem { file: place.file.clone(), pointer: at, message });
    }
    problems
}

fn push(error: &ValidationError<'_>, side: Side, found: &mut Vec<Violation>) {
    match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            push_nearest(error, context, side, found);
        }
        Kind::AdditionalProperties { unexpected } => {
            for name in unexpected {
                let message = format!("no member `{name}` is expected here");
                found.push(violation(error, Some(name), side, message));
            }
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let message = format!("required member `{name}` is missing");
            found.push(violation(error, Some(name), side, message));
        }
        kind => found.push(violation(error, None, side, words(kind))),
    }
}

/// Of several branches that all fail, the one that came closest says most: one that recognised the kind of value,
/// then the one that read furthest into it, then the one with the fewest complaints.
fn push_nearest(
    error: &ValidationError<'_>,
    branches: &[Vec<ValidationError<'static>>],
    side: Side,
    found: &mut Vec<Violation>,
) {
    let here = error.instance_path().to_string();
    let nearest = branches.iter().min_by_key(|branch| {
        let depth = branch.iter().map(|each| each.instance_path().as_str().len()).max();
        (branch.iter().any(|each| is_other_kind(each, &here)), Reverse(depth), branch.len())
    });
    let mut nested = Vec::new();
    for each in nearest.into_iter().flatten() {
        push(each, side, &mut nested);
    }
    let options: Vec<Value> = branches.iter().flatten().filter_map(enum_at(&here)).flatten().collect();
    if nested.is_empty() {
        nested.push(violation(error, None, side, "matches none of the allowed forms".to_owned()));
    }
    if let Some(first) = nested.first_mut().filter(|first| first.path == here && !options.is_empty()) {
        first.options = Some(Arc::new(Value::Array(options)));
    }
    found.append(&mut nested);
}

/// Whether an error says "this is another kind of thing": a wrong type right here, or a wrong tag such as
/// `"type": "url"`.
fn is_other_kind(error: &ValidationError<'_>, here: &str) -> bool {
    match error.kind() {
        Kind::Constant { .. } => true,
        Kind::Type { .. } => error.instance_path().as_str() == here,
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            context.iter().all(|branch| branch.iter().any(|each| is_other_kind(each, here)))
        }
        _ => false,
    }
}

fn enum_at(here: &str) -> impl Fn(&ValidationError<'static>) -> Option<Vec<Value>> {
    move |error| match error.kind() {
        Kind::Enum { options } if error.instance_path().to_string() == here => options.as_array().cloned(),
        _ => None,
    }
}

fn violation(error: &ValidationError<'_>, member: Option<&str>, side: Side, message: String) -> Violation {
    let mut path = error.instance_path().to_string();
    if let Some(member) = member {
        path = pointer(&path, member);
    }
    let found = Violation::new(path, code(error.kind(), side), rule(error.kind()), message);
    match error.kind() {
        Kind::Enum { options } => found.with_options(Arc::clone(options)),
        _ => found,
    }
}

fn code(kind: &Kind, side: Side) -> ErrorCode {
    match (side, kind) {
        (Side::Input, Kind::Required { .. }) => ErrorCode::MissingRequiredField,
        (Side::Input, Kind::Type { .. }) => ErrorCode::TypeMismatch,
        (Side::Input, Kind::Enum { .. } | Kind::Constant { .. }) => ErrorCode::UnsupportedValue,
        (Side::Input, _) => ErrorCode::InvalidInput,
        (Side::Output, Kind::Enum { .. }) => ErrorCode::InvalidEnum,
        (Side::Output, _) => ErrorCode::SchemaValidationFailed,
    }
}

fn rule(kind: &Kind) -> &'static str {
    match kind {
        Kind::AdditionalItems { .. } => "additionalItems",
        Kind::AdditionalProperties { .. } => "additionalProperties",
        Kind::AnyOf { .. } => "anyOf",
        Kind::Constant { .. } => "const",
        Kind::Contains => "contains",
        Kind::Enum { .. } => "enum",
        Kind::ExclusiveMaximum { .. } => "exclusiveMaximum",
        Kind::ExclusiveMinimum { .. } => "exclusiveMinimum",
        Kind::FalseSchema => "false",
        Kind::MaxItems { .. } => "maxItems",
        Kind::Maximum { .. } => "maximum",
        Kind::MaxLength { .. } => "maxLength",
        Kind::MaxProperties { .. } => "maxProperties",
        Kind::MinItems { .. } => "minItems",
        Kind::Minimum { .. } => "minimum",
        Kind::MinLength { .. } => "minLength",
        Kind::MinProperties { .. } => "minProperties",
        Kind::MultipleOf { .. } => "multipleOf",
        Kind::Not { .. } => "not",
        Kind::OneOfMultipleValid { .. } | Kind::OneOfNotValid { .. } => "oneOf",
        Kind::Pattern { .. } | Kind::BacktrackLimitExceeded { .. } => "pattern",
        Kind::PropertyNames { .. } => "propertyNames",
        Kind::Required { .. } => "required",
        Kind::Type { .. } => "type",
        Kind::UniqueItems => "uniqueItems",
        _ => "schema",
    }
}

fn words(kind: &Kind) -> String {
    match kind {
        Kind::AdditionalItems { limit } => format!("expected no more than {limit} items"),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "matches none of the allowed forms".to_owned(),
        Kind::BacktrackLimitExceeded { .. } => "the pattern takes too long on this value".to_owned(),
        Kind::Constant { expected_value } => format!("expected {}", literal(expected_value)),
        Kind::Contains => "expected an item that the list does not contain".to_owned(),
        Kind::Enum { options } => format!("expected one of {}", literals(options)),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}"),
        Kind::FalseSchema => "nothing is allowed here".to_owned(),
        Kind::MaxItems { limit } => format!("expected at most {limit} items"),
        Kind::Maximum { limit } => format!("expected at most {limit}"),
        Kind::MaxLength { limit } => format!("expected at most {limit} characters"),
        Kind::MaxProperties { limit } => format!("expected at most {limit} members"),
        Kind::MinItems { limit } => format!("expected at least {limit} items"),
        Kind::Minimum { limit } => format!("expected at least {limit}"),
        Kind::MinLength { limit } => format!("expected at least {limit} characters"),
        Kind::MinProperties { limit } => format!("expected at least {limit} members"),
        Kind::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}"),
        Kind::Not { .. } => "matches a form that is excluded".to_owned(),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the allowed forms".to_owned(),
        Kind::Pattern { pattern } => format!("expected text that matches `{pattern}`"),
        Kind::PropertyNames { .. } => "a member has a name that is not allowed".to_owned(),
        Kind::Type { kind } => format!("expected {}", type_words(kind)),
        Kind::UniqueItems => "expected items that differ from each other".to_owned(),
        other => format!("breaks the rule `{}`", other.keyword()),
    }
}

fn type_words(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        // `null` beside another type only says that the member may be left out.
        TypeKind::Multiple(several) => {
            let words = several.iter().map(|each| each.to_string()).filter(|word| word != "null");
            words.collect::<Vec<_>>().join(" or ")
        }
    }
}

fn literals(options: &Value) -> String {
    const SHOWN: usize = 12;
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let mut shown: Vec<String> = options.iter().take(SHOWN).map(literal).collect();
    if options.len() > SHOWN {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}
