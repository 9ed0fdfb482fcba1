//! The cost limit of a run: its worst case before the first call, and its actual cost while it runs.
//!
//! A run under a limit (`max_cost`, or an operator's budget) starts only if its [`CostCeiling`] is within the limit.
//! The ceiling is a sum over all calls that the module, its parts, rounds, tools, repair prompts and fallback models
//! allow. The input of a call has as many tokens as its texts can have (`text_tokens`), plus what a service adds to
//! every request. Its output has as many tokens as the contract's bounds allow, or a usual number if the contract has
//! no bounds or the model thinks.
//!
//! The ceiling therefore is near the real cost, and it is enforced: the output limit is sent with each request, and the
//! `CostMeter` admits a request only if its own worst case fits into the remaining amount. So no run costs more than
//! its limit, whatever a model writes. Where the limit has room beyond the calls still to come, a request takes some
//! of it for a longer answer, and returns it as soon as its usage is known.
//!
//! Assumptions about services: they bill no more input than the texts that they receive can have, plus
//! `service_tokens`, plus `TURN_TOKENS` for each turn. They respect the output limit that they receive. A request
//! that they refuse with an error status costs nothing. A try that broke off without a token count counts with its
//! worst case.

mod answer_size;
mod ceiling;
mod limit;
mod meter;
mod text_tokens;

use cognitive_contract::money::Money;
use cognitive_contract::ports::{ModelCall, Provider, Usage};
use cognitive_contract::thinking::LEAST_THOUGHT;
use cognitive_contract::tools::{ToolRound, ToolSpec};
use cognitive_contract::{Module, RunSettings};
use cognitive_ports::prices::{BilledVocabulary, ModelPrice};

pub(crate) use self::answer_size::{AnswerSize, WritingScript, answer_size};
pub use self::ceiling::{CostCeiling, PartCost, ceiling, ceiling_for_text};
pub(crate) use self::limit::admit;
pub(crate) use self::meter::{CallCost, CostMeter};
pub use self::text_tokens::most_tokens;
use crate::host::Host;
use crate::run::Run;
use crate::stages::call::thinking;

/// The tokens that a service adds to a request for roles, formats and tools. The highest documented number is 675,
/// for tools.
pub(crate) fn service_tokens(has_schema: bool, has_tools: bool) -> u64 {
    64 + if has_schema { 96 } else { 0 } + if has_tools { 768 } else { 0 }
}

/// The tokens around each turn; services that document it need four.
pub(crate) const TURN_TOKENS: u64 = 8;
/// The thinking tokens that a ceiling counts for a model that thinks without being asked.
const USUAL_THOUGHT_TOKENS: u64 = 1024;
/// The assumed length of a token of a model's answer, in bytes, if the answer goes into another prompt.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// Returns the price of a provider's model from the price table. A model on this machine without an entry is free;
/// `None` if the price is unknown.
#[must_use]
pub fn price_of(host: &Host, provider: &dyn Provider) -> Option<ModelPrice> {
    let model = provider.destination().and_then(|to| to.model).unwrap_or_default();
    let listed = host.prices.price(provider.name(), &model);
    listed.or_else(|| provider.is_local().then_some(ModelPrice::FREE))
}

/// Returns usage with its cost, for a call of the model that is asked now.
pub(crate) fn with_cost(host: &Host, provider: &dyn Provider, usage: Usage) -> Usage {
    // A saved reply was paid for when it was recorded.
    let asks = provider.destination().is_some();
    usage.with_cost(price_of(host, provider).filter(|_| asks).map(|price| price.cost(&usage)))
}

/// The longest thought in tokens for a requested thinking budget: not every service accepts a short one.
fn thought_tokens(wanted: Option<u32>) -> u64 {
    wanted.filter(|tokens| *tokens > 0).map_or(0, |tokens| u64::from(tokens.max(LEAST_THOUGHT)))
}

/// The output of each request of a run under a limit. A model that thinks without being asked needs room for it.
fn output_size(
    settings: &RunSettings,
    module: &Module,
    price: &ModelPrice,
    script: WritingScript,
) -> AnswerSize {
    let AnswerSize { usual, most } = answer_size(module, settings.max_output_tokens, script);
    let unasked = if thinking(settings, module).is_none() { price.thinking_tokens } else { 0 };
    AnswerSize {
        usual: usual.saturating_add(unasked.min(USUAL_THOUGHT_TOKENS)),
        most: most.saturating_add(unasked),
    }
}

