//! Enforces the cost and token limits of a whole batch. A row starts only if its cost ceiling fits next to
//! the money already spent and the ceilings of all rows in flight. A budget of the operator applies as well.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::lock::Lock;
use cognitive_contract::money::Money;
use cognitive_ports::spending::{BudgetShort, DayBudget, MAX_COST, SpendingEntry, SpendingLedger};
use cognitive_runtime::{Host, Spending};

use crate::tempo::Tempo;

/// The cost ledger of a batch.
pub(crate) struct BatchLedger {
    limit: Money,
    /// The rows that may be in flight. `None` if all rows are sent alike, whatever is left: a posted request is found
    /// again by the hash of its body, and its body has its output limit.
    tempo: Option<Arc<Tempo>>,
    state: Lock<BatchLedgerState>,
    outer: Option<Spending>,
}

/// The highest total ceiling of rows in flight, written to disk before they start. A killed process cannot
/// report the real cost of its rows, so the whole ceiling counts.
struct HeldFile {
    file: File,
    /// The highest total ceiling in this process.
    most: Money,
    /// The sum of these ceilings of killed processes.
    lost: Money,
}

impl HeldFile {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = [0; 16];
        let read = file.read_exact(&mut bytes).is_ok();
        let [a, b] = if read { halves(bytes) } else { [0, 0] };
        let mut held = Self { file, most: Money::ZERO, lost: Money::from_pico(a).plus(Money::from_pico(b)) };
        held.write()?;
        Ok(held)
    }

    fn write(&mut self) -> io::Result<()> {
        let bytes = [self.most.pico().to_le_bytes(), self.lost.pico().to_le_bytes()].concat();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&bytes)
    }
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let mut halves = [[0; 8]; 2];
    for (half, part) in halves.iter_mut().zip(bytes.chunks_exact(8)) {
        half.copy_from_slice(part);
    }
    halves.map(u64::from_le_bytes)
}

struct BatchLedgerState {
    file: HeldFile,
    /// The cost of all finished runs.
    spent: Money,
    /// The cost ceiling of each run in flight.
    held: HashMap<String, Money>,
    all_held: Money,
    /// The highest ceiling that a row had at its start, before it took more for a longer answer.
    ceiling: Money,
}

/// Limits the total cost of all runs of a host; `spent` is already used. The file is in the state folder.
pub(crate) fn hold(
    host: &mut Host,
    limit: Money,
    spent: Money,
    file: &Path,
    tempo: Option<Arc<Tempo>>,
) -> io::Result<Arc<BatchLedger>> {
    let batch_ledger = BatchLedger { tempo, ..BatchLedger::open(limit, spent, file, host.spending.take())? };
    let batch_ledger = Arc::new(batch_ledger);
    let budget = DayBudget { per_day: Some(limit), per_key: None };
    host.spending = Some(Spending { budget, ledger: Arc::clone(&batch_ledger) as Arc<dyn SpendingLedger> });
    Ok(batch_ledger)
}

impl BatchLedger {
    fn open(limit: Money, spent: Money, file: &Path, outer: Option<Spending>) -> io::Result<Self> {
        let file = HeldFile::open(file)?;
        let (held, all_held) = (HashMap::new(), Money::ZERO);
        Ok(Self {
            limit,
            tempo: None,
            state: Lock::new(BatchLedgerState {
                spent: spent.plus(file.lost),
                file,
                held,
                all_held,
                ceiling: Money::ZERO,
            }),
            outer,
        })
    }

    /// Records that no row is in flight any more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.file.most = Money::ZERO;
        // If the write fails, the next process counts more than was spent.
        let _ = state.file.write();
    }

    /// Returns the additional cost that killed processes may have caused.
    pub(crate) fn lost_cost(&self) -> Money {
        self.state.lock().file.lost
    }
}

impl SpendingLedger for BatchLedger {
    fn cover(
        &self,
        entry: &SpendingEntry,
        _: &DayBudget,
        now: SystemTime,
    ) -> Result<Result<(), BudgetShort>, String> {
        let mut state = self.state.lock();
        let own = state.held.get(&entry.id).copied().unwrap_or_default();
        let others = state.spent.plus(state.all_held.minus(own));
        let left = self.limit.minus(others);
        if entry.reserved > left {
            let (spent, reserved) = (state.spent, state.all_held.minus(own));
            return Ok(Err(BudgetShort { budget: MAX_COST, limit: self.limit, left, spent, reserved }));
        }
        if let Some(outer) = &self.outer
            && let Err(short) = outer.ledger.cover(entry, &outer.budget, now)?
        {
            return Ok(Err(short));
        }
        let all_held = state.all_held.minus(own).plus(entry.reserved);
        if all_held > state.file.most {
            state.file.most = all_held;
            state.file.write().map_err(|error| error.to_string())?;
        }
        state.all_held = all_held;
        if state.held.insert(entry.id.clone(), entry.reserved).is_none() {
            state.ceiling = state.ceiling.max(entry.reserved);
        }
        Ok(Ok(()))
    }

    fn settle(&self, id: &str, spent: Money) -> Result<(), String> {
        let mut state = self.state.lock();
        let held = state.held.remove(id).unwrap_or_default();
        state.all_held = state.all_held.minus(held);
        state.spent = state.spent.plus(spent);
        self.outer.as_ref().map_or(Ok(()), |outer| outer.ledger.settle(id, spent))
    }

