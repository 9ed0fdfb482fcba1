//! A cost limit for all runs of an evaluation together, including concurrent ones. A budget of the operator
//! applies as well: each reservation has to fit into both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::lock::Lock;
use cognitive_contract::money::Money;
use cognitive_ports::spending::{BudgetShort, DayBudget, MAX_COST, SpendingEntry, SpendingLedger};
use cognitive_runtime::{Host, Spending};

/// The ledger of one evaluation.
struct TotalLimit {
    limit: Money,
    /// The reserved or settled cost of each run.
    runs: Lock<BTreeMap<String, Money>>,
    outer: Option<Spending>,
}

/// Limits the total cost of all runs of a host.
pub(super) fn hold(host: &mut Host, limit: Money) {
    let ledger = TotalLimit { limit, runs: Lock::default(), outer: host.spending.take() };
    let budget = DayBudget { per_day: Some(limit), per_key: None };
    host.spending = Some(Spending { budget, ledger: Arc::new(ledger) });
}

impl SpendingLedger for TotalLimit {
    fn cover(
        &self,
        entry: &SpendingEntry,
        _: &DayBudget,
        now: SystemTime,
    ) -> Result<Result<(), BudgetShort>, String> {
        let mut runs = self.runs.lock();
        let others: Money = runs.iter().filter(|(id, _)| **id != entry.id).map(|(_, held)| *held).sum();
        let left = self.limit.minus(others);
        if entry.reserved > left {
            return Ok(Err(BudgetShort {
                budget: MAX_COST,
                limit: self.limit,
                left,
                spent: others,
                reserved: Money::ZERO,
            }));
        }
        if let Some(outer) = &self.outer
            && let Err(short) = outer.ledger.cover(entry, &outer.budget, now)?
        {
            return Ok(Err(short));
        }
        runs.insert(entry.id.clone(), entry.reserved);
        Ok(Ok(()))
    }

    fn settle(&self, id: &str, spent: Money) -> Result<(), String> {
        self.runs.lock().insert(id.to_owned(), spent);
        self.outer.as_ref().map_or(Ok(()), |outer| outer.ledger.settle(id, spent))
    }

    fn counted_spending(&self, _: u64, _: &str, _: SystemTime) -> Result<(Money, Money), String> {
        let sum: Money = self.runs.lock().values().copied().sum();
        Ok((sum, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_share_one_limit_and_give_back_what_they_did_not_need() {
        let ledger = TotalLimit { limit: Money::from_pico(10), runs: Lock::default(), outer: None };
        let cover = |id: &str, amount: u64| {
            let (reserved, until) = (Money::from_pico(amount), SystemTime::UNIX_EPOCH);
            let entry = SpendingEntry {
                id: id.to_owned(),
                day: 0,
                key: String::new(),
                reserved,
                sent: reserved,
                until,
            };
            ledger.cover(&entry, &DayBudget::default(), until).unwrap()
        };
        assert_eq!(cover("a", 6), Ok(()));
        assert_eq!(cover("b", 5).unwrap_err().left, Money::from_pico(4));
        ledger.settle("a", Money::from_pico(1)).unwrap();
        assert_eq!(cover("b", 9), Ok(()));
        assert_eq!(cover("b", 8), Ok(()), "its own place");
        assert_eq!(cover("c", 2).unwrap_err().budget, "max_cost");
    }
}
