//! The cost that a run needs as its limit, computed from what is known before it: prompts, contracts, the plan of its
//! parts, the caller's limits, the prices of the models that may be asked. Runs nothing.

use cognitive_contract::compose::calls::Argument;
use cognitive_contract::compose::plan::{AnswerSource, CompositionPlan, FlowSource, FlowTarget};
use cognitive_contract::compose::{Composition, VersionRange};
use cognitive_contract::manifest::Pattern;
use cognitive_contract::money::Money;
use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_ports::prices::{BilledVocabulary, ModelPrice};
use serde::Serialize;

use super::limit::{no_bound, no_price};
use super::{
    BYTES_PER_TOKEN, RequestSize, TURN_TOKENS, WritingScript, answer_size, most_tokens, output_size,
    price_of, service_tokens, thinking, thought_tokens, tool_tokens,
};
use crate::compose::MAX_DEPTH;
use crate::compose::lineage::Lineage;
use crate::host::{Host, RunOptions, RunPlan};
use crate::stages::media::MediaNote;
use crate::stages::{prompt, requirements};
use crate::tools::{MAX_ROUNDS as TOOL_ROUNDS, offered_tools};

/// The bytes that a repair prompt adds about the broken answer.
const REASK_BYTES: u64 = 2048;
/// The bytes that a round of tools adds to a prompt besides the model's turn.
const TOOL_ROUND_BYTES: u64 = 16 * 1024;
/// The bytes that the runtime adds to an envelope: ids, times, counts.
const META_BYTES: u64 = 512;
/// Larger compositions are not added up; they are refused under a cost limit.
const MAX_VISITED: usize = 10_000;

/// The most that a run costs under the lowest limit that lets it start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CostCeiling {
    /// The total, in US dollars.
    pub cost: Money,
    /// The most calls that it counts.
    pub calls: u64,
    /// The assumed size of the input, in bytes.
    pub input_bytes: u64,
    /// The cost of each module, in the order in which they run.
    pub parts: Vec<PartCost>,
}

/// The cost of one module's own calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartCost {
    /// The path: the names of the modules above it and its own, separated by slashes.
    pub module: String,
    /// The number of model calls.
    pub calls: u64,
    /// The most input tokens.
    pub input_tokens: u64,
    /// The most output tokens.
    pub output_tokens: u64,
    /// The most that they cost, in US dollars.
    pub cost: Money,
}

/// The lowest limit that lets a run of a module with `input_bytes` of input start, for planning.
pub fn ceiling(
    host: &Host,
    module: &Module,
    options: &RunOptions,
    input_bytes: u64,
) -> Result<CostCeiling, Failure> {
    Estimate::new(host, &host.decide(&module.manifest.name, options)).rounds(module, input_bytes, 1)
}

/// The lowest limit that lets a run of a module with this input start. Common words cost less than as many bytes.
pub fn ceiling_for_text(
    host: &Host,
    module: &Module,
    options: &RunOptions,
    input: &str,
) -> Result<CostCeiling, Failure> {
    let plan = host.decide(&module.manifest.name, options);
    Estimate::new(host, &plan).with_text(input).rounds(module, input.len() as u64, 1)
}

/// An estimate in progress.
pub(crate) struct Estimate<'a> {
    host: &'a Host,
    /// The models and options of the outermost module.
    plan: &'a RunPlan,
    images: u64,
    documents: u64,
    /// The text of the input, if it is known.
    text: Option<&'a str>,
    script: WritingScript,
    parts: Vec<PartCost>,
    visited: usize,
}

/// The position of a module in the plan, and the size of its input.
#[derive(Clone, Copy)]
struct CostedPlace<'p> {
    path: &'p [&'p str],
    input_bytes: u64,
    /// The models and options of the module above, or of the module itself if it is the outermost one.
    plan: &'p RunPlan,
}

impl<'a> Estimate<'a> {
    pub(crate) fn new(host: &'a Host, plan: &'a RunPlan) -> Self {
        let (text, script) = (None, WritingScript::Latin);
        Self { host, plan, images: 0, documents: 0, text, script, parts: Vec::new(), visited: 0 }
    }

    /// Uses the actual input.
    pub(crate) fn with_text(self, text: &'a str) -> Self {
        Self { text: Some(text), script: WritingScript::detect([text]), ..self }
    }

