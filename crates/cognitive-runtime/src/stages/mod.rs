//! One stage = one file = one public function. Stages do not call each other; `pipeline.rs` does.

pub mod call;
pub mod input;
pub mod media;
pub mod output;
pub mod parse;
pub mod prompt;
pub mod requirements;
pub mod seal;
