//! The only place that admits or refuses a run under a cost limit (E4101). Asks no model.

use std::sync::Arc;

use cognitive_contract::code::Blame;
use cognitive_contract::money::{CURRENCY, Money};
use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_ports::spending::{BudgetShort, MAX_COST};
use serde_json::{Value, json};

use super::WritingScript;
use super::ceiling::Estimate;
use super::meter::CostMeter;
use crate::run::Run;
use crate::stages::input::ValidInput;

/// Starts the meter of a root run that has a limit, if the worst case fits. Parts and later rounds use the same
/// meter.
pub(crate) fn admit(run: &Run<'_, '_>, input: &ValidInput) -> Result<(), Failure> {
    let (host, plan) = (run.host, run.plan);
    let has_budget = host.spending.as_ref().is_some_and(|spending| spending.budget.is_set());
    if run.lineage.meter().is_some() || (plan.settings.max_cost.is_none() && !has_budget) {
        return Ok(());
    }
    let given = [serde_json::to_string(input.value()), serde_json::to_string(input.context())];
    let given = given.into_iter().map(Result::unwrap_or_default).collect::<String>();
    let script = WritingScript::detect([given.as_str()]);
    let estimate = Estimate::new(host, plan).with_media(&run.receipt.media)?.with_text(&given);
    let ceiling = estimate.rounds(run.module, given.len() as u64, run.lineage.rounds)?;
    let cost = ceiling.cost;
    if let Some(limit) = plan.settings.max_cost.filter(|limit| cost > *limit) {
        return Err(ceiling_too_high(cost, limit, MAX_COST)
            .with_detail("calls", json!(ceiling.calls))
            .suggest(format!(
                "Allow it with `--max-cost {cost}`, send less, or choose a cheaper model with `--model`"
            ))
            .suggest_remotely("Send less, or choose a cheaper model"));
    }
    let meter = CostMeter::begin(run, cost, script).map_err(|error| match error {
        Err(failure) => failure,
        // Runs that share a limit, such as those of an evaluation.
        Ok(short) if short.budget == MAX_COST => {
            ceiling_too_high(cost, short.limit, short.budget).with_detail("left", money(short.left)).suggest(
                "Raise `--max-cost`, which is the limit of all runs together; earlier runs have used it up",
            )
        }
        Ok(short) => out_of_budget(cost, &short),
    })?;
    run.lineage.set_meter(Arc::new(meter));
    Ok(())
}

fn money(amount: Money) -> Value {
    Value::Number(amount.to_number())
}

fn failure(message: String) -> Failure {
    Failure::new(ErrorCode::CostLimitExceeded, message)
}

/// The failure of a run that is not admitted.
fn ceiling_too_high(ceiling: Money, limit: Money, from: &str) -> Failure {
    let message = format!("the run could cost {ceiling} {CURRENCY}, the limit is: {limit}");
    with_cost_details(failure(message), ceiling, limit, from)
}

/// The time after which a run may fit that only the reservations of others keep out, in seconds. Runs take seconds.
const RESERVED_PAUSE: u64 = 5;

/// The failure of a run that a budget of the operator has no room for. The caller sent nothing wrong.
fn out_of_budget(ceiling: Money, short: &BudgetShort) -> Failure {
    let BudgetShort { budget, limit, left, spent, reserved } = *short;
    let message = format!(
        "the run could cost {ceiling} {CURRENCY}; of the budget `{budget}` of {limit} {CURRENCY}, {spent} are spent and \
         {reserved} are reserved by runs in flight"
    );
    let failure = with_cost_details(failure(message), ceiling, limit, budget)
        .with_blame(Blame::Runtime)
        .with_detail("left", money(left))
        .with_detail("spent", money(spent))
        .with_detail("reserved", money(reserved));
    if short.may_fit_later(ceiling) {
        return failure
            .with_recoverable(true)
            .with_detail("kind", json!("reserved"))
            .with_detail("retry_after_seconds", json!(RESERVED_PAUSE))
            .suggest("Try again when runs in flight have ended, or lower their maximum cost with `maxLength` or `--max-output-tokens`")
            .suggest_remotely("Try again in some seconds, when runs in flight have ended");
    }
    if ceiling > limit {
        return failure
            .with_recoverable(false)
            .suggest("Send less, choose a cheaper model, or raise `budget` in the configuration")
            .suggest_remotely("Send less, or choose a cheaper model");
    }
    failure
        .with_recoverable(true)
        .suggest("Wait for the next day (UTC), or raise `budget` in the configuration")
        .suggest_remotely("Try again on the next day (UTC)")
}

/// The failure of a run that cannot continue.
pub(super) fn limit_reached(total: Money, limit: Money, from: &str) -> Failure {
    let message =
        format!("the next model call could bring the cost to {total} {CURRENCY}, the limit is: {limit}");
    with_cost_details(failure(message), total, limit, from)
        .suggest("Raise the limit: a part passed on more text than the estimate allows for")
}

fn with_cost_details(failure: Failure, ceiling: Money, limit: Money, from: &str) -> Failure {
    failure
        .with_detail("ceiling", money(ceiling))
        .with_detail("limit", money(limit))
        .with_detail("limit_from", json!(from))
        .with_detail("currency", json!(CURRENCY))
}

/// The failure if the model has no price, so the cost of the run is unknown.
pub(super) fn no_price(provider: &dyn Provider) -> Failure {
    let model = provider.destination().unwrap_or_default().model_label(provider.name());
    failure(format!("cannot enforce the cost limit: the price of the model is unknown: `{model}`"))
        .with_detail("kind", json!("no_price"))
        .with_detail("model", json!(model))
        .suggest(format!(
            "Add a line for `{model}` to a price table and name the table with `prices` in the \
             configuration; `cogn prices` shows the known prices"
        ))
        .suggest_remotely("Ask the server operator to add a price for it")
}

/// The failure if the token count of something is unknown.
pub(super) fn no_bound(what: &str) -> Failure {
    failure(format!("cannot enforce the cost limit: the token count is unknown: {what}"))
        .with_detail("kind", json!("no_bound"))
        .suggest("Run it without `max_cost` and `budget`, or choose a model whose price has `image_tokens`")
}

/// The failure if the spending ledger is unavailable, so nothing is spent.
pub(super) fn no_books(reason: &str) -> Failure {
    failure(format!("no model was called, because the budget cannot be read: {reason}"))
        .with_detail("kind", json!("no_books"))
        .suggest(
            "Make the database writable (`cogn doctor` shows its path), or remove `budget` from the \
             configuration",
        )
}
