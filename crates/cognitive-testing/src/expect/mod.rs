//! The common syntax of expectations for golden tests, labelled cases and conformance vectors, with one
//! parser and one matcher. `docs/expectations.md` describes it.
//!
//! [`Expectation`](expectation::Expectation) is a whole expectation: places and their expected values.
//! [`ExpectedValue`](pattern::ExpectedValue) is the expectation for one value, and
//! [`ValueRule`](value_rule::ValueRule) a rule such as `$in`. `named_rules` and `field_rule` parse the older
//! spellings `_validate` and `_contains` into the same rules.
//!
//! Refuses unknown rules and empty expectations: a check that cannot fail is a defect.

pub(crate) mod accept;
pub(crate) mod difference;
mod editor_schemas;
pub(crate) mod expectation;
mod field_rule;
mod named_places;
mod named_rules;
pub(crate) mod pattern;
pub(crate) mod place;
mod rule_arguments;
pub(crate) mod schema_check;
mod tally;
pub(crate) mod value;
mod value_rule;

#[cfg(test)]
mod envelope_tests;
#[cfg(test)]
mod value_rule_tests;

pub use difference::Difference;
pub use editor_schemas::{expectation_schema, labelled_case_schema};
pub use named_places::GoldenExpectations;
pub use tally::CaseTally;
pub use value_rule::RULE_NAMES;