    /// Adds media to the input. Only images and documents that are text have a known bound.
    pub(crate) fn with_media(mut self, notes: &[MediaNote]) -> Result<Self, Failure> {
        for note in notes {
            let kind = note.media_type.unwrap_or("unknown");
            if note.status == "text" {
                self.documents = self.documents.saturating_add(note.bytes.unwrap_or(0));
            } else if kind.starts_with("image/") {
                self.images += 1;
            } else {
                return Err(no_bound(&format!("media of the type `{kind}`")));
            }
        }
        Ok(self)
    }

    /// The total cost if the module may run this many rounds. Each further round gets the answer of the one
    /// before.
    pub(crate) fn rounds(
        mut self,
        module: &Module,
        input_bytes: u64,
        rounds: u32,
    ) -> Result<CostCeiling, Failure> {
        let rounds = u64::from(rounds.max(1));
        let fed = if rounds > 1 { 2 * self.answer_bytes(module, self.plan) } else { 0 };
        let input_bytes = input_bytes.saturating_add(fed).saturating_add(self.documents);
        self.add(module, CostedPlace { path: &[], input_bytes, plan: self.plan })?;
        for part in &mut self.parts {
            part.calls = part.calls.saturating_mul(rounds);
            part.input_tokens = part.input_tokens.saturating_mul(rounds);
            part.output_tokens = part.output_tokens.saturating_mul(rounds);
            part.cost = part.cost.times(rounds);
        }
        Ok(CostCeiling {
            cost: self.parts.iter().map(|part| part.cost).sum(),
            calls: self.parts.iter().map(|part| part.calls).sum(),
            input_bytes,
            parts: self.parts,
        })
    }

    /// Adds a module with everything that it reaches, and returns the longest output that it hands on.
    fn add(&mut self, module: &Module, place: CostedPlace<'_>) -> Result<u64, Failure> {
        self.visited += 1;
        if self.visited > MAX_VISITED || place.path.len() as u64 > MAX_DEPTH {
            let message = "the module has too many parts to compute its maximum cost";
            return Err(Failure::new(ErrorCode::CostLimitExceeded, message));
        }
        let own = self.plan_of(module, place);
        let place = CostedPlace { plan: &own, ..place };
        let Some(made_of) = module.composition()? else {
            self.add_own(module, place, 0)?;
            return Ok(self.answer_bytes(module, &own));
        };
        let path: Vec<&str> = place.path.iter().copied().chain([module.manifest.name.as_str()]).collect();
        let below = CostedPlace { path: &path, ..place };
        let results = self.add_parts(&made_of.plan, below)?;
        if made_of.plan.answer != AnswerSource::Prompt {
            return Ok(results);
        }
        let called = self.add_calls(made_of, below, results)?;
        self.add_own(module, place, results.saturating_add(called))?;
        Ok(self.answer_bytes(module, &own))
    }

    /// Adds the parts that always run, and the most expensive one that a rule may choose. Returns the sum of
    /// their output lengths.
    fn add_parts(&mut self, plan: &CompositionPlan, place: CostedPlace<'_>) -> Result<u64, Failure> {
        let mut said = vec![0_u64; plan.parts.len()];
        for index in &plan.order {
            let bytes = self.add_part(plan, *index, place, &said)?;
            if let Some(slot) = said.get_mut(*index) {
                *slot = bytes;
            }
        }
        if plan.pattern == Pattern::Conditional {
            let mut dearest: Option<(Money, Vec<PartCost>, u64)> = None;
            let chosen = plan.rules.iter().filter_map(|rule| plan.part(rule.next.as_deref()?));
            for index in chosen.filter(|index| !plan.order.contains(index)) {
                let before = self.parts.len();
                let bytes = self.add_part(plan, index, place, &said)?;
                let added = self.parts.split_off(before);
                let cost: Money = added.iter().map(|part| part.cost).sum();
                let longest = dearest.as_ref().map_or(0, |(_, _, bytes)| *bytes).max(bytes);
                dearest = match dearest {
                    Some((most, parts, _)) if most >= cost => Some((most, parts, longest)),
                    _ => Some((cost, added, longest)),
                };
            }
            if let Some((_, parts, bytes)) = dearest {
                self.parts.extend(parts);
                said.push(bytes);
            }
        }
        Ok(said.into_iter().fold(0, u64::saturating_add))
    }

