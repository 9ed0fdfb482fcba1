//! Counts what retention dropped: in memory for this process, and in the database per owner.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cognitive_contract::ports::DropCounts;
use serde::Serialize;

use super::chain::{Chain, WriteDrops};
use crate::error::StoreError;
use crate::store::Store;

/// The counts of this process.
#[derive(Debug, Default)]
pub(crate) struct DropTally {
    records: AtomicU64,
    payloads: AtomicU64,
    owners: AtomicU64,
    /// The minute of the last retention sweep, by the time of the records.
    swept: AtomicU64,
}

impl DropTally {
    /// Returns whether a retention sweep is due: once a minute, and with the first record.
    pub(super) fn sweep_is_due(&self, now: SystemTime) -> bool {
        let minute = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60);
        self.swept.swap(minute, Ordering::Relaxed) != minute
    }

    pub(super) fn add(&self, gone: &WriteDrops) {
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

/// The drops of one owner and kind of record since the file was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OwnerDrops {
    /// `key:NAME` or `tenant:NAME`; empty for local use.
    pub owner: String,
    /// `runs` (including calls) or `details`.
    pub kind: String,
    /// The number of dropped records.
    pub records: i64,
    /// The number of dropped payloads whose records stayed.
    pub payloads: i64,
    /// The time of the first drop.
    pub since: String,
    /// The time of the last drop.
    pub last: String,
}

impl Store {
    /// Returns the drops of each owner with any.
    pub fn dropped_records(&self) -> Result<Vec<OwnerDrops>, StoreError> {
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
