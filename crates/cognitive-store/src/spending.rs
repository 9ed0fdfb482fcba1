//! The books of what runs may spend in a day: one row for each run, shared by all processes that use the file. A run holds
//! what it reserved until it settles; one that died holds what it may have sent, and lets go of the rest when its time is
//! over. Looking for room and taking it are one transaction. Days that are over for a while are dropped.

use std::time::SystemTime;

use cognitive_contract::money::Money;
use cognitive_contract::spending::{BudgetShort, DayBudget, SpendingEntry, SpendingLedger};
use rusqlite::{Connection, TransactionBehavior, named_params, params};

use crate::store::Store;
use crate::time;

/// How many days stay in the books.
const DAYS_KEPT: u64 = 31;

impl SpendingLedger for Store {
    fn cover(
        &self,
        entry: &SpendingEntry,
        budget: &DayBudget,
        now: SystemTime,
    ) -> Result<Result<(), BudgetShort>, String> {
        let (now, until) = (time::text(now), time::text(entry.until));
        let covered = self.with(|connection| {
            // Immediate: two runs that both begin by reading would both see the same room.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let others = counted(&transaction, entry.day, &entry.key, &now, &entry.id)?;
            if let Err(short) = budget.room(entry.reserved, others) {
                return Ok(Err(short));
            }
            transaction
                .prepare_cached("DELETE FROM spending WHERE day < ?1")?
                .execute([whole(entry.day.saturating_sub(DAYS_KEPT))])?;
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO spending (id, day, key, reserved, sent, until)
                     VALUES (:id, :day, :key, :reserved, :sent, :until)",
                )?
                .execute(named_params! {
                    ":id": entry.id,
                    ":day": whole(entry.day),
                    ":key": entry.key,
                    ":reserved": whole(entry.reserved.pico()),
                    ":sent": whole(entry.sent.pico()),
                    ":until": until,
                })?;
            transaction.commit()?;
            Ok(Ok(()))
        });
        covered.map_err(|error| error.to_string())
    }

    fn settle(&self, id: &str, spent: Money) -> Result<(), String> {
        let settled = self.with(|connection| {
            connection
                .prepare_cached("UPDATE spending SET reserved = ?2, sent = ?2, until = NULL WHERE id = ?1")?
                .execute(params![id, whole(spent.pico())])
        });
        settled.map(|_| ()).map_err(|error| error.to_string())
    }

    fn counted(&self, day: u64, key: &str, now: SystemTime) -> Result<(Money, Money), String> {
        let now = time::text(now);
        self.with(|connection| counted(connection, day, key, &now, "")).map_err(|error| error.to_string())
    }
}

/// What counts on a day without one run, in all and by one key: what was settled, and of the others what they hold.
fn counted(
    connection: &Connection,
    day: u64,
    key: &str,
    now: &str,
    without: &str,
) -> rusqlite::Result<(Money, Money)> {
    let mut statement = connection.prepare_cached(
        "SELECT key, CASE WHEN until IS NULL OR until <= :now THEN sent ELSE reserved END
         FROM spending WHERE day = :day AND id != :without",
    )?;
    let rows = statement
        .query_map(named_params! { ":now": now, ":day": whole(day), ":without": without }, |row| {
            Ok((row.get_ref(0)?.as_str()? == key, row.get::<_, i64>(1)?))
        })?;
    let mut sums = (Money::ZERO, Money::ZERO);
    for row in rows {
        let (is_of_key, amount) = row?;
        let amount = Money::from_pico(u64::try_from(amount).unwrap_or(0));
        sums.0 = sums.0.plus(amount);
        if is_of_key {
            sums.1 = sums.1.plus(amount);
        }
    }
    Ok(sums)
}

/// `SQLite` has no unsigned integers. What does not fit is nine million dollars, and stays there.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