    /// Adds one part and its fallback: both may run.
    fn add_part(
        &mut self,
        plan: &CompositionPlan,
        index: usize,
        place: CostedPlace<'_>,
        said: &[u64],
    ) -> Result<u64, Failure> {
        let Some(part) = plan.parts.get(index) else { return Ok(0) };
        let place =
            CostedPlace { input_bytes: part_input_bytes(plan, index, place.input_bytes, said), ..place };
        let first = self.add_named(&part.name, &part.range, place)?;
        let second = match &part.fallback {
            Some(name) => self.add_named(name, &VersionRange::any(), place)?,
            None => 0,
        };
        Ok(first.max(second))
    }

    /// Adds the calls of the prompt. Returns the sum of their output lengths.
    fn add_calls(
        &mut self,
        made_of: &Composition,
        place: CostedPlace<'_>,
        results: u64,
    ) -> Result<u64, Failure> {
        let (mut sum, mut last) = (0_u64, results);
        for call in &made_of.directives.calls {
            let given = match &call.argument {
                Argument::Input | Argument::Arguments => place.input_bytes,
                Argument::Path(_) => place.input_bytes.max(last),
                Argument::Text(text) => text.len() as u64,
            };
            let part = made_of.plan.part(&call.module).and_then(|index| made_of.plan.parts.get(index));
            let range = part.map_or_else(VersionRange::any, |part| part.range.clone());
            let place = CostedPlace { input_bytes: given.saturating_add(META_BYTES), ..place };
            last = self.add_named(&call.module, &range, place)?;
            if let Some(name) = part.and_then(|part| part.fallback.as_deref()) {
                last = last.max(self.add_named(name, &VersionRange::any(), place)?);
            }
            sum = sum.saturating_add(last);
        }
        Ok(sum)
    }

    /// Adds a module by name. A missing module adds nothing here; other checks report it.
    fn add_named(
        &mut self,
        name: &str,
        range: &VersionRange,
        place: CostedPlace<'_>,
    ) -> Result<u64, Failure> {
        let found = self.host.modules.module(name).ok();
        let Some(module) = found.filter(|module| range.matches(&module.manifest.version)) else {
            return Ok(0);
        };
        self.add(&module, place)
    }

    /// Adds the calls of a module's own prompt, for every model of its fallback chain.
    fn add_own(&mut self, module: &Module, place: CostedPlace<'_>, results: u64) -> Result<(), Failure> {
        let path: Vec<&str> = place.path.iter().copied().chain([module.manifest.name.as_str()]).collect();
        let mut cost = PartCost {
            module: path.join("/"),
            calls: 0,
            input_tokens: 0,
            output_tokens: 0,
            cost: Money::ZERO,
        };
        for provider in self.rungs(module, place) {
            let price = price_of(self.host, provider).ok_or_else(|| no_price(provider))?;
            self.add_rung(&mut cost, module, (provider, &price), place, results)?;
        }
        self.parts.push(cost);
        Ok(())
    }

    fn add_rung(
        &self,
        cost: &mut PartCost,
        module: &Module,
        (provider, price): (&dyn Provider, &ModelPrice),
        place: CostedPlace<'_>,
        results: u64,
    ) -> Result<(), Failure> {
        let settings = &place.plan.settings;
        let is_free = *price == ModelPrice::FREE;
        let takes_media = module.manifest.modalities.declared && self.images > 0;
        if takes_media && price.image_tokens.is_none() {
            return Err(no_bound("an image"));
        }
        if crate::stages::media::may_produce(module, provider) && !is_free {
            return Err(no_bound("an image from the model"));
        }
        let images =
            if takes_media { self.images.saturating_mul(price.image_tokens.unwrap_or(0)) } else { 0 };
        let (tools, tool_rounds) = self.tools(module, provider, price.vocabulary);
        let first = self.request(module, (provider, price), tools, place.input_bytes, results);
        let written = output_size(settings, module, price, self.script)
            .usual
            .saturating_add(thought_tokens(thinking(settings, module)));
        let turn = answer_size(module, settings.max_output_tokens, self.script)
            .usual
            .saturating_mul(BYTES_PER_TOKEN)
            .saturating_add(TOOL_ROUND_BYTES);
        for call in 0..=tool_rounds.saturating_add(u64::from(settings.reasks())) {
            let (rounds, reasked) = (call.min(tool_rounds), call.saturating_sub(tool_rounds));
            let more = turn.saturating_mul(rounds).saturating_add(REASK_BYTES.saturating_mul(reasked));
            let read = first.input.saturating_add(images).saturating_add(more);
            cost.calls += 1;
            cost.input_tokens = cost.input_tokens.saturating_add(read);
            cost.output_tokens = cost.output_tokens.saturating_add(written);
            if !is_free {
                cost.cost = cost.cost.plus(price.worst(read, first.stable, written));
            }
        }
        Ok(())
    }

