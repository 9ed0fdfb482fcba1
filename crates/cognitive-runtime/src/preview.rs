//! What a model would be asked, without asking it. The same stages as a run, up to the call.

use cognitive_contract::ports::Example;
use cognitive_contract::{Enforcement, Failure, Module};

use crate::host::RunInput;
use crate::run_context::RunContext;
use crate::stages::prompt::Prompt;
use crate::stages::{input, media, prompt};

/// The prompt of a run that is not made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Preview {
    /// What the model would read first.
    pub instructions: String,
    /// Worked examples that it would read next.
    pub examples: Vec<Example>,
    /// What it would work on.
    pub input: String,
    /// About how many tokens all of it has.
    pub estimated_tokens: u64,
}

/// Builds the prompt of a run, or says why the run would fail before the call. Without a context nothing is recalled.
pub fn preview(
    module: &Module,
    given: &RunInput,
    enforcement: Enforcement,
    context: Option<&RunContext<'_>>,
) -> Result<Preview, Failure> {
    let given = input::read(given.clone())?;
    let (recalled, _) = context.map(|context| context.recall(module, &given)).unwrap_or_default();
    let sanitiser = context.map(|context| context.sanitiser.clone()).unwrap_or_default();
    let mut valid = input::validate(module, given, &recalled, enforcement, &sanitiser)?;
    let attached = media::describe(module, &mut valid)?;
    let built = prompt::build(module, &valid, attached)?;
    let estimated_tokens = built.estimated_tokens();
    let Prompt { instructions, examples, input, .. } = built;
    Ok(Preview { instructions: instructions.to_string(), examples, input, estimated_tokens })
}
