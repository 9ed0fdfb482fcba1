//! How often a module is right: many labelled cases through the whole pipeline, counted.
//!
//! The way of one case: `case` reads its line, `expect` the expectation in it, `runner` runs the module as every surface
//! does, and [`Evaluation`] counts. A golden test asks whether a module still answers as it did; an evaluation asks how
//! good its answers are, so a wrong answer is a number here and no failure.
//!
//! Runs nothing before all cases were read, and never leaves one out in silence. Prints nothing.

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
