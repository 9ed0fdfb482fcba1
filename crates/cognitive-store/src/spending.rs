//! The daily spending of budgets: one row per run, shared by all processes on the store. A run holds its reservation
//! until it settles. An expired run that never settled counts what it may have spent. The check for room and the
//! reservation are one transaction. Old days are deleted.

use std::time::SystemTime;

use cognitive_contract::money::Money;
use cognitive_ports::spending::{BudgetShort, CountedSpending, DayBudget, SpendingEntry, SpendingLedger};

use crate::error::Problem;
use crate::row_changes::{self, ProtectedTable};
use crate::sql::{LockedArea, SqlSession, all, to_signed, values};
use crate::store::Store;
use crate::time;

/// The number of days that are stored. A budget looks at one day; older rows would only slow down its queries.
pub(crate) const DAYS_KEPT: u64 = 31;

impl SpendingLedger for Store {
    fn cover(
        &self,
        entry: &SpendingEntry,
        budget: &DayBudget,
        now: SystemTime,
    ) -> Result<Result<(), BudgetShort>, String> {
        let (now, until) = (time::text(now), time::text(entry.until));
        // Exclusive: two concurrent runs that only read would both see the same room.
        let covered = self.change(&[LockedArea::Spending], |session| {
            let others = spending_except(session, entry.day, &entry.key, &now, &entry.id)?;
            if let Err(short) = budget.room(entry.reserved, others) {
                return Ok(Err(short));
            }
            let oldest = to_signed(entry.day.saturating_sub(DAYS_KEPT));
            row_changes::purge_spending(session, oldest)?;
            session.execute(
                "INSERT INTO spending (id, day, key, reserved, sent, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (id) DO UPDATE SET day = excluded.day, key = excluded.key,
                    reserved = excluded.reserved, sent = excluded.sent, until = excluded.until",
                &values![
                    &entry.id,
                    to_signed(entry.day),
                    &entry.key,
                    to_signed(entry.reserved.pico()),
                    to_signed(entry.sent.pico()),
                    &until,
                ],
            )?;
            row_changes::note(session, ProtectedTable::Spending, &entry.id)?;
            Ok(Ok(()))
        });
        covered.map_err(|error| error.to_string())
    }

    fn settle(&self, id: &str, spent: Money) -> Result<(), String> {
        let sql = "UPDATE spending SET reserved = ?2, sent = ?2, until = NULL WHERE id = ?1";
        let settled = self.change(&[LockedArea::Spending], |session| {
            session.execute(sql, &values![id, to_signed(spent.pico())])?;
            row_changes::note(session, ProtectedTable::Spending, id)
        });
        settled.map_err(|error| error.to_string())
    }

    fn counted_spending(&self, day: u64, key: &str, now: SystemTime) -> Result<(Money, Money), String> {
        let now = time::text(now);
        let counted = self.look(|session| spending_except(session, day, key, &now, ""));
        counted.map(|(all, of_key)| (all.total(), of_key.total())).map_err(|error| error.to_string())
    }
}

/// Returns the amounts of a day without one run, in total and for one key. Settled runs count their cost, active runs
/// their reservation.
fn spending_except(
    session: &mut dyn SqlSession,
    day: u64,
    key: &str,
    now: &str,
    without: &str,
) -> Result<(CountedSpending, CountedSpending), Problem> {
    let sql = "SELECT key, CASE WHEN until IS NULL OR until <= ?1 THEN sent ELSE 0 END,
            CASE WHEN until IS NULL OR until <= ?1 THEN 0 ELSE reserved END
         FROM spending WHERE day = ?2 AND id != ?3";
    let rows = all(session, sql, &values![now, to_signed(day), without], |row| {
        let amount =
            |column| row.integer(column).map(|amount| Money::from_pico(u64::try_from(amount).unwrap_or(0)));
        Ok((row.str(0)? == key, CountedSpending { spent: amount(1)?, reserved: amount(2)? }))
    })?;
    let mut sums = (CountedSpending::default(), CountedSpending::default());
    let add = |sum: &mut CountedSpending, row: CountedSpending| {
        *sum =
            CountedSpending { spent: sum.spent.plus(row.spent), reserved: sum.reserved.plus(row.reserved) };
    };
    for (is_of_key, row) in rows {
        add(&mut sums.0, row);
        if is_of_key {
            add(&mut sums.1, row);
        }
    }
    Ok(sums)
}
