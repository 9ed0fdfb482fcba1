//! Previews the prompts of a run, without asking a model. Uses the same stages as a run, up to each call. For a
//! composition it shows each call of each part. A prompt that holds the answer of another part is not known before the
//! run, and is not made up.

use cognitive_contract::compose::calls::Argument;
use cognitive_contract::compose::plan::{AnswerSource, FlowSource, Progress};
use cognitive_contract::compose::{Composition, CompositionPlan, VersionRange};
use cognitive_contract::context::{ContextFlow, visible_to};
use cognitive_contract::manifest::Tier;
use cognitive_contract::ports::{Example, ModuleSource, RenderedRequest};
use cognitive_contract::{Enforcement, Failure, Module};

use crate::compose::calls::PromptCalls;
use crate::compose::child::shareable;
use crate::compose::lineage::Lineage;
use crate::compose::parts::part_input;
use crate::compose::{Results, sound};
use crate::host::{Host, RunInput, RunOptions, RunPlan};
use crate::run_context::RunContext;
use crate::stages::input::ValidInput;
use crate::stages::prompt::Prompt;
use crate::stages::{call, input, media, prompt};
use crate::tools;

/// The prompt of a call that is not made.
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
    /// The first request to the model, if the model is known and asked by requests.
    pub request: Option<RenderedRequest>,
}

/// A model call of a run that is not made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PreviewedCall {
    /// The module that asks, below the modules that call it: `outer/inner`.
    pub module: String,
    /// Its prompt, as far as it is known.
    pub prompt: PreviewedPrompt,
}

/// The knowledge about a prompt before the run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PreviewedPrompt {
    /// This prompt is sent.
    Known(Box<Preview>),
    /// The prompt depends on the answers of these modules, or they decide whether there is one.
    WaitsFor(Vec<String>),
    /// No prompt is sent, for this reason.
    NotSent(String),
}

/// Builds the own prompt of a module without parts, or returns why the run would fail before the call. Without
/// `context`, no stored context is read.
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
    Ok(Preview::from_prompt(prompt::build(module, &valid, attached)?, None))
}

/// Builds the prompts of all model calls of a run, in the order in which their modules are reached, or returns why the
/// run would fail before the first call.
pub fn preview_calls(
    modules: &dyn ModuleSource,
    module: &Module,
    given: &RunInput,
    enforcement: Enforcement,
    context: Option<&RunContext<'_>>,
) -> Result<Vec<PreviewedCall>, Failure> {
    let walk = PreviewWalk { modules, enforcement, context, host: None, calls: Vec::new() };
    walk.all(module, given, None)
}

/// Does the same with the requests to the models of the host. Media are described and not fetched.
pub fn preview_requests(
    host: &Host,
    module: &Module,
    given: &RunInput,
    options: &RunOptions,
) -> Result<Vec<PreviewedCall>, Failure> {
    let plan = host.decide(&module.manifest.name, options);
    let context = RunContext::new(host.context.as_deref(), &host.clock, options);
    let context = context.with_sanitiser(host.sanitiser.clone());
    let walk = PreviewWalk {
        modules: host.modules.as_ref(),
        enforcement: plan.settings.enforcement(),
        context: Some(&context),
        host: Some((host, options)),
        calls: Vec::new(),
    };
    walk.all(module, given, Some(&plan))
}

/// A walk through the modules of a run.
struct PreviewWalk<'a> {
    modules: &'a dyn ModuleSource,
    enforcement: Enforcement,
    context: Option<&'a RunContext<'a>>,
    /// The host, if the models are known.
    host: Option<(&'a Host, &'a RunOptions)>,
    calls: Vec<PreviewedCall>,
}

/// A run within the walk.
struct VisitedRun<'v> {
    module: &'v Module,
    lineage: &'v Lineage,
    plan: Option<&'v RunPlan>,
    input: &'v ValidInput,
    flow: &'v ContextFlow,
}

/// A module that another one would run.
struct VisitedChild<'v> {
    name: &'v str,
    range: &'v VersionRange,
    fallback: Option<&'v str>,
    tier: Option<Tier>,
}