/// Sets the output limit of a call, if it costs money and the run has a limit.
pub(crate) fn hold_to_limit(run: &Run<'_, '_>, call: &mut ModelCall) {
    let Some(meter) = run.lineage.meter() else { return };
    let Some(price) = price_of(run.host, run.provider).filter(|price| *price != ModelPrice::FREE) else {
        return;
    };
    call.max_output_tokens = Some(output_size(&run.plan.settings, run.module, &price, meter.script).usual);
    call.keeps_limit = true;
}

/// The cost of a request, if the run has a limit.
pub(crate) fn call_cost(run: &Run<'_, '_>, call: &ModelCall) -> Option<CallCost> {
    let meter = run.lineage.meter()?;
    let price = price_of(run.host, run.provider)?;
    let usual = call.max_output_tokens.unwrap_or(u64::MAX);
    let most = output_size(&run.plan.settings, run.module, &price, meter.script).most.max(usual);
    let size = RequestSize::for_call(call, price.vocabulary);
    // Media have a bound only if the price table has one; without it the run was refused.
    let media = price.image_tokens.unwrap_or(0).saturating_mul(call.media.len() as u64);
    let is_free = price == ModelPrice::FREE;
    let worst = |output: u64| {
        if is_free {
            return Money::ZERO;
        }
        let output = output.saturating_add(thought_tokens(call.thinking));
        price.worst(size.input.saturating_add(media), size.stable, output)
    };
    Some(CallCost::new(meter, price, (usual, worst(usual)), (most, worst(most))))
}

/// The call with the output limit that its cost was reserved for, if that differs.
pub(crate) fn with_room(call: &ModelCall, cost: Option<&CallCost>) -> Option<ModelCall> {
    let tokens =
        cost?.output_tokens().filter(|tokens| call.max_output_tokens.is_some_and(|set| set != *tokens))?;
    let mut call = call.clone();
    call.max_output_tokens = Some(tokens);
    Some(call)
}

/// The most tokens that a request can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RequestSize {
    /// The whole request.
    pub(crate) input: u64,
    /// The part that is the same in every call of the module, so that a service may cache it.
    pub(crate) stable: u64,
}

impl RequestSize {
    fn for_call(call: &ModelCall, vocabulary: BilledVocabulary) -> Self {
        let tokens = |text: &str| most_tokens(text, vocabulary);
        let examples: u64 = call.examples.iter().map(|each| tokens(&each.input) + tokens(&each.answer)).sum();
        let tools: u64 = call.tools.iter().map(|tool| tool_tokens(tool, vocabulary)).sum();
        let schema = call.schema.as_ref().map_or(0, |schema| tokens(schema.text()));
        let told: u64 = call.rounds.iter().map(|round| round_tokens(round, vocabulary)).sum();
        let turns = 2 + 2 * (call.examples.len() + call.rounds.len() + call.media.len()) as u64;
        let around = service_tokens(call.schema.is_some(), !call.tools.is_empty()) + turns * TURN_TOKENS;
        let stable = tokens(&call.instructions) + examples + tools + schema + around;
        Self { input: stable + tokens(&call.input) + told, stable }
    }
}

/// The tokens of a tool as it is offered.
fn tool_tokens(tool: &ToolSpec, vocabulary: BilledVocabulary) -> u64 {
    let tokens = |text: &str| most_tokens(text, vocabulary);
    tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string()) + 2 * TURN_TOKENS
}

/// The tokens of a model's tool calls, and of the results.
fn round_tokens(round: &ToolRound, vocabulary: BilledVocabulary) -> u64 {
    let tokens = |text: &str| most_tokens(text, vocabulary);
    let told = round.calls.iter().map(|(call, reply)| {
        2 * (tokens(&call.id) + tokens(&call.name)) + tokens(&call.arguments) + tokens(&reply.content)
    });
    tokens(&round.turn.to_string()) + told.sum::<u64>()
}
