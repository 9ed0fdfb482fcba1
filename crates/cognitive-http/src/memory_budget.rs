//! The memory budget for requests: their bodies and parsed values together. Small requests have a budget of their own,
//! so that neither kind keeps out the other. Tiny ones are not counted. Without a budget, clients with many connections
//! could exhaust the memory. Never waits: a request that does not fit is refused.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::Failure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::run::too_much;

/// The unit of counting for large requests, since a semaphore counts no more than 2^29.
const UNIT: usize = 64 << 10;
/// The unit of counting for small requests.
const SMALL_UNIT: usize = 4 << 10;
/// The memory that a request may use without being counted, in bytes: a login, or a short text.
const FREE: usize = 16 << 10;
/// The most memory of a small request.
const SMALL: usize = 256 << 10;
/// The memory for all small requests. Enough for thousands of usual inputs at once.
const ALL_SMALL: usize = 192 << 20;
/// A request above this size is handled outside the serving threads.
const HEAVY: usize = 4 << 20;

/// The remaining memory budget.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget {
    large: Arc<Semaphore>,
    small: Arc<Semaphore>,
}

/// The memory reserved by one request, released on drop.
#[derive(Debug)]
pub(crate) struct MemoryClaim {
    room: MemoryBudget,
    bytes: usize,
    /// Of one of the two budgets, by the size.
    taken: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    /// Creates a budget of this many bytes for large requests.
    pub(crate) fn new(bytes: usize) -> Self {
        let units =
            |bytes: usize, unit: usize| Arc::new(Semaphore::new((bytes / unit).min(Semaphore::MAX_PERMITS)));
        Self { large: units(bytes, UNIT), small: units(ALL_SMALL, SMALL_UNIT) }
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
        if bytes > SMALL {
            // A request that has become large gives back its small reservation.
            let was_small = self.bytes <= SMALL;
            let kept = if was_small { None } else { self.taken.take() };
            let taken = extend_claim(&self.room.large, kept, bytes.div_ceil(UNIT));
            self.taken = match taken {
                Ok(taken) => taken,
                Err(kept) => {
                    if !was_small {
                        self.taken = kept;
                    }
                    return Err(too_much("too many large requests at once", Duration::from_secs(1)));
                }
            };
        } else if bytes > FREE {
            let kept = self.taken.take();
            match extend_claim(&self.room.small, kept, bytes.div_ceil(SMALL_UNIT)) {
                Ok(taken) => self.taken = taken,
                Err(kept) => {
                    self.taken = kept;
                    return Err(too_much("too many requests at once", Duration::from_secs(1)));
                }
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

/// Extends a reservation to this many units. The error is the reservation as it was.
fn extend_claim(
    room: &Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
    wanted: usize,
) -> Result<Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>> {
    let has = taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    let Some(lacking) = wanted.checked_sub(has).filter(|lacking| *lacking > 0) else { return Ok(taken) };
    let lacking = u32::try_from(lacking).unwrap_or(u32::MAX);
    match (Arc::clone(room).try_acquire_many_owned(lacking), taken) {
        (Ok(more), Some(mut taken)) => {
            taken.merge(more);
            Ok(Some(taken))
        }
        (Ok(more), None) => Ok(Some(more)),
        (Err(_), taken) => Err(taken),
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
        assert!(taken(&room, SMALL).is_ok(), "a small request needs no room of large ones");
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
        assert!(claim.grow(1).is_err() && taken(&room, SMALL + 1).is_err());
        drop(claim);
        assert!(taken(&room, 16 * UNIT).is_ok());
    }

    #[test]
    fn small_requests_have_a_budget_of_their_own() {
        let room = MemoryBudget::new(16 * UNIT);
        let mut claims: Vec<MemoryClaim> =
            (0..ALL_SMALL / SMALL).map(|_| taken(&room, SMALL).unwrap()).collect();
        assert!(taken(&room, FREE + 1).is_err());
        let login = taken(&room, FREE).unwrap();
        assert!(taken(&room, 16 * UNIT).is_ok(), "large requests are not affected");
        claims[0].grow(1).unwrap();
        assert!(taken(&room, SMALL).is_ok(), "a request that has become large is no small one any more");
        let mut refused = taken(&room, SMALL).unwrap();
        assert!(refused.grow(16 * UNIT).is_err());
        drop((claims, login));
        assert!(taken(&room, SMALL).is_ok());
    }
}
