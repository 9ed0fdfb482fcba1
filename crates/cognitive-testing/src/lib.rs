//! Libraries that test modules and runtimes: golden tests ([`golden`]), labelled cases ([`eval`]),
//! conformance vectors ([`conformance`]) and the published certification ([`grade()`]). [`FolderCases`] lists
//! the cases of modules and adds new ones.
//!
//! Prints nothing and defines no validity rules: the crates under test decide what is valid.

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
