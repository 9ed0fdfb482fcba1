//! Memory for large bodies: what all requests together may take of it. A body of the usual size is not counted; one with
//! media may be a hundred megabytes, and a few idle clients could fill the machine with them. Keeps nobody waiting.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::Failure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::run::too_much;

/// Counted in these, since a semaphore counts no more than 2^29.
const UNIT: usize = 64 << 10;

/// What is left of the memory for large bodies.
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS))))
    }

    /// Room for a body, until what is returned goes.
    pub(crate) fn take(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Failure> {
        let units = bytes.div_ceil(UNIT as u64).try_into().unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.0).try_acquire_many_owned(units);
        taken.map_err(|_| too_much("too many large bodies at once", Duration::from_secs(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let room = Room::new(10 * UNIT);
        let first = room.take(6 * UNIT as u64).unwrap();
        assert_eq!(room.take(5 * UNIT as u64).unwrap_err().code().number(), "E4002");
        let second = room.take(3 * UNIT as u64 + 1).unwrap();
        drop(first);
        assert!(room.take(6 * UNIT as u64).is_ok());
        drop(second);
        assert!(room.take(10 * UNIT as u64).is_ok() && room.take(u64::MAX).is_err());
    }
}
