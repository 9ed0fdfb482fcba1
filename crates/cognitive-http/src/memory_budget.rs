//! The memory budget for large requests: their bodies and parsed values together. Requests of the usual size are not
//! counted. Without a budget, a few hundred clients with large requests could exhaust the memory. Never waits: a
//! request that does not fit is refused.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::Failure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::run::too_much;

/// The unit of counting, since a semaphore counts no more than 2^29.
const UNIT: usize = 64 << 10;
/// The memory that a request may use without being counted, in bytes.
const FREE: usize = 256 << 10;
/// A request above this size is handled outside the serving threads.
const HEAVY: usize = 4 << 20;

/// The remaining memory budget.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget(Arc<Semaphore>);

/// The memory reserved by one request, released on drop.
#[derive(Debug)]
pub(crate) struct MemoryClaim {
    room: MemoryBudget,
    bytes: usize,
    taken: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    /// Creates a budget of this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS))))
    }

    /// Returns an empty reservation.
    pub(crate) fn claim(&self) -> MemoryClaim {
        MemoryClaim { room: self.clone(), bytes: 0, taken: None }
    }
}

impl MemoryClaim {
    /// Reserves `more` bytes. On failure the existing reservation is unchanged. (E4002)
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Failure> {
        let bytes = self.bytes.saturating_add(more);
        let wanted = if bytes > FREE { bytes.div_ceil(UNIT) } else { 0 };
        let has = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let Some(lacking) = wanted.checked_sub(has).filter(|lacking| *lacking > 0) {
            let lacking = u32::try_from(lacking).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.room.0).try_acquire_many_owned(lacking);
            let more =
                more.map_err(|_| too_much("too many large requests at once", Duration::from_secs(1)))?;
            match &mut self.taken {
                Some(taken) => taken.merge(more),
                none => *none = Some(more),
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Returns whether handling the request would noticeably delay other requests.
    pub(crate) fn is_heavy(&self) -> bool {
        self.bytes > HEAVY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(room: &MemoryBudget, bytes: usize) -> Result<MemoryClaim, Failure> {
        let mut claim = room.claim();
        claim.grow(bytes).map(|()| claim)
    }

    #[test]
    fn what_is_taken_comes_back() {
        let room = MemoryBudget::new(16 * UNIT);
        let first = taken(&room, 10 * UNIT).unwrap();
        assert_eq!(taken(&room, 7 * UNIT).unwrap_err().code().number(), "E4002");
        assert!(taken(&room, FREE).is_ok(), "a usual request needs no room");
        let second = taken(&room, 5 * UNIT + 1).unwrap();
        drop(first);
        assert!(taken(&room, 10 * UNIT).is_ok());
        drop(second);
        assert!(taken(&room, 16 * UNIT).is_ok() && taken(&room, usize::MAX).is_err());
    }

    #[test]
    fn a_claim_grows_by_what_arrives() {
        let room = MemoryBudget::new(16 * UNIT);
        let mut claim = room.claim();
        for _ in 0..16 {
            claim.grow(UNIT).unwrap();
        }
        assert!(claim.grow(1).is_err() && taken(&room, FREE + 1).is_err());
        drop(claim);
        assert!(taken(&room, 16 * UNIT).is_ok());
    }
}
