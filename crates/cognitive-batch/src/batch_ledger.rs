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

/// The cost ledger of a batch.
pub(crate) struct BatchLedger {
    limit: Money,
    /// True if all rows are sent alike, whatever is left: a posted request is found again by the hash of its body, and
    /// its body has its output limit.
    is_even: bool,
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
}

/// Limits the total cost of all runs of a host; `spent` is already used. The file is in the state folder.
pub(crate) fn hold(
    host: &mut Host,
    limit: Money,
    spent: Money,
    file: &Path,
    is_even: bool,
) -> io::Result<Arc<BatchLedger>> {
    let batch_ledger =
        BatchLedger { is_even, ..BatchLedger::open(limit, spent, file, host.spending.take())? };
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
            is_even: false,
            state: Lock::new(BatchLedgerState { spent: spent.plus(file.lost), file, held, all_held }),
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
    pub(crate) fn lost(&self) -> Money {
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
        state.held.insert(entry.id.clone(), entry.reserved);
        Ok(Ok(()))
    }

    fn settle(&self, id: &str, spent: Money) -> Result<(), String> {
        let mut state = self.state.lock();
        let held = state.held.remove(id).unwrap_or_default();
        state.all_held = state.all_held.minus(held);
        state.spent = state.spent.plus(spent);
        self.outer.as_ref().map_or(Ok(()), |outer| outer.ledger.settle(id, spent))
    }

    fn counted(&self, _: u64, _: &str, _: SystemTime) -> Result<(Money, Money), String> {
        let state = self.state.lock();
        let sum = if self.is_even { self.limit } else { state.spent.plus(state.all_held) };
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
        assert_eq!(again.lost(), Money::from_pico(9));
        again.close();
        assert_eq!(open().lost(), Money::from_pico(9));
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
