//! Turns the validator's findings into our messages: the location, the rule and what was expected, never the value.
//! Owns the wording, so that messages stay the same when the validator library changes.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::limits::MAX_DEPTH;
use super::metered_json::MeterStop;
use crate::text::{cut, fits, pointer};
use crate::violation::{MAX_VIOLATIONS, SchemaViolation};

/// The deepest nesting of `anyOf` and `oneOf` that is searched for the nearest branch. Deeper values are hostile.
const MAX_FORM_DEPTH: usize = 32;

/// Characters of a literal or a name that a message quotes. A literal may be a whole document.
const MAX_LITERAL_LENGTH: usize = 80;
const MAX_PATTERN_LENGTH: usize = 200;

/// The most options that repair gets where several closed lists apply to one value.
const MAX_OPTIONS: usize = 2_000;

/// Every rule of a built-in schema that `value` breaks. Runs the validator's yes-or-no path first, since most values
/// are valid.
#[must_use]
pub fn violations_of(validator: &Validator, value: &Value) -> Vec<SchemaViolation> {
    if validator.is_valid(value) {
        return Vec::new();
    }
    findings(validator.iter_errors(value), |_| true)
}

/// Converts the validator's errors into violations, without the unreliable ones.
pub(super) fn findings<'e>(
    errors: impl Iterator<Item = ValidationError<'e>>,
    is_certain: fn(&ValidationError<'_>) -> bool,
) -> Vec<SchemaViolation> {
    let mut telling = ViolationCollector { is_certain, found: Vec::new() };
    for error in errors {
        telling.push(&error, 0);
        if telling.found.len() >= MAX_VIOLATIONS {
            break;
        }
    }
    drop_echoes(&mut telling.found);
    telling.found
}

/// The violation for a check that stopped before its end.
pub(super) fn incomplete_check(stop: MeterStop) -> SchemaViolation {
    let message = match stop {
        MeterStop::Work => "takes too long to check against the contract".to_owned(),
        MeterStop::Findings => "breaks the contract, and it would take too long to say where".to_owned(),
        MeterStop::Depth => format!("nests deeper than {MAX_DEPTH} levels"),
    };
    SchemaViolation::new("", "schema", message)
}

/// Drops duplicate findings. A value of the wrong type is also outside its closed list; the list says more, so the type
/// is dropped. Equal messages for one path are reported once.
fn drop_echoes(found: &mut Vec<SchemaViolation>) {
    let listed: HashSet<String> =
        found.iter().filter(|each| each.rule == "enum").map(|each| each.path.clone()).collect();
    found.retain(|each| each.rule != "type" || !listed.contains(&each.path));
    let mut said = HashSet::new();
    found.retain(|each| said.insert((each.path.clone(), each.message.clone())));
}

struct ViolationCollector {
    is_certain: fn(&ValidationError<'_>) -> bool,
    found: Vec<SchemaViolation>,
}

impl ViolationCollector {
    fn push(&mut self, error: &ValidationError<'_>, forms: usize) {
        if !(self.is_certain)(error) {
            return;
        }
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } if forms < MAX_FORM_DEPTH => {
                self.push_nearest(error, context, forms + 1);
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected.iter().take(MAX_VIOLATIONS) {
                    let message =
                        format!("no member `{}` is expected here", truncate_text(name, MAX_LITERAL_LENGTH));
                    self.found.push(violation(error, Some(name), message));
                }
            }
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let message =
                    format!("required member `{}` is missing", truncate_text(name, MAX_LITERAL_LENGTH));
                self.found.push(violation(error, Some(name), message));
            }
            Kind::Contains => self.found.push(contains_violation(error)),
            kind => self.found.push(violation(error, None, words(kind))),
        }
    }

    /// Reports the nearest of several failing branches. First come branches that match the kind of value, then those
    /// that read furthest into it, then those with the fewest errors.
    fn push_nearest(
        &mut self,
        error: &ValidationError<'_>,
        branches: &[Vec<ValidationError<'static>>],
        forms: usize,
    ) {
        let here = error.instance_path().as_str();
        let is_certain =
            |branch: &&Vec<ValidationError<'static>>| branch.iter().all(|each| (self.is_certain)(each));
        let nearest = branches.iter().filter(is_certain).min_by_key(|branch| {
            let depth = branch.iter().map(|each| each.instance_path().as_str().len()).max();
            (branch.iter().any(|each| is_other_kind(each, here, forms)), Reverse(depth), branch.len())
        });
        let start = self.found.len();
        for each in nearest.into_iter().flatten() {
            self.push(each, forms);
        }
        if self.found.len() == start {
            self.found.push(violation(error, None, NO_FORM.to_owned()));
        }
        let options = branches.iter().flatten().filter_map(enum_at(here)).flatten();
        let options: Vec<Value> = options.take(MAX_OPTIONS).cloned().collect();
        let first = self.found.get_mut(start);
        if let Some(first) = first.filter(|first| first.path == here && !options.is_empty()) {
            first.options = Some(Arc::new(Value::Array(options)));
        }
    }
}