    /// The size of the first request of a module, with an input and results of this length.
    fn request(
        &self,
        module: &Module,
        (provider, price): (&dyn Provider, &ModelPrice),
        tools: u64,
        input_bytes: u64,
        results: u64,
    ) -> RequestSize {
        let tokens = |text: &str| most_tokens(text, price.vocabulary);
        // A module that gets the whole input gets this text; of any other input only the length is known.
        let whole = self.text.filter(|text| text.len() as u64 == input_bytes);
        let size = prompt::size(module, whole.map_or(input_bytes, tokens), results, &tokens);
        let schema = provider.target().map(|target| tokens(module.provider_schema(target).text()));
        let turns = 2 + 2 * (module.examples.len() as u64 + self.images);
        let around =
            service_tokens(schema.is_some(), tools > 0).saturating_add(turns.saturating_mul(TURN_TOKENS));
        let stable =
            size.stable.saturating_add(schema.unwrap_or(0)).saturating_add(tools).saturating_add(around);
        RequestSize { input: stable.saturating_add(size.varying), stable }
    }

    /// The tokens of the tools that a model may be offered, and the number of tool rounds.
    fn tools(&self, module: &Module, provider: &dyn Provider, vocabulary: BilledVocabulary) -> (u64, u64) {
        let offered = offered_tools(&Lineage::default(), self.host, provider, module);
        let rounds = if offered.is_empty() { 0 } else { TOOL_ROUNDS as u64 };
        (offered.iter().map(|tool| tool_tokens(tool, vocabulary)).sum(), rounds)
    }

    /// The models that may be asked for a module.
    fn rungs<'p>(&self, module: &Module, place: CostedPlace<'p>) -> Vec<&'p dyn Provider> {
        let is_local =
            self.host.is_local_only(|name| name == module.manifest.name || place.path.contains(&name));
        place
            .plan
            .models
            .all()
            .map(AsRef::as_ref)
            .filter(|provider| !is_local || provider.is_local())
            .filter(|provider| requirements::check(&module.manifest, *provider).is_ok())
            .collect()
    }

    /// The models and options of a module at a position.
    fn plan_of(&self, module: &Module, place: CostedPlace<'_>) -> RunPlan {
        if place.path.is_empty() {
            return place.plan.clone();
        }
        self.host.decide_part(&module.manifest.name, place.plan, false)
    }

    /// The assumed length of a module's envelope in another prompt.
    fn answer_bytes(&self, module: &Module, plan: &RunPlan) -> u64 {
        let size = answer_size(module, plan.settings.max_output_tokens, self.script);
        size.usual.saturating_mul(BYTES_PER_TOKEN).saturating_add(META_BYTES)
    }
}

/// The longest input of a part. If no path contains another, the paths take disjoint parts of a source, so
/// together they are no longer than the source.
fn part_input_bytes(plan: &CompositionPlan, index: usize, input_bytes: u64, said: &[u64]) -> u64 {
    let Some(part) = plan.parts.get(index).filter(|part| !part.fed_by.is_empty()) else { return input_bytes };
    let steps = part.fed_by.iter().filter_map(|step| plan.steps.get(*step));
    let steps = steps.filter(|step| step.to.contains(&FlowTarget::Part(index)));
    let of_step = |step: &cognitive_contract::compose::plan::FlowStep| {
        let source = |source: &FlowSource| match source {
            FlowSource::Input => input_bytes,
            FlowSource::Part(place) => said.get(*place).copied().unwrap_or(0),
        };
        let sources: u64 = step.from.iter().map(source).fold(0, u64::saturating_add);
        let Some(mapping) = &step.mapping else { return sources };
        let paths: Vec<(usize, String)> =
            mapping.paths().map(|(member, path)| (member.len(), path.to_string())).collect();
        let within = |path: &str| paths.iter().filter(|(_, other)| path.starts_with(other.as_str())).count();
        let often = paths.iter().map(|(_, path)| within(path)).max().unwrap_or(1);
        let names: usize = paths.iter().map(|(name, _)| name + 4).sum();
        sources.saturating_mul(often as u64).saturating_add(names as u64)
    };
    steps.map(of_step).fold(META_BYTES, u64::saturating_add)
}
