//! Tests of modules and of runtimes, as libraries: golden tests ([`golden`]), labelled cases ([`eval`]), conformance vectors
//! ([`conformance`]) and the published certification ([`grade()`]). [`FolderCases`] are the cases of modules for those who look at them and add some.
//!
//! Prints nothing and judges by no rule of its own: what is valid is decided by the crates under test.

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
