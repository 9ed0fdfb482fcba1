//! The amount that a run under a limit has spent, and the amount that its requests in flight may still cost. Every
//! request passes here before it leaves; concurrent parts share one meter. Refuses a request whose worst case does
//! not fit.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cognitive_contract::Failure;
use cognitive_contract::lock::Lock;
use cognitive_contract::money::Money;
use cognitive_contract::ports::{Attempt, Usage};
use cognitive_ports::prices::ModelPrice;
use cognitive_ports::spending::{BudgetShort, DayBudget, MAX_COST, SpendingEntry, SpendingLedger, day_of};

use super::WritingScript;
use super::limit::{limit_reached, no_books};
use crate::clock::Clock;
use crate::run::Run;

/// The time beyond the call timeout for which a silent run keeps its reservation. The reservation of a dead process
/// would otherwise block the budget for the rest of the day.
const LEASE: Duration = Duration::from_mins(5);
/// A request takes at most one in this many parts of a shared budget for a longer answer. Otherwise the first rows of a
/// batch would leave nothing for the next ones, and run one after the other.
const SHARE: u64 = 8;

/// The cost meter of a root run and all of its parts.
pub(crate) struct CostMeter {
    limit: Option<Money>,
    /// The assumed script of the run's answers.
    pub(crate) script: WritingScript,
    state: Lock<MeterTotals>,
    books: Option<DayEntry>,
}

/// The amounts of a meter.
#[derive(Debug, Clone, Copy, Default)]
struct MeterTotals {
    /// The cost of finished requests.
    settled: Money,
    /// The worst-case cost of requests in flight.
    held: Money,
    /// The cost that the ceiling counts for requests still to come.
    planned: Money,
    /// The amount that the ledger reserves for the run.
    reserved: Money,
}

/// The run's entry in the ledger of the day.
struct DayEntry {
    ledger: Arc<dyn SpendingLedger>,
    budget: DayBudget,
    clock: Clock,
    id: String,
    day: u64,
    key: String,
    lease: Duration,
}

impl DayEntry {
    fn cover(&self, reserved: Money, sent: Money) -> Result<Result<(), BudgetShort>, String> {
        let now = self.clock.now();
        let until = now.checked_add(self.lease).unwrap_or(now);
        let entry = SpendingEntry {
            id: self.id.clone(),
            day: self.day,
            key: self.key.clone(),
            reserved,
            sent,
            until,
        };
        self.ledger.cover(&entry, &self.budget, now)
    }

    /// The amount that no run has reserved.
    fn remaining_amount(&self) -> Result<Money, String> {
        let (all, of_key) = self.ledger.counted_spending(self.day, &self.key, self.clock.now())?;
        let DayBudget { per_day, per_key } = self.budget;
        let left = [(per_day, all), (per_key, of_key)];
        Ok(left
            .iter()
            .filter_map(|(limit, counted)| Some(limit.as_ref()?.minus(*counted)))
            .min()
            .unwrap_or(Money::MAX))
    }
}

impl CostMeter {
    /// A meter for a run that can cost up to `ceiling`. The inner error means that a budget has no room for it.
    pub(crate) fn begin(
        run: &Run<'_, '_>,
        ceiling: Money,
        script: WritingScript,
    ) -> Result<Self, Result<BudgetShort, Failure>> {
        let (host, settings) = (run.host, &run.plan.settings);
        let state = Lock::new(MeterTotals { planned: ceiling, ..MeterTotals::default() });
        let mut meter = Self { limit: settings.max_cost, script, state, books: None };
        let Some(spending) = host.spending.as_ref().filter(|spending| spending.budget.is_set()) else {
            return Ok(meter);
        };
        let books = DayEntry {
            ledger: Arc::clone(&spending.ledger),
            budget: spending.budget,
            clock: host.clock.clone(),
            id: uuid::Uuid::new_v4().simple().to_string(),
            day: day_of(host.clock.now()),
            key: run.options.key.clone().unwrap_or_default(),
            lease: settings.call_timeout().saturating_add(LEASE),
        };
        match books.cover(ceiling, Money::ZERO) {
            Ok(Ok(())) => {
                meter.state.lock().reserved = ceiling;
                meter.books = Some(books);
                Ok(meter)
            }
            Ok(Err(short)) => Err(Ok(short)),
            Err(reason) => Err(Err(no_books(&reason))),
        }
    }

