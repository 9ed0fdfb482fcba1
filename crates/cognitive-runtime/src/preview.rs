//! What a model would be asked, without asking it. The same stages as a run, up to the call.

use cognitive_contract::{Enforcement, Failure, Module};

use crate::host::RunInput;
use crate::stages::prompt::{Prompt, estimated_tokens};
use crate::stages::{input, prompt};

/// The prompt of a run that is not made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Preview {
    /// What the model would read first.
    pub instructions: String,
    /// What it would work on.
    pub input: String,
    /// About how many tokens both have.
    pub estimated_tokens: u64,
}

/// Builds the prompt of a run, or says why the run would fail before the call.
pub fn preview(module: &Module, given: &RunInput, enforcement: Enforcement) -> Result<Preview, Failure> {
    let valid = input::validate(module, given, enforcement)?;
    let Prompt { instructions, input } = prompt::build(module, &valid)?;
    let estimated_tokens = estimated_tokens(&instructions) + estimated_tokens(&input);
    Ok(Preview { instructions, input, estimated_tokens })
}
