//! The rules that may replace a value, such as `{"$range": [0, 1]}`. Each checks a value and describes its
//! requirement.
//! Knows nothing of files and envelopes; `pattern.rs` reports the place of a broken rule.

use cognitive_contract::Risk;
use regex::Regex;
use serde_json::Value;

use super::difference::Differences;
use super::pattern::ExpectedValue;
use super::place::item;
use super::schema_check::SchemaCheck;
use super::value::{deep_equal, is_one_of, json_text, same_set, texts_in, value_text};

/// All rule names, as spelled in files.
pub const RULE_NAMES: [&str; 28] = [
    "$exact",
    "$part",
    "$in",
    "$not",
    "$present",
    "$absent",
    "$absent_or_null",
    "$type",
    "$validate",
    "$min",
    "$max",
    "$range",
    "$text",
    "$regex",
    "$contains",
    "$lacks",
    "$len",
    "$minlen",
    "$maxlen",
    "$set",
    "$subset_of",
    "$superset_of",
    "$some",
    "$every",
    "$none",
    "$json_contains",
    "$json_lacks",
    "$code",
];

/// A rule with its argument.
#[derive(Debug)]
pub(crate) struct ValueRule {
    /// The spelling, such as `$in`.
    pub(crate) name: String,
    pub(crate) test: RuleTest,
}

/// The requirement of a rule.
#[derive(Debug)]
pub(crate) enum RuleTest {
    /// Deeply equal.
    Exact(Value),
    /// An object with at least these members.
    Part(Box<ExpectedValue>),
    In(Vec<Value>),
    Not(Box<ExpectedValue>),
    Present,
    Absent,
    AbsentOrNull,
    Type(JsonType),
    Validate(Box<SchemaCheck>),
    Min(f64),
    Max(f64),
    Range(f64, f64),
    /// This text, compared without case and white space.
    Text(String),
    Regex(Regex),
    /// One text of each group occurs.
    Contains(Vec<Vec<String>>),
    Lacks(Vec<String>),
    Len(usize),
    MinLen(usize),
    MaxLen(usize),
    Set(Vec<Value>),
    SubsetOf(Vec<Value>),
    SupersetOf(Vec<Value>),
    Some(Box<ExpectedValue>),
    Every(Box<ExpectedValue>),
    /// No item matches any of these.
    NoneOf(Vec<ExpectedValue>),
    JsonContains(Vec<String>),
    JsonLacks(Vec<String>),
    Code(Vec<String>),
    /// `_validate` and `_contains`: each occurs, case-sensitive, in a text, a name or the JSON of the value.
    Occur(Vec<String>),
    /// None of these occurs.
    OccurNot(Vec<String>),
    /// `_validate.rationale_min_length`: all texts together have at least this many characters.
    TextsLength(u64),
    /// `_validate.risk_max`: a custom risk counts as medium, as everywhere else.
    RiskAtMost(Risk),
}

/// The types of JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JsonType {
    String,
    Number,
    Boolean,
    Array,
    Object,
    Null,
}

impl ValueRule {
    /// Records where a value breaks the rule; `None` is a missing value.
    pub(crate) fn compare(&self, actual: Option<&Value>, at: &str, found: &mut Differences) {
        match (&self.test, actual) {
            (RuleTest::Validate(schema), _) => schema.compare(actual, at, found),
            (RuleTest::Part(pattern), _) => pattern.compare(actual, at, found),
            (RuleTest::Every(pattern), Some(Value::Array(items))) if !items.is_empty() => {
                for (index, each) in items.iter().enumerate() {
                    pattern.compare(Some(each), &item(at, index), found);
                }
            }
            (RuleTest::NoneOf(patterns), Some(Value::Array(items))) => {
                let refused = |each: &Value| patterns.iter().any(|pattern| pattern.matches(each));
                for (index, each) in items.iter().enumerate().filter(|(_, each)| refused(each)) {
                    found.add_broken(&item(at, index), &self.name, self.words(), Some(each));
                }
            }
            (RuleTest::Occur(words), _) => {
                for word in words.iter().filter(|word| !actual.is_some_and(|value| occurs(word, value))) {
                    found.add_broken(at, &self.name, format!("a text with {}", quote_word(word)), actual);
                }
            }
            (RuleTest::OccurNot(words), Some(value)) => {
                for word in words.iter().filter(|word| occurs(word, value)) {
                    found.add_described(at, &self.name, format!("no {}", quote_word(word)), quote_word(word));
                }
            }
            (_, actual) if self.test.holds(actual) => {}
            (RuleTest::TextsLength(_), Some(value)) => {
                found.add_described(
                    at,
                    &self.name,
                    self.words(),
                    format!("{} characters", texts_length(value)),
                );
            }
            _ => found.add_broken(at, &self.name, self.words(), actual),
        }
    }

