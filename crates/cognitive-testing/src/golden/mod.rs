//! Golden tests of modules: a saved input and a recorded reply through the whole pipeline, compared with what is
//! expected.
//!
//! The way of one case: [`cases`] finds it, `crate::expect` reads what it asks for, [`run_case`] runs the module with the reply
//! that lies beside it (or asks a model, and keeps the reply), and [`GoldenReport`] counts. [`Coverage`] says which parts of
//! the contract the passing cases exercise. [`Recordings`] finds the same replies for tests of other
//! programs.
//!
//! Needs no network and no key unless a model is asked for. Never lets a case pass that was not judged: half a case, an
//! unknown rule, an expectation that expects nothing or a reply that was not recorded is a failure. Prints nothing.

mod accepted;
mod case;
mod coverage;
mod fields;
mod file;
mod junit;
mod recordings;
mod report;
mod runner;

pub use crate::expect::accept::AcceptedAnswers;
pub use accepted::AcceptedExpectation;
pub(crate) use accepted::first_expectation;
pub use case::{GoldenCase, cases};
pub use coverage::{Coverage, CoverageShare};
pub use junit::to_junit;
pub use recordings::Recordings;
pub use report::{GoldenReport, GoldenResult, GoldenStatus, ModuleReport, ModuleTrouble};
pub use runner::{
    Answers, GoldenOptions, ReplySource, TestedFolder, run, run_case, run_recorded, write_accepted,
};
