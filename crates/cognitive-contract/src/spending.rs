//! Money that runs may spend in a day: what an operator allows, and the port to whoever keeps the books. A run that begins
//! reserves the most that it can cost and settles what it did cost at its end. Of a run that never came to its end, only
//! what it may have sent counts once nobody holds the rest any more.

use std::time::SystemTime;

use crate::money::Money;

/// What may be spent in a day, in UTC. Without a word there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DayBudget {
    /// By all together.
    pub per_day: Option<Money>,
    /// By each key of the server. Callers without a key share one budget.
    pub per_key: Option<Money>,
}

/// A day, counted from 1970 in UTC.
#[must_use]
pub fn day_of(now: SystemTime) -> u64 {
    now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400)
}

/// How the limit is called that a caller sets.
pub const MAX_COST: &str = "max_cost";

/// What one run holds of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendingEntry {
    /// The run, by an id of its own.
    pub id: String,
    /// The day on which it began.
    pub day: u64,
    /// The name of the caller's key; empty for callers without one.
    pub key: String,
    /// The most that it may cost.
    pub reserved: Money,
    /// The most that the requests can have cost which it has sent.
    pub sent: Money,
    /// Until when it holds what it has not sent. A run that goes on asks again before.
    pub until: SystemTime,
}

/// A budget does not have what a run could cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetShort {
    /// Which budget: `per_day`, `per_key`, or [`MAX_COST`] where several runs share one.
    pub budget: &'static str,
    /// What may be spent in a day.
    pub limit: Money,
    /// What is left of it today.
    pub left: Money,
}

/// Someone who keeps the books of what was spent, for all processes that share a budget.
pub trait SpendingLedger: Send + Sync {
    /// Puts an entry down, new or in the place of the one with its id, if the budget has room for it: in one step, so that
    /// two runs never take the same room. The outer error is that the books cannot be kept.
    fn cover(
        &self,
        entry: &SpendingEntry,
        budget: &DayBudget,
        now: SystemTime,
    ) -> Result<Result<(), BudgetShort>, String>;

    /// Says what a run did cost. It holds nothing any more.
    fn settle(&self, id: &str, spent: Money) -> Result<(), String>;

    /// What counts as spent on a day, in all and by one key.
    fn counted(&self, day: u64, key: &str, now: SystemTime) -> Result<(Money, Money), String>;
}

impl DayBudget {
    /// Whether there is any limit.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.per_day.is_some() || self.per_key.is_some()
    }

    /// Whether an amount has room where so much is counted already, in all and by the key.
    pub fn room(&self, amount: Money, (all, of_key): (Money, Money)) -> Result<(), BudgetShort> {
        for (budget, limit, counted) in [("per_day", self.per_day, all), ("per_key", self.per_key, of_key)] {
            let Some(limit) = limit else { continue };
            let left = limit.minus(counted);
            if amount > left {
                return Err(BudgetShort { budget, limit, left });
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
    }

    #[test]
    fn days_are_those_of_utc() {
        let at = |seconds| day_of(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!((at(0), at(86_399), at(86_400)), (0, 0, 1));
    }
}