    /// Describes the requirement in words.
    pub(crate) fn words(&self) -> String {
        let list = |values: &[Value]| values.iter().map(value_text).collect::<Vec<_>>().join(", ");
        match &self.test {
            RuleTest::Exact(value) => format!("exactly {}", value_text(value)),
            RuleTest::Part(pattern) => pattern.words(),
            RuleTest::In(values) => format!("one of {}", list(values)),
            RuleTest::Not(pattern) => format!("anything but {}", pattern.words()),
            RuleTest::Present => "a value".to_owned(),
            RuleTest::Absent => "nothing".to_owned(),
            RuleTest::AbsentOrNull => "nothing, or null".to_owned(),
            RuleTest::Type(kind) => kind.words().to_owned(),
            RuleTest::Validate(_) => "a value that fits the schema".to_owned(),
            RuleTest::Min(least) => format!("at least {least}"),
            RuleTest::Max(most) => format!("at most {most}"),
            RuleTest::Range(from, to) => format!("a number from {from} to {to}"),
            RuleTest::Text(text) => format!("the text {}", quote_word(text)),
            RuleTest::Regex(expression) => format!("a text that matches `{expression}`"),
            RuleTest::Contains(groups) => {
                let words = groups.iter().map(|group| group.join(" or ")).collect::<Vec<_>>();
                format!("a text with {}", words.join(", "))
            }
            RuleTest::Lacks(words) | RuleTest::OccurNot(words) => {
                format!("a text without {}", words.join(", "))
            }
            RuleTest::Occur(words) => format!("a text with {}", words.join(", ")),
            RuleTest::Len(length) => format!("a length of {length}"),
            RuleTest::MinLen(length) => format!("a length of at least {length}"),
            RuleTest::MaxLen(length) => format!("a length of at most {length}"),
            RuleTest::Set(values) if values.is_empty() => "an empty list".to_owned(),
            RuleTest::Set(values) => format!("in any order {}", list(values)),
            RuleTest::SubsetOf(values) => format!("a list of only {}", list(values)),
            RuleTest::SupersetOf(values) => format!("a list with {}", list(values)),
            RuleTest::Some(pattern) => format!("a list with {}", pattern.words()),
            RuleTest::Every(pattern) => format!("a list whose items are all {}", pattern.words()),
            RuleTest::NoneOf(patterns) => {
                let words = patterns.iter().map(ExpectedValue::words).collect::<Vec<_>>();
                format!("a list without {}", words.join(" or "))
            }
            RuleTest::JsonContains(words) => format!("JSON with {}", words.join(", ")),
            RuleTest::JsonLacks(words) => format!("JSON without {}", words.join(", ")),
            RuleTest::Code(codes) => format!("the code {}", codes.join(" or ")),
            RuleTest::TextsLength(least) => format!("at least {least} characters"),
            RuleTest::RiskAtMost(most) => format!("at most {most}"),
        }
    }
}

impl RuleTest {
    /// Returns whether a value satisfies the rule. For a missing value, only absence holds.
    fn holds(&self, actual: Option<&Value>) -> bool {
        let Some(value) = actual else { return matches!(self, Self::Absent | Self::AbsentOrNull) };
        let number = value.as_f64();
        match self {
            Self::Present => true,
            Self::Absent => false,
            Self::AbsentOrNull => value.is_null(),
            Self::Exact(expected) => deep_equal(expected, value),
            Self::In(values) => is_one_of(values, value),
            Self::Not(pattern) => !pattern.matches(value),
            Self::Type(kind) => kind.is_of(value),
            Self::Min(least) => number.is_some_and(|number| number >= *least),
            Self::Max(most) => number.is_some_and(|number| number <= *most),
            Self::Range(from, to) => number.is_some_and(|number| (*from..=*to).contains(&number)),
            Self::Code(codes) => {
                value.as_str().is_some_and(|code| codes.iter().any(|each| number_of(each) == number_of(code)))
            }
            Self::RiskAtMost(most) => match value {
                Value::String(word) => Risk::parse(word).is_some_and(|risk| risk <= *most),
                Value::Object(_) => Risk::Medium <= *most,
                _ => false,
            },
            _ => self.text_holds(value) || self.list_holds(value),
        }
    }

