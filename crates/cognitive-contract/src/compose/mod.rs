//! Modules that are made of modules: the laws of composition, as pure functions.
//!
//! A manifest says which modules it needs and what flows between them; a prompt may call modules itself. Everything
//! that can be decided before a model is asked is decided here, once, when a module is loaded:
//!
//! 1. [`Path`], [`Condition`], [`Mapping`], [`VersionRange`] — the small languages, each compiled from text. They are
//!    total and bounded: no loops, no functions, at most 1,000 characters and 64 levels.
//! 2. [`aggregate`](fn@aggregate), [`route`], [`Repeat`] — how results become one, and what runs next.
//! 3. [`calls`] — what a prompt asks for. [`graph`] — who calls whom, judged before anything runs.
//! 4. [`CompositionPlan`] — a `composition` block with all of that resolved; what is wrong points into `module.yaml`. [`Composition`]
//!    is the plan together with the calls of the prompt, compiled once per loaded module.
//!    [`outcome`] — the envelope of what the parts said.
//!
//! Nothing here runs a module, and nothing here reads values as anything but values: a text that looks like a path, a
//! call or a placeholder stays a text.

mod aggregate;
pub mod calls;
mod compile;
mod composition;
mod cursor;
mod expr;
pub mod graph;
mod mapping;
pub mod outcome;
mod parser;
mod path;
pub mod plan;
mod repeat;
mod routing;
mod version;

pub use aggregate::{CustomAggregate, aggregate, merge};
pub use compile::{CompiledComposition, CompositionFault, violations};
pub use composition::Composition;
pub(crate) use composition::MadeOf;
pub use cursor::{MAX_EXPRESSION_LENGTH, Slip};
pub use expr::Condition;
pub use mapping::{Mapping, as_input};
pub use parser::MAX_DEPTH as DEEPEST_EXPRESSION;
pub use path::{Path, PathRoot, PathStep};
pub use plan::CompositionPlan;
pub use repeat::{MAX_ROUNDS, Repeat, Round};
pub use routing::{Choice, RoutingRule, route};
pub use version::VersionRange;

#[cfg(test)]
mod properties;