    /// A row takes money for a longer answer out of what this leaves, so that the ceilings of rows that may still start
    /// beside it count here as well: without them, the first rows would take the places of the others. If the limit
    /// does not pay for as many rows at once, it pays for those that are allowed now.
    fn counted_spending(&self, _: u64, _: &str, _: SystemTime) -> Result<(Money, Money), String> {
        let Some(tempo) = &self.tempo else { return Ok((self.limit, self.limit)) };
        let (_, allowed) = tempo.load();
        let state = self.state.lock();
        let used = state.spent.plus(state.all_held);
        let of_others = |places: usize| state.ceiling.times(places.saturating_sub(state.held.len()) as u64);
        let kept = [tempo.places(), allowed].map(of_others);
        let left = self.limit.minus(used);
        let sum = used.plus(kept.into_iter().find(|kept| *kept <= left).unwrap_or_default());
        Ok((sum, sum))
    }
}

/// The token limit of a batch. The tokens of a row are unknown in advance, so the highest count so far is
/// reserved.
pub(crate) struct TokenLedger {
    limit: Option<u64>,
    state: Lock<TokenState>,
}

#[derive(Default)]
struct TokenState {
    spent: u64,
    held: u64,
    most: u64,
}

impl TokenLedger {
    /// A limit, with `spent` tokens already used; `usual` is the reservation for the first row.
    pub(crate) fn new(limit: Option<u64>, spent: u64, usual: u64) -> Self {
        Self { limit, state: Lock::new(TokenState { spent, held: 0, most: usual }) }
    }

    /// Reserves tokens for one more row and returns their number; `None` if they do not fit.
    pub(crate) fn hold(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let needed = state.most;
        let total = state.spent.saturating_add(state.held).saturating_add(needed);
        if self.limit.is_some_and(|limit| total > limit) {
            return None;
        }
        state.held = state.held.saturating_add(needed);
        Some(needed)
    }

    /// Replaces the reservation of a finished row by its real tokens.
    pub(crate) fn settle(&self, held: u64, spent: u64) {
        let mut state = self.state.lock();
        state.held = state.held.saturating_sub(held);
        state.spent = state.spent.saturating_add(spent);
        state.most = state.most.max(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_counts_until_it_is_settled_and_nothing_is_kept_after() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("held");
        let open = || BatchLedger::open(Money::from_pico(12), Money::from_pico(2), &file, None).unwrap();
        let batch_ledger = open();
        let cover = |id: &str, amount: u64| {
            let (reserved, until) = (Money::from_pico(amount), SystemTime::UNIX_EPOCH);
            let (id, key) = (id.to_owned(), String::new());
            let entry = SpendingEntry { id, day: 0, key, reserved, sent: reserved, until };
            batch_ledger.cover(&entry, &DayBudget::default(), until).unwrap()
        };
        assert_eq!(cover("a", 6), Ok(()));
        assert_eq!(cover("b", 5).unwrap_err().left, Money::from_pico(4));
        batch_ledger.settle("a", Money::from_pico(1)).unwrap();
        assert_eq!(cover("b", 9), Ok(()));
        assert_eq!(cover("b", 8), Ok(()), "its own place");
        batch_ledger.settle("b", Money::from_pico(8)).unwrap();
        let state = batch_ledger.state.lock();
        assert_eq!((state.held.len(), state.spent), (0, Money::from_pico(11)));
        drop(state);
        // The process is killed: its highest ceiling counts, once.
        let again = open();
        assert_eq!(again.lost_cost(), Money::from_pico(9));
        again.close();
        assert_eq!(open().lost_cost(), Money::from_pico(9));
    }

    #[test]
    fn a_longer_answer_takes_nothing_of_the_rows_that_may_still_start() {
        let dir = tempfile::tempdir().unwrap();
        let open = |limit: u64, places: usize| {
            let file = dir.path().join(format!("held-{limit}-{places}"));
            let ledger = BatchLedger::open(Money::from_pico(limit), Money::ZERO, &file, None).unwrap();
            BatchLedger { tempo: Some(Arc::new(Tempo::new(places, false))), ..ledger }
        };
        let now = SystemTime::UNIX_EPOCH;
        let cover = |ledger: &BatchLedger, id: &str, amount: u64| {
            let (reserved, sent) = (Money::from_pico(amount), Money::ZERO);
            let entry =
                SpendingEntry { id: id.to_owned(), day: 0, key: String::new(), reserved, sent, until: now };
            ledger.cover(&entry, &DayBudget::default(), now).unwrap()
        };
        let counted = |ledger: &BatchLedger| ledger.counted_spending(0, "", now).unwrap().0.pico();
        let ledger = open(100, 4);
        assert_eq!(cover(&ledger, "a", 10), Ok(()));
        assert_eq!(counted(&ledger), 40, "its own ceiling and those of three other rows");
        assert_eq!(cover(&ledger, "a", 30), Ok(()));
        assert_eq!(counted(&ledger), 60, "a longer answer does not raise the ceiling");
        assert_eq!((cover(&ledger, "b", 10), counted(&ledger)), (Ok(()), 60));
        // Twenty rows do not fit. Eight are allowed at first.
        let ledger = open(100, 20);
        assert_eq!((cover(&ledger, "a", 10), counted(&ledger)), (Ok(()), 80));
        // Not even these fit, so that each row may take its part of what is left.
        let ledger = open(60, 20);
        assert_eq!((cover(&ledger, "a", 10), counted(&ledger)), (Ok(()), 10));
    }

    #[test]
    fn rows_are_taken_to_need_what_the_dearest_needed() {
        let batch_ledger = TokenLedger::new(Some(100), 0, 10);
        assert_eq!((batch_ledger.hold(), batch_ledger.hold()), (Some(10), Some(10)));
        batch_ledger.settle(10, 40);
        assert_eq!(batch_ledger.hold(), Some(40));
        assert_eq!(batch_ledger.hold(), None);
        assert_eq!(TokenLedger::new(None, 0, 1).hold(), Some(1));
    }
}