    /// Admits a request that costs up to `usual`, and may cost up to `most` if there is room for it. Returns the amount
    /// that it may cost, or why it may not leave.
    fn hold(&self, usual: Money, most: Money) -> Result<Money, Failure> {
        let mut state = self.state.lock();
        let total = state.settled.plus(state.held).plus(usual);
        let planned = state.planned.minus(usual);
        let mut more = most.minus(usual);
        if let Some(limit) = self.limit {
            if total > limit {
                return Err(limit_reached(total, limit, MAX_COST));
            }
            more = more.min(limit.minus(total).minus(planned));
        }
        if let Some(books) = &self.books {
            let cover = |reserved, sent| books.cover(reserved, sent).map_err(|reason| no_books(&reason));
            if more > Money::ZERO {
                let left = books.remaining_amount().map_err(|reason| no_books(&reason))?;
                more = more.min(Money::from_pico(left.pico() / SHARE));
            }
            let (roomy, sent) = (state.reserved.max(total.plus(more).plus(planned)), total.plus(more));
            if more > Money::ZERO && cover(roomy, sent)?.is_ok() {
                state.reserved = roomy;
            } else {
                // Another run took the room. The usual amount is reserved already.
                more = Money::ZERO;
                let reserved = state.reserved.max(total);
                cover(reserved, total)?.map_err(|short| limit_reached(total, short.limit, short.budget))?;
                state.reserved = reserved;
            }
        }
        let held = usual.plus(more);
        state.held = state.held.plus(held);
        state.planned = planned;
        Ok(held)
    }

    /// Adds the cost of a part that ran before this process started.
    pub(crate) fn add(&self, cost: Money) {
        self.settle(Money::ZERO, cost);
    }

    /// Replaces the worst case of an admitted request by its actual cost, and returns the difference to a shared budget
    /// if the run goes on.
    fn settle(&self, worst: Money, cost: Money) {
        let mut state = self.state.lock();
        state.held = state.held.minus(worst);
        state.settled = state.settled.plus(cost);
        let sent = state.settled.plus(state.held);
        let needed = sent.plus(state.planned);
        if let Some(books) =
            self.books.as_ref().filter(|_| state.planned > Money::ZERO && needed < state.reserved)
            && books.cover(needed, sent) == Ok(Ok(()))
        {
            state.reserved = needed;
        }
    }
}

impl Drop for CostMeter {
    /// Settles the entry however the run ended. Requests that were in flight may have cost their worst case.
    fn drop(&mut self) {
        let MeterTotals { settled, held, .. } = *self.state.lock();
        if let Some(books) = &self.books {
            // If the ledger cannot be written now, it releases the rest when the lease of the entry expires.
            let _ = books.ledger.settle(&books.id, settled.plus(held));
        }
    }
}

/// The cost of one request and its retries, each of which can cost the same.
#[derive(Clone)]
pub(crate) struct CallCost {
    meter: Arc<CostMeter>,
    price: ModelPrice,
    /// Output tokens and worst case: what the ceiling counts, and what the request may have if there is room.
    usual: (u64, Money),
    most: (u64, Money),
    /// The output tokens and the worst case that were admitted.
    held: Arc<OnceLock<(u64, Money)>>,
}

impl CallCost {
    pub(super) fn new(
        meter: Arc<CostMeter>,
        price: ModelPrice,
        usual: (u64, Money),
        most: (u64, Money),
    ) -> Self {
        Self { meter, price, usual, most, held: Arc::default() }
    }

    /// Admits one request, or returns why it may not leave. Retries are the same request, and cost the same.
    pub(crate) fn hold(&self) -> Result<(), Failure> {
        if let Some((_, worst)) = self.held.get() {
            return self.meter.hold(*worst, *worst).map(|_| ());
        }
        let worst = self.meter.hold(self.usual.1, self.most.1)?;
        self.held.get_or_init(|| (self.tokens(worst), worst));
        Ok(())
    }

    /// The output tokens that the request may have, once it is admitted.
    pub(crate) fn output_tokens(&self) -> Option<u64> {
        self.held.get().map(|(tokens, _)| *tokens)
    }

