//! What a model would be asked, without asking it. The same stages as a run, up to the call.

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
    build(module, given, enforcement, context).map(Preview::of)
}

/// The same with the call that the host's model would get first, as far as it is known before: media are described and not
/// fetched, and parts have said nothing yet.
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
    let mut call = call::unlimited_call(provider, module, &plan.settings, &prompt);
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
