//! Modules composed of modules: the rules of composition, as pure functions.
//!
//! A manifest declares the modules it needs and the data flow between them; a prompt may call modules itself.
//! Everything that can be decided before a model call is decided here, once, when a module is loaded:
//!
//! 1. [`Path`], [`Condition`], [`Mapping`], [`VersionRange`]: the small languages, each compiled from text. They are
//!    total and bounded: no loops, no functions, at most 1,000 characters and 64 levels.
//! 2. [`aggregate`](fn@aggregate), [`route`], [`Repeat`]: combining results and selecting the next module.
//! 3. [`calls`]: the directives of a prompt. [`graph`]: the call graph, checked before anything runs.
//! 4. [`CompositionPlan`]: a `composition` block with all of that resolved; faults point into `module.yaml`.
//!    [`Composition`] is the plan together with the calls of the prompt, compiled once per loaded module.
//!    [`outcome`]: the envelope built from the parts' envelopes.
//!
//! Nothing here runs a module. Values are never interpreted: a text that looks like a path, a call or a placeholder
//! remains text.

mod aggregate;
pub mod calls;
mod compile;
mod composition;
mod cursor;
mod expr;
pub mod graph;
mod mapping;
mod origin;
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
pub use origin::MemberOrigin;
pub use parser::MAX_DEPTH as DEEPEST_EXPRESSION;
pub use path::{Path, PathRoot, PathStep};
pub use plan::CompositionPlan;
pub use repeat::{MAX_ROUNDS, Repeat, Round};
pub use routing::{Choice, RoutingRule, route};
pub use version::VersionRange;

#[cfg(test)]
mod properties;
