//! The stages, one file or folder each. Stages do not call each other; `pipeline.rs` calls them in order.

pub mod call;
pub mod input;
pub mod media;
pub mod output;
pub mod parse;
pub mod prompt;
pub mod requirements;
pub mod seal;
