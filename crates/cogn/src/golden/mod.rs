//! Golden tests of modules: a saved input and a recorded reply through the whole pipeline, compared with what is
//! expected.
//!
//! The way of one case: [`cases`] finds it, `expect` reads what it asks for, [`run_case`] runs the module with the reply
//! that lies beside it (or asks a model, and keeps the reply), and [`Report`] counts. [`Coverage`] says which parts of
//! the contract the passing cases exercise.
//!
//! Needs no network and no key unless a model is asked for. Never lets a case pass that was not judged: half a case, an
//! unknown rule, an expectation that expects nothing or a reply that was not recorded is a failure. Prints nothing.

mod case;
mod coverage;
mod difference;
mod expect;
mod field_rule;
mod fields;
mod file;
mod junit;
mod pattern;
mod place;
mod report;
mod rule;
mod runner;
mod shape;
mod show;
mod value;
mod witness;

pub use case::{Case, cases};
pub use coverage::{Coverage, Share};
pub use difference::Difference;
pub use junit::to_junit;
pub(crate) use place::View;
pub use report::{CaseResult, ModuleReport, Report, Status, Tally, Trouble};
pub use runner::{Answers, Options, Source, Subject, run, run_case, run_recorded};
pub use show::{Look, lines};
pub(crate) use value::{plain, shown};

use serde_json::Value;

/// Everything in which an envelope is not as expected; the error says why the expectation cannot be used.
pub fn compare(expected: &Value, envelope: &Value) -> Result<Vec<Difference>, String> {
    expect::Expectation::parse(expected).map(|expectation| expectation.differences(envelope))
}
