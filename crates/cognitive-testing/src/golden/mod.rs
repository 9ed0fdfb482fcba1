//! Golden tests of modules: runs a saved input and a recorded reply through the whole pipeline and compares
//! the answer with the expectation.
//!
//! The stages of one case: [`cases`] finds it and `crate::expect` parses its expectation. [`run_case`] runs
//! the module with the recorded reply, or asks a model and records its reply. [`GoldenReport`] counts the
//! results, and [`Coverage`] measures which parts of the contract the passing cases exercise. [`Recordings`]
//! provides the same replies to tests of other programs.
//!
//! Needs no network and no key unless a model is requested. A case that was not judged never passes: an
//! incomplete case, an unknown rule, an empty expectation and a missing reply are failures. Prints nothing.

mod accepted_answer;
mod case;
mod coverage;
mod fields;
mod file;
mod junit;
mod recordings;
mod report;
mod runner;

pub use crate::expect::accept::AcceptedAnswers;
pub use accepted_answer::AcceptedExpectation;
pub(crate) use accepted_answer::first_expectation;
pub use case::{GoldenCase, cases};
pub use coverage::{Coverage, CoverageShare};
pub use junit::to_junit;
pub use recordings::Recordings;
pub use report::{GoldenReport, GoldenResult, GoldenStatus, ModuleReport, ModuleTrouble};
pub use runner::{
    Answers, GoldenOptions, LiveHost, ReplySource, TestedFolder, run, run_case, run_recorded, write_accepted,
};
