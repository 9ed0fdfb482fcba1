//! The amount that a run under a limit has spent, and the amount that its requests in flight may still cost. Every
//! request passes here before it leaves; concurrent parts share one meter. Refuses a request whose worst case does
//! not fit.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::Failure;
use cognitive_contract::lock::Lock;
use cognitive_contract::money::Money;
use cognitive_contract::ports::{Attempt, Usage};
use cognitive_ports::prices::ModelPrice;
use cognitive_ports::spending::{BudgetShort, DayBudget, MAX_COST, SpendingEntry, SpendingLedger, day_of};

use super::WritingScript;
use super::limit::{no_books, too_dear_now};
use crate::clock::Clock;
use crate::run::Run;

/// The time beyond the call timeout for which a silent run keeps its reservation. The reservation of a dead process
/// would otherwise block the budget for the rest of the day.
const LEASE: Duration = Duration::from_mins(5);

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
}

impl CostMeter {
    /// A meter for a run that can cost up to `ceiling`. The inner error means that a budget has no room for it.
    pub(crate) fn begin(
        run: &Run<'_, '_>,
        ceiling: Money,
        script: WritingScript,
    ) -> Result<Self, Result<BudgetShort, Failure>> {
        let (host, settings) = (run.host, &run.plan.settings);
        let mut meter = Self { limit: settings.max_cost, script, state: Lock::default(), books: None };
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

    /// Admits a request that can cost up to `worst`, or returns why it may not leave.
    fn hold(&self, worst: Money) -> Result<(), Failure> {
        let mut state = self.state.lock();
        let total = state.settled.plus(state.held).plus(worst);
        if let Some(limit) = self.limit.filter(|limit| total > *limit) {
            return Err(too_dear_now(total, limit, MAX_COST));
        }
        if let Some(books) = &self.books {
            let reserved = state.reserved.max(total);
            match books.cover(reserved, total) {
                Ok(Ok(())) => state.reserved = reserved,
                Ok(Err(short)) => return Err(too_dear_now(total, short.limit, short.budget)),
                Err(reason) => return Err(no_books(&reason)),
            }
        }
        state.held = state.held.plus(worst);
        Ok(())
    }

    /// Adds the cost of a part that ran before this process started.
    pub(crate) fn add(&self, cost: Money) {
        self.settle(Money::ZERO, cost);
    }

    /// Replaces the worst case of an admitted request by its actual cost.
    fn settle(&self, worst: Money, cost: Money) {
        let mut state = self.state.lock();
        state.held = state.held.minus(worst);
        state.settled = state.settled.plus(cost);
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
    pub(crate) meter: Arc<CostMeter>,
    pub(crate) price: ModelPrice,
    pub(crate) worst: Money,
}

impl CallCost {
    /// Admits one request, or returns why it may not leave.
    pub(crate) fn hold(&self) -> Result<(), Failure> {
        self.meter.hold(self.worst)
    }

    /// Settles a failed try. A request that the service refused costs nothing; a broken reply without a token count
    /// may have cost the worst case.
    pub(crate) fn failed(&self, attempt: &Attempt) {
        let refused = attempt.status.is_some_and(|status| !(200..300).contains(&status));
        let uncounted = if refused { Money::ZERO } else { self.worst };
        self.meter.settle(self.worst, self.cost(attempt.usage, uncounted));
    }

    /// Settles a try that gave an answer. Without a token count it may have cost the worst case.
    pub(crate) fn answered(&self, usage: Option<Usage>) {
        self.meter.settle(self.worst, self.cost(usage, self.worst));
    }

    fn cost(&self, usage: Option<Usage>, uncounted: Money) -> Money {
        usage.map_or(uncounted, |usage| self.price.cost(&usage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(limit: u64) -> CostMeter {
        let script = WritingScript::Latin;
        CostMeter { limit: Some(Money::from_pico(limit)), script, state: Lock::default(), books: None }
    }

    #[test]
    fn what_is_under_way_counts_until_it_is_settled() {
        let (meter, pico) = (meter(10), Money::from_pico);
        meter.hold(pico(6)).unwrap();
        let refused = meter.hold(pico(6)).unwrap_err();
        assert_eq!(refused.number(), "E4101");
        meter.settle(pico(6), pico(4));
        meter.hold(pico(6)).unwrap();
        assert!(meter.hold(pico(1)).is_err());
    }
}