    /// Evaluates the rules about texts, and about the JSON text of any value.
    fn text_holds(&self, value: &Value) -> bool {
        let length = length(value);
        match self {
            Self::Text(text) => value.as_str().is_some_and(|got| fold_text(got) == *text),
            Self::Regex(expression) => value.as_str().is_some_and(|text| expression.is_match(text)),
            Self::Contains(groups) => {
                let text = fold_text(&texts_in(value).join(" "));
                groups.iter().all(|group| group.iter().any(|word| text.contains(word.as_str())))
            }
            Self::Lacks(words) => {
                let text = fold_text(&texts_in(value).join(" "));
                !words.iter().any(|word| text.contains(word.as_str()))
            }
            Self::Len(exact) => length.is_some_and(|length| length == *exact),
            Self::MinLen(least) => length.is_some_and(|length| length >= *least),
            Self::MaxLen(most) => length.is_some_and(|length| length <= *most),
            Self::JsonContains(words) => words.iter().all(|word| json_text(value).contains(word)),
            Self::JsonLacks(words) => !words.iter().any(|word| json_text(value).contains(word)),
            Self::TextsLength(least) => texts_length(value) >= *least,
            _ => false,
        }
    }

    /// Evaluates the rules about lists.
    fn list_holds(&self, value: &Value) -> bool {
        let Value::Array(items) = value else { return false };
        match self {
            Self::Set(wanted) => same_set(wanted, items),
            Self::SubsetOf(allowed) => items.iter().all(|each| is_one_of(allowed, each)),
            Self::SupersetOf(wanted) => wanted.iter().all(|each| is_one_of(items, each)),
            Self::Some(pattern) => items.iter().any(|each| pattern.matches(each)),
            // An empty list says nothing about its items; `$len: 0` expects one.
            Self::Every(pattern) => !items.is_empty() && items.iter().all(|each| pattern.matches(each)),
            Self::NoneOf(patterns) => {
                !items.iter().any(|each| patterns.iter().any(|pattern| pattern.matches(each)))
            }
            _ => false,
        }
    }
}

impl JsonType {
    pub(super) fn parse(word: &Value) -> Option<Self> {
        match word.as_str()? {
            "string" => Some(Self::String),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            "array" => Some(Self::Array),
            "object" => Some(Self::Object),
            "null" => Some(Self::Null),
            _ => None,
        }
    }

    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
            Self::Null => value.is_null(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::String => "a text",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Array => "a list",
            Self::Object => "an object",
            Self::Null => "null",
        }
    }
}

/// Lowercases a text and collapses white space.
pub(super) fn fold_text(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a text occurs in a name or value, verbatim or as JSON. In a string it is only searched
/// verbatim.
pub(super) fn occurs(word: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(word),
        _ => value.to_string().contains(word) || texts_in(value).iter().any(|piece| piece.contains(word)),
    }
}

fn quote_word(word: &str) -> String {
    value_text(&Value::from(word))
}

fn texts_length(value: &Value) -> u64 {
    texts_in(value).iter().map(|piece| piece.chars().count() as u64).sum()
}

/// Returns the code points of a text or the items of a list; other values have no length.
fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns the number of an older code name. The format of vectors fixes this list. Using the product's own
/// list would let the product confirm itself.
fn number_of(code: &str) -> &str {
    match code {
        "PARSE_ERROR" => "E1000",
        "INVALID_INPUT" => "E1001",
        "UNSUPPORTED_LANGUAGE" => "E1004",
        "NO_SIMPLIFICATION_POSSIBLE" => "E2004",
        "BEHAVIOR_CHANGE_REQUIRED" => "E2005",
        "SCHEMA_VALIDATION_FAILED" | "OUTPUT_SCHEMA_VIOLATION" => "E3001",
        "INTERNAL_ERROR" => "E4000",
        "MODULE_NOT_FOUND" => "E4006",
        _ => code,
    }
}
