//! Ids for runs and their parts, without a system call for each: a counter under a keyed hash, whose keys the process
//! got from the system once. They are not secret; secrets are generated elsewhere.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a new span id: 16 hex digits.
#[must_use]
pub fn span_id() -> String {
    let [_, id] = numbers();
    // All zeros would be an invalid id.
    let mut text = String::with_capacity(16);
    // Writing into a string cannot fail.
    let _ = write!(text, "{:016x}", id.max(1));
    text
}

/// Returns a 128-bit number that no other run of this process has.
#[must_use]
pub fn unique_number() -> u128 {
    let [high, low] = numbers();
    (u128::from(high) << 64) | u128::from(low)
}

/// Returns a new id for the records of a run: 32 hex digits that begin with the time in milliseconds. Ids of
/// neighbouring runs are neighbours in the index of a store, which then changes one page for many records.
pub(crate) fn run_id(now: SystemTime) -> String {
    let millis = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let id = (millis << RANDOM_BITS) | (unique_number() & ((1 << RANDOM_BITS) - 1));
    let mut text = String::with_capacity(32);
    // Writing into a string cannot fail.
    let _ = write!(text, "{id:032x}");
    text
}

/// The bits of a run id after the time.
const RANDOM_BITS: u32 = 80;

fn numbers() -> [u64; 2] {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    KEYS.each_ref().map(|key| key.hash_one(count))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_are_the_same() {
        let spans: HashSet<String> = (0..1_000).map(|_| span_id()).collect();
        let numbers: HashSet<u128> = (0..1_000).map(|_| unique_number()).collect();
        assert_eq!((spans.len(), numbers.len()), (1_000, 1_000));
        let now = UNIX_EPOCH + std::time::Duration::from_millis(0x0123_4567_89ab);
        let runs: HashSet<String> = (0..1_000).map(|_| run_id(now)).collect();
        assert_eq!(runs.len(), 1_000);
        assert!(runs.iter().all(|id| id.len() == 32 && id.starts_with("0123456789ab")));
        assert!(spans.iter().all(|id| id.len() == 16 && *id != "0".repeat(16)));
    }
}
