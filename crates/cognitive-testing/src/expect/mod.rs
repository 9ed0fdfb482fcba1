//! The one language in which tests say what they expect, for golden tests, labelled cases and conformance vectors:
//! one reader and one matcher. `docs/expectations.md` describes it.
//!
//! [`Expectation`](expectation::Expectation) is a whole expectation: places and what is expected there.
//! [`ExpectedValue`](pattern::ExpectedValue) is what one value has to be, [`ValueRule`](value_rule::ValueRule) a rule such as `$in`.
//! `named_rules` and `field_rule` read the older spellings `_validate` and `_contains` into the same rules.
//!
//! Refuses what it does not know and what expects nothing: a check that cannot fail is a defect.

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