    /// The output tokens that an amount between the usual and the highest one pays.
    fn tokens(&self, worst: Money) -> u64 {
        let (tokens, cost) = (self.most.0 - self.usual.0, self.most.1.minus(self.usual.1).pico());
        if worst >= self.most.1 {
            return self.most.0;
        }
        let more =
            u128::from(worst.minus(self.usual.1).pico()) * u128::from(tokens) / u128::from(cost.max(1));
        self.usual.0.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    fn worst(&self) -> Money {
        self.held.get().map_or(self.usual.1, |(_, worst)| *worst)
    }

    /// Settles a failed try. A request that the service refused costs nothing; a broken reply without a token count
    /// of the whole may have cost the worst case.
    pub(crate) fn settle_failure(&self, attempt: &Attempt) {
        let refused = attempt.status.is_some_and(|status| !(200..300).contains(&status));
        let uncounted = if refused { Money::ZERO } else { self.worst() };
        let usage = attempt.usage.filter(|_| !attempt.counted_midway);
        self.meter.settle(self.worst(), self.cost(usage, uncounted));
    }

    /// Settles a try that gave an answer. Without a token count it may have cost the worst case.
    pub(crate) fn settle_answer(&self, usage: Option<Usage>) {
        self.meter.settle(self.worst(), self.cost(usage, self.worst()));
    }

    fn cost(&self, usage: Option<Usage>, uncounted: Money) -> Money {
        usage.map_or(uncounted, |usage| self.price.cost(&usage))
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::ports::DecodeMode;
    use cognitive_ports::prices::TokenRates;

    use super::*;

    fn meter(limit: u64) -> CostMeter {
        let script = WritingScript::Latin;
        CostMeter { limit: Some(Money::from_pico(limit)), script, state: Lock::default(), books: None }
    }

    #[test]
    fn what_is_under_way_counts_until_it_is_settled() {
        let (meter, pico) = (meter(10), Money::from_pico);
        let hold = |usual, most| meter.hold(pico(usual), pico(most));
        hold(6, 6).unwrap();
        let refused = hold(6, 6).unwrap_err();
        assert_eq!(refused.number(), "E4101");
        meter.settle(pico(6), pico(4));
        hold(6, 6).unwrap();
        assert!(hold(1, 1).is_err());
    }

    #[test]
    fn a_request_takes_the_room_that_no_planned_request_needs() {
        let (meter, pico) = (meter(10), Money::from_pico);
        meter.state.lock().planned = pico(5);
        assert_eq!(meter.hold(pico(2), pico(9)).unwrap(), pico(7), "three are left for the others");
        assert_eq!(meter.hold(pico(2), pico(9)).unwrap(), pico(2));
        meter.settle(pico(7), pico(1));
        assert_eq!(meter.hold(pico(1), pico(3)).unwrap(), pico(3));
    }

    #[test]
    fn output_tokens_are_those_that_the_admitted_amount_pays() {
        let meter = Arc::new(meter(170));
        let pico = Money::from_pico;
        let cost = CallCost::new(meter, ModelPrice::FREE, (10, pico(120)), (60, pico(620)));
        cost.hold().unwrap();
        assert_eq!((cost.output_tokens(), cost.worst()), (Some(15), pico(170)));
    }

    #[test]
    fn a_reply_that_was_counted_only_midway_costs_its_worst_case() {
        let pico = Money::from_pico;
        let rates = TokenRates { input: pico(1), output: pico(1), ..TokenRates::default() };
        let price = ModelPrice { rates, ..ModelPrice::default() };
        for (midway, cost) in [(true, 900), (false, 11)] {
            let worst = (900, pico(900));
            let call = CallCost::new(Arc::new(meter(1_000)), price, worst, worst);
            call.hold().unwrap();
            let mut attempt = Attempt::new(DecodeMode::Prompt, "broke off", Duration::ZERO);
            (attempt.status, attempt.usage) = (Some(200), Some(Usage::new(10, 1)));
            attempt.counted_midway = midway;
            call.settle_failure(&attempt);
            assert_eq!(call.meter.state.lock().settled, pico(cost), "{midway}");
        }
    }
}
