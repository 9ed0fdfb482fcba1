//! What was dropped to keep within limits: counted for this process, and kept per owner for whoever asks later.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cognitive_contract::ports::DropCounts;
use serde::Serialize;

use super::chain::{Chain, Gone};
use crate::error::StoreError;
use crate::store::Store;

/// Counts of this process.
#[derive(Debug, Default)]
pub(crate) struct DropTally {
    records: AtomicU64,
    payloads: AtomicU64,
    owners: AtomicU64,
    /// The minute of the last look for what is too old, as records tell the time.
    swept: AtomicU64,
}

impl DropTally {
    /// Whether it is time to look for what is too old: once a minute, and with the first record.
    pub(super) fn sweep_is_due(&self, now: SystemTime) -> bool {
        let minute = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60);
        self.swept.swap(minute, Ordering::Relaxed) != minute
    }

    pub(super) fn add(&self, gone: &Gone) {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        self.records.fetch_add(count(gone.records), Ordering::Relaxed);
        self.payloads.fetch_add(count(gone.payloads), Ordering::Relaxed);
        self.owners.fetch_add(u64::from(gone.first), Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> DropCounts {
        let mut counts = DropCounts::default();
        counts.records = self.records.load(Ordering::Relaxed);
        counts.payloads = self.payloads.load(Ordering::Relaxed);
        counts.owners = self.owners.load(Ordering::Relaxed);
        counts
    }
}

/// What was dropped of an owner's records of one kind since the file exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OwnerDrops {
    /// `key:NAME`, `tenant:NAME`; empty for whoever uses this machine.
    pub owner: String,
    /// `runs` (with their calls) or `details`.
    pub kind: String,
    /// Records that went.
    pub records: i64,
    /// Payloads that went while their records stayed.
    pub payloads: i64,
    /// When the first of them went.
    pub since: String,
    /// When the last of them went.
    pub last: String,
}

impl Store {
    /// Whose records were dropped, how many, and since when.
    pub fn dropped(&self) -> Result<Vec<OwnerDrops>, StoreError> {
        let chains = self.look(Chain::all)?;
        Ok(chains.into_iter().filter_map(drops_of).collect())
    }
}

fn drops_of(chain: Chain) -> Option<OwnerDrops> {
    Some(OwnerDrops {
        since: chain.dropped_since?,
        last: chain.dropped_at.unwrap_or_default(),
        owner: chain.owner,
        kind: chain.kind,
        records: chain.dropped,
        payloads: chain.dropped_payloads,
    })
}
