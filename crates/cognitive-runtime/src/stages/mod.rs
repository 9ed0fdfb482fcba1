//! The stages, one file or folder each. `pipeline.rs` and `attempt.rs` call them in order. A stage may use a rule that another
//! one publishes, and never starts it.

pub mod call;
pub mod input;
pub mod media;
pub mod models;
pub mod output;
pub mod parse;
pub mod prompt;
pub mod requirements;
pub mod seal;
