//! What the three kinds of tests share: places in an envelope, values as they are compared and shown, schemas inside
//! expectations, differences, and counts. Knows no syntax of expectations; each kind of test reads its own.

pub(crate) mod difference;
pub(crate) mod place;
pub(crate) mod schema_check;
mod tally;
pub(crate) mod value;

pub use difference::Difference;
pub use tally::CaseTally;