const NO_FORM: &str = "matches none of the allowed forms";

/// Returns whether an error shows a different kind of value: a wrong type at this location, or a wrong tag such as
/// `"type": "url"`.
fn is_other_kind(error: &ValidationError<'_>, here: &str, forms: usize) -> bool {
    match error.kind() {
        Kind::Constant { .. } => true,
        Kind::Type { .. } => error.instance_path().as_str() == here,
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } if forms < MAX_FORM_DEPTH => {
            context.iter().all(|branch| branch.iter().any(|each| is_other_kind(each, here, forms + 1)))
        }
        _ => false,
    }
}

fn enum_at<'e>(here: &str) -> impl Fn(&'e ValidationError<'static>) -> Option<&'e Vec<Value>> {
    move |error| match error.kind() {
        Kind::Enum { options } if error.instance_path().as_str() == here => options.as_array(),
        _ => None,
    }
}

fn violation(error: &ValidationError<'_>, member: Option<&str>, message: String) -> SchemaViolation {
    let mut path = error.instance_path().to_string();
    if let Some(member) = member {
        path = pointer(&path, member);
    }
    let found = SchemaViolation::new(path, rule(error.kind()), message);
    match error.kind() {
        Kind::Enum { options } => SchemaViolation { options: Some(Arc::clone(options)), ..found },
        _ => found,
    }
}

/// The validator reports all three keywords of `contains` as the same kind.
fn contains_violation(error: &ValidationError<'_>) -> SchemaViolation {
    let keyword = error.schema_path().as_str().rsplit('/').next().unwrap_or_default();
    let (rule, message) = match keyword {
        "minContains" => ("minContains", "expected more items of a form that the contract describes"),
        "maxContains" => ("maxContains", "expected fewer items of a form that the contract describes"),
        _ => return violation(error, None, words(error.kind())),
    };
    SchemaViolation { rule, ..violation(error, None, message.to_owned()) }
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
        Kind::UnevaluatedItems { .. } => "unevaluatedItems",
        Kind::UnevaluatedProperties { .. } => "unevaluatedProperties",
        Kind::UniqueItems => "uniqueItems",
        _ => "schema",
    }
}

fn words(kind: &Kind) -> String {
    match kind {
        Kind::AdditionalItems { limit } => format!("expected no more than {limit} items"),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => NO_FORM.to_owned(),
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
        Kind::Pattern { pattern } => {
            format!("expected text that matches `{}`", truncate_text(pattern, MAX_PATTERN_LENGTH))
        }
        Kind::PropertyNames { .. } => "a member has a name that is not allowed".to_owned(),
        Kind::Type { kind } => format!("expected {}", type_words(kind)),
        Kind::UniqueItems => "expected items that differ from each other".to_owned(),
        Kind::UnevaluatedItems { .. } => "holds items that are not expected here".to_owned(),
        other => format!("breaks the rule `{}`", other.keyword()),
    }
}

fn type_words(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        // `null` next to another type only means that the member is optional.
        TypeKind::Multiple(several) => {
            let words = several.iter().map(|each| each.to_string()).filter(|word| word != "null");
            words.collect::<Vec<_>>().join(" or ")
        }
    }
}

fn literals(options: &Value) -> String {
    // A longer list would not be read, and a list may have thousands.
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
        Value::String(text) => format!("`{}`", truncate_text(text, MAX_LITERAL_LENGTH)),
        other => format!("`{}`", truncate_text(&other.to_string(), MAX_LITERAL_LENGTH)),
    }
}

/// Truncates a text to the length that a message can quote.
fn truncate_text(text: &str, limit: usize) -> Cow<'_, str> {
    if fits(text, limit) { text.into() } else { format!("{}…", cut(text, limit)).into() }
}
