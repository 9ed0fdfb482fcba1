//! Previews the prompt of a run, without asking a model. Uses the same stages as a run, up to the call.

use cognitive_contract::ports::{Example, ModelCall};
use cognitive_contract::{Enforcement, Failure, Module};

use crate::host::{Host, RunInput, RunOptions};
use crate::run_context::RunContext;
use crate::stages::prompt::Prompt;
use crate::stages::{call, input, media, prompt};
use crate::tools;

/// The prompt of a run that is not made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Preview {
    /// The instructions, which the model would read first.
    pub instructions: String,
    /// The worked examples that follow.
    pub examples: Vec<Example>,
    /// The input.
    pub input: String,
    /// An estimate of the tokens of the whole prompt.
    pub estimated_tokens: u64,
}

/// Builds the prompt of a run, or returns why the run would fail before the call. Without `context`, no stored
/// context is read.
pub fn preview(
    module: &Module,
    given: &RunInput,
    enforcement: Enforcement,
    context: Option<&RunContext<'_>>,
) -> Result<Preview, Failure> {
    build(module, given, enforcement, context).map(Preview::of)
}

/// Does the same and returns the first call of the host's model, as far as it is known before. Media are described
/// and not fetched, and parts have no results yet.
pub fn preview_call(
    host: &Host,
    module: &Module,
    given: &RunInput,
    options: &RunOptions,
) -> Result<(Preview, ModelCall), Failure> {
    let plan = host.decide(&module.manifest.name, options);
    let context = RunContext::new(host.context.as_deref(), &host.clock, options);
    let context = context.with_sanitiser(host.sanitiser.clone());
    let mut prompt = build(module, given, plan.settings.enforced(), Some(&context))?;
    let provider = plan.models.first.as_ref();
    let tools = tools::offered_alone(host, provider, module);
    tools::instruct(&mut prompt, !tools.is_empty());
    let mut call = call::model_call(provider, module, &plan.settings, &prompt);
    call.tools = tools;
    Ok((Preview::of(prompt), call))
}

fn build(
    module: &Module,
    given: &RunInput,
    enforcement: Enforcement,
    context: Option<&RunContext<'_>>,
) -> Result<Prompt, Failure> {
    let given = input::read(given.clone())?;
    let (recalled, _) = context.map(|context| context.recall(module, &given)).unwrap_or_default();
    let sanitiser = context.map(|context| context.sanitiser.clone()).unwrap_or_default();
    let mut valid = input::validate(module, given, &recalled, enforcement, &sanitiser)?;
    let attached = media::describe(module, &mut valid)?;
    prompt::build(module, &valid, attached)
}

impl Preview {
    fn of(built: Prompt) -> Self {
        let estimated_tokens = built.estimated_tokens();
        let Prompt { instructions, examples, input, .. } = built;
        Self { instructions: instructions.to_string(), examples, input, estimated_tokens }
    }
}
