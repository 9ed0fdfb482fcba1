//! Daily budgets: the operator's limits, and the port to the ledger. A run reserves its maximum cost at the
//! start and settles the real cost at the end. If a run never ends, its reservation expires, and only the
//! requests it may have sent still count.

use std::time::SystemTime;

use cognitive_contract::money::Money;

/// Spending limits per day, in UTC. Unset limits do not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayBudget {
    /// The limit for all callers together.
    pub per_day: Option<Money>,
    /// The limit for each API key of the server. Callers without a key share one budget.
    pub per_key: Option<Money>,
}

/// Returns the day of a time, counted from 1970 in UTC.
#[must_use]
pub fn day_of(now: SystemTime) -> u64 {
    now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400)
}

/// The name of the limit that a caller sets.
pub const MAX_COST: &str = "max_cost";

/// The reservation of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendingEntry {
    /// A unique id of the run.
    pub id: String,
    /// The day on which the run started.
    pub day: u64,
    /// The name of the caller's API key; empty for callers without one.
    pub key: String,
    /// The maximum cost of the run.
    pub reserved: Money,
    /// The maximum cost of the requests sent so far.
    pub sent: Money,
    /// The expiry of the unsent part of the reservation. A running run renews it before.
    pub until: SystemTime,
}

/// A budget that is too small for the maximum cost of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetShort {
    /// The budget: `per_day`, `per_key`, or [`MAX_COST`] where several runs share one.
    pub budget: &'static str,
    /// The daily limit.
    pub limit: Money,
    /// The amount left today.
    pub left: Money,
    /// The amount spent today.
    pub spent: Money,
    /// The amount that runs in flight have reserved. What they do not need becomes free when they end.
    pub reserved: Money,
}

/// The amounts counted against a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountedSpending {
    /// The cost of runs that have ended.
    pub spent: Money,
    /// The reservations of runs in flight.
    pub reserved: Money,
}

impl From<Money> for CountedSpending {
    fn from(spent: Money) -> Self {
        Self { spent, reserved: Money::ZERO }
    }
}

impl CountedSpending {
    /// Returns both amounts together.
    #[must_use]
    pub fn total(self) -> Money {
        self.spent.plus(self.reserved)
    }
}

impl BudgetShort {
    /// Returns whether an amount would fit if runs in flight needed nothing of their reservations.
    #[must_use]
    pub fn may_fit_later(&self, amount: Money) -> bool {
        amount <= self.limit.minus(self.spent)
    }
}

/// A ledger of spending, shared by all processes that use a budget.
pub trait SpendingLedger: Send + Sync {
    /// Adds or replaces the entry with this id, if the budget allows it. Check and write are atomic, so that
    /// two runs never reserve the same money. The outer error means that the ledger failed.
    fn cover(
        &self,
        entry: &SpendingEntry,
        budget: &DayBudget,
        now: SystemTime,
    ) -> Result<Result<(), BudgetShort>, String>;

    /// Records the real cost of a run and ends its reservation.
    fn settle(&self, id: &str, spent: Money) -> Result<(), String>;

    /// Returns the amounts counted on a day, in total and for one key.
    fn counted_spending(&self, day: u64, key: &str, now: SystemTime) -> Result<(Money, Money), String>;
}

impl DayBudget {
    /// Returns whether any limit is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.per_day.is_some() || self.per_key.is_some()
    }

    /// Checks whether an amount fits, given the amounts counted in total and for the key.
    pub fn room<C: Into<CountedSpending>>(
        &self,
        amount: Money,
        (all, of_key): (C, C),
    ) -> Result<(), BudgetShort> {
        let (all, of_key) = (all.into(), of_key.into());
        for (budget, limit, counted) in [("per_day", self.per_day, all), ("per_key", self.per_key, of_key)] {
            let Some(limit) = limit else { continue };
            let left = limit.minus(counted.total());
            if amount > left {
                let CountedSpending { spent, reserved } = counted;
                return Err(BudgetShort { budget, limit, left, spent, reserved });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_budgets_need_room_and_the_first_that_lacks_it_says_so() {
        let usd = |text| Money::parse(text).unwrap();
        let budget = DayBudget { per_day: Some(usd("5")), per_key: Some(usd("1")) };
        assert_eq!(budget.room(usd("1"), (usd("4"), usd("0"))), Ok(()));
        let short = budget.room(usd("1"), (usd("4.5"), usd("0.5"))).unwrap_err();
        assert_eq!((short.budget, short.left), ("per_day", usd("0.5")));
        assert_eq!(budget.room(usd("1"), (usd("1"), usd("0.5"))).unwrap_err().budget, "per_key");
        assert_eq!(DayBudget::default().room(Money::MAX, (Money::MAX, Money::MAX)), Ok(()));
        let counted = |spent, reserved| CountedSpending { spent: usd(spent), reserved: usd(reserved) };
        let short = budget.room(usd("0.5"), (counted("0", "0"), counted("0.4", "0.5"))).unwrap_err();
        assert_eq!((short.budget, short.spent, short.reserved), ("per_key", usd("0.4"), usd("0.5")));
        assert!(short.may_fit_later(usd("0.6")) && !short.may_fit_later(usd("0.7")));
    }

    #[test]
    fn days_are_those_of_utc() {
        let at = |seconds| day_of(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!((at(0), at(86_399), at(86_400)), (0, 0, 1));
    }
}
