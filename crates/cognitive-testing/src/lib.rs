//! Libraries that test modules and runtimes: golden tests ([`golden`]), labelled cases ([`eval`]),
//! conformance vectors ([`conformance`]) and the published certification ([`grade()`]). [`FolderCases`] lists
//! the cases of modules and adds new ones.
//!
//! Prints nothing and defines no validity rules: the crates under test decide what is valid.
//!
//! # Modules
//!
//! - `expect`: the syntax of expectations, common to all kinds of tests (`docs/expectations.md`). `expect::expectation`
//!   parses it, `expect::pattern` and `expect::value_rule` judge values, `expect::accept` writes the expectation that
//!   an answer satisfies.
//! - [`golden`]: golden tests and recorded replies. [`eval`]: labelled cases. [`conformance`]: vector files.
//! - [`grade`](mod@grade): the levels of the published certification. `case_book`: lists and adds cases.

mod case_book;
pub mod conformance;
pub mod eval;
mod expect;
pub mod golden;
pub mod grade;

pub use case_book::FolderCases;
pub use expect::{
    CaseTally, Difference, GoldenExpectations, RULE_NAMES, expectation_schema, labelled_case_schema,
};
pub use grade::grade;