impl PreviewWalk<'_> {
    fn all(
        mut self,
        module: &Module,
        given: &RunInput,
        plan: Option<&RunPlan>,
    ) -> Result<Vec<PreviewedCall>, Failure> {
        if let Some(made_of) = module.composition()? {
            sound(self.modules, module, Some(made_of), |_, _| {})?;
        }
        self.visit(module, given.clone(), &Lineage::default(), plan)?;
        Ok(self.calls)
    }

    /// Adds the calls of a run.
    fn visit(
        &mut self,
        module: &Module,
        given: RunInput,
        lineage: &Lineage,
        plan: Option<&RunPlan>,
    ) -> Result<(), Failure> {
        let given = input::read(given)?.with_context(&lineage.context);
        let (recalled, _) = self.context.map(|context| context.recall(module, &given)).unwrap_or_default();
        let sanitiser = self.context.map(|context| context.sanitiser.clone()).unwrap_or_default();
        let context = input::parts_context(&given, &recalled);
        let enforcement = plan.map_or(self.enforcement, |plan| plan.settings.enforcement());
        let mut valid = input::validate(module, given, &recalled, enforcement, &sanitiser)?;
        let mut results = Results::default();
        if !module.is_standalone()
            && let Some(made_of) = module.composition()?
        {
            let flow = ContextFlow::new(module.manifest.context.mode, context);
            let run = VisitedRun { module, lineage, plan, input: &valid, flow: &flow };
            let answers = self.parts(&run, made_of, &mut results);
            if made_of.plan.answer != AnswerSource::Prompt {
                return Ok(());
            }
            if !answers.is_empty() {
                let name = called_name(lineage, &module.manifest.name);
                self.add(name, PreviewedPrompt::WaitsFor(answers));
                return Ok(());
            }
        }
        let attached = media::describe(module, &mut valid)?;
        if media::hides(module, !lineage.is_empty()) {
            valid.hide_secrets();
        }
        let policies = lineage.policies(module);
        let (prompt, _) = prompt::build_with(module, &valid, &results, &policies, attached)?;
        let preview = self.with_request(prompt, module, lineage, plan);
        self.add(called_name(lineage, &module.manifest.name), PreviewedPrompt::Known(Box::new(preview)));
        Ok(())
    }

    /// Adds the parts of the prompt, and the request, that depend on the model.
    fn with_request(
        &self,
        mut prompt: Prompt,
        module: &Module,
        lineage: &Lineage,
        plan: Option<&RunPlan>,
    ) -> Preview {
        let (Some((host, _)), Some(plan)) = (self.host, plan) else {
            return Preview::from_prompt(prompt, None);
        };
        let provider = plan.models.first.as_ref();
        prompt.expect_media(media::may_produce(module, provider));
        let tools = tools::offered_tools(lineage, host, provider, module);
        tools::instruct(&mut prompt, !tools.is_empty());
        let mut call = call::model_call(provider, module, &plan.settings, &prompt);
        call.tools = tools;
        Preview::from_prompt(prompt, provider.render_request(&call))
    }

    /// Adds the calls of all parts, and of the modules that the prompt calls. Returns the modules whose answers the
    /// prompt of the whole module would hold.
    fn parts(&mut self, run: &VisitedRun<'_>, made_of: &Composition, results: &mut Results) -> Vec<String> {
        let Composition { plan, directives, .. } = made_of;
        let mut answers = Vec::new();
        // Parts that a rule may choose follow those that always run.
        let chosen = (0..plan.parts.len()).filter(|place| !plan.order.contains(place));
        for place in plan.order.iter().copied().chain(chosen) {
            let Some(part) = plan.parts.get(place) else { continue };
            let (name, range, fallback) = (&part.name, &part.range, part.fallback.as_deref());
            let child = VisitedChild { name, range, fallback, tier: None };
            let input = self.input_of(run, plan, place);
            if !self.child(run, &child, input, &mut answers) {
                results.add(name, None);
            }
        }
        if plan.answer == AnswerSource::Prompt {
            let any = VersionRange::any();
            let calls = PromptCalls::new(directives, run.input);
            let mut last = None;
            for (place, call) in directives.calls.iter().enumerate() {
                let declared = plan.part(&call.module).and_then(|place| plan.parts.get(place));
                let (name, tier) = (call.module.as_str(), call.options.tier);
                let range = declared.map_or(&any, |part| &part.range);
                let fallback = declared.and_then(|part| part.fallback.as_deref());
                let child = VisitedChild { name, range, fallback, tier };
                // A path is read from the result of the previous call.
                let input = match last.filter(|_| matches!(call.argument, Argument::Path(_))) {
                    Some(last) => Err(PreviewedPrompt::WaitsFor(vec![last])),
                    None => Ok(calls.argument(call, place)),
                };
                if !self.child(run, &child, input, &mut answers) {
                    answers.push(name.to_owned());
                }
                last = Some(name.to_owned());
            }
        }
        answers.dedup();
        answers
    }

    /// Returns the input of a part, or what is known instead.
    fn input_of(
        &self,
        run: &VisitedRun<'_>,
        plan: &CompositionPlan,
        place: usize,
    ) -> Result<RunInput, PreviewedPrompt> {
        let name = |place: usize| plan.parts.get(place).map(|part| part.name.clone());
        let steps = plan.parts.get(place).into_iter().flat_map(|part| &part.fed_by);
        let sources = steps.filter_map(|step| plan.steps.get(*step)).flat_map(|step| &step.from);
        let mut waits: Vec<String> = sources
            .filter_map(|source| match source {
                FlowSource::Input => None,
                FlowSource::Part(place) => name(*place),
            })
            .collect();
        if waits.is_empty() && !plan.order.contains(&place) {
            waits.extend(name(0));
        }
        if !waits.is_empty() {
            waits.dedup();
            return Err(PreviewedPrompt::WaitsFor(waits));
        }
        let results = vec![None; plan.parts.len()];
        let custom = self.host.and_then(|(host, _)| host.aggregate.as_ref());
        let progress = Progress { input: run.input.value(), results: &results, custom };
        let given = (run.input.shared_input(), run.input.input_text());
        part_input(plan, given, progress, place)
            .ok_or_else(|| PreviewedPrompt::NotSent(plan.why_skipped(place, progress).unwrap_or_default()))
    }

    /// Adds the calls of a child, and its name to `answers` if it may answer. Returns whether it may.
    fn child(
        &mut self,
        run: &VisitedRun<'_>,
        child: &VisitedChild<'_>,
        input: Result<RunInput, PreviewedPrompt>,
        answers: &mut Vec<String>,
    ) -> bool {
        let mut lineage = run.lineage.child_of(run.module, child.tier, &run.lineage.references);
        let any = VersionRange::any();
        let choices = [Some((child.name, child.range)), child.fallback.map(|name| (name, &any))];
        let found = choices.into_iter().flatten().find_map(|(name, range)| {
            let found = self.modules.module(name).ok()?;
            range.matches(&found.manifest.version).then_some(found)
        });
        let Some(module) = found else {
            let why = "it is not installed".to_owned();
            self.add(called_name(&lineage, child.name), PreviewedPrompt::NotSent(why));
            return false;
        };
        let module = lineage.in_tier(module);
        let name = module.manifest.name.as_str();
        // Earlier parts may change the context that this one reads.
        let reads_context = !module.manifest.context.accepts.is_empty() && !answers.is_empty();
        let visited = match input {
            Err(unknown) => Err(unknown),
            Ok(_) if reads_context => Err(PreviewedPrompt::WaitsFor(answers.clone())),
            Ok(input) => {
                lineage.context = visible_to(&module, &run.flow.child_context(|_| true));
                let plan = self
                    .host
                    .zip(run.plan)
                    .map(|((host, options), above)| host.decide_part(name, above, options.remote));
                let visited = self.visit(&module, shareable(input), &lineage, plan.as_ref());
                visited.map_err(|failure| PreviewedPrompt::NotSent(failure.message().to_owned()))
            }
        };
        let may_answer = !matches!(visited, Err(PreviewedPrompt::NotSent(_)));
        if let Err(unknown) = visited {
            self.add(called_name(&lineage, name), unknown);
        }
        if may_answer {
            answers.push(name.to_owned());
        }
        may_answer
    }

    fn add(&mut self, module: String, prompt: PreviewedPrompt) {
        self.calls.push(PreviewedCall { module, prompt });
    }
}

/// The name of a module below the modules that call it.
fn called_name(lineage: &Lineage, name: &str) -> String {
    lineage.span().map_or_else(|| name.to_owned(), |above| format!("{above}/{name}"))
}

impl Preview {
    fn from_prompt(built: Prompt, request: Option<RenderedRequest>) -> Self {
        let estimated_tokens = built.estimated_tokens();
        let Prompt { instructions, examples, input, .. } = built;
        Self { instructions: instructions.to_string(), examples, input, estimated_tokens, request }
    }
}
