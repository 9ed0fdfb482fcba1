//! Measures how often a module is right: runs many labelled cases through the whole pipeline and counts.
//!
//! The stages of one case: `case` parses its line, `expect` parses its expectation, `runner` runs the module
//! through the common entry point, and [`Evaluation`] counts. A golden test detects changed answers. An
//! evaluation measures the quality of answers, so a wrong answer lowers a number and is not a failure.
//!
//! Runs nothing before all cases were parsed, and never skips one silently. Prints nothing.

mod case;
mod confidence;
mod expect;
mod report;
mod runner;
mod total_limit;

pub use case::{LabelledCase, parse};
pub use expect::LabelExpectation;
pub use report::{AccuracyShare, CaseOutcome, Evaluation, FieldOutcome, ListPosition};
pub use runner::{EvaluationPlan, run};
