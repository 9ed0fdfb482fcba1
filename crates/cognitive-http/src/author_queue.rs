//! The queue for work of authors with module files, such as previews, checks and saves. It runs on blocking threads, a
//! few at a time. Each key has a share of them and a bounded queue, so that one author cannot keep out the others. A
//! client that leaves gives up its place in the queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::lock::Lock;
use cognitive_contract::{ErrorCode, Failure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::run::too_much;

/// The work of all authors at once. Files are read on threads that would otherwise pile up behind a slow disk.
const ALL: usize = 4;
/// The work of one key at once.
const SHARE: usize = 2;
/// The most requests of one key that run or wait. A page of Studio sends a handful at once.
const MOST: usize = 32;
/// The longest time in the queue.
const PATIENCE: Duration = Duration::from_secs(20);
/// The number of keys above which idle ones are forgotten.
const MANY: usize = 1_000;

/// The queue of all keys.
#[derive(Debug)]
pub(crate) struct AuthorQueue {
    all: Arc<Semaphore>,
    by_key: Lock<HashMap<Arc<str>, KeyQueue>>,
}

#[derive(Debug, Clone)]
struct KeyQueue {
    /// Requests that run or wait.
    present: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// A place in the queue, released on drop.
pub(crate) struct AuthorPlace {
    _all: OwnedSemaphorePermit,
    _running: OwnedSemaphorePermit,
    _present: OwnedSemaphorePermit,
}

impl Default for AuthorQueue {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL)), by_key: Lock::default() }
    }
}

impl AuthorQueue {
    /// Waits until work of this key may run. (E4002)
    pub(crate) async fn enter(&self, key: &Arc<str>) -> Result<AuthorPlace, Failure> {
        let queue = self.for_key(key);
        let busy = || too_much("too many requests for module files at once", Duration::from_secs(1));
        let present = queue.present.try_acquire_owned().map_err(|_| busy())?;
        let places = timeout(PATIENCE, async {
            let running = queue.running.acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>((running, Arc::clone(&self.all).acquire_owned().await?))
        });
        match places.await {
            Ok(Ok((running, all))) => Ok(AuthorPlace { _all: all, _running: running, _present: present }),
            Ok(Err(_)) => Err(Failure::new(ErrorCode::InternalError, "the modules can no longer be read")),
            Err(_) => Err(busy()),
        }
    }

    fn for_key(&self, key: &Arc<str>) -> KeyQueue {
        let mut by_key = self.by_key.lock();
        if by_key.len() > MANY {
            by_key.retain(|_, queue| queue.present.available_permits() < MOST);
        }
        let new =
            || KeyQueue { present: Arc::new(Semaphore::new(MOST)), running: Arc::new(Semaphore::new(SHARE)) };
        by_key.entry(Arc::clone(key)).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    /// Polls a future once.
    async fn once<F: Future>(future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn one_author_neither_keeps_out_the_others_nor_waits_for_ever() {
        let queue = AuthorQueue::default();
        let (ann, bob, eve): (Arc<str>, Arc<str>, Arc<str>) = ("ann".into(), "bob".into(), "eve".into());
        let mut running = Vec::new();
        for _ in 0..SHARE {
            running.push(queue.enter(&eve).await.unwrap());
        }
        let mut waiting: Vec<_> = (SHARE..MOST).map(|_| Box::pin(queue.enter(&eve))).collect();
        for each in &mut waiting {
            assert!(once(each.as_mut()).await.is_none(), "it waits");
        }
        let refused = queue.enter(&eve).await.err().unwrap();
        assert_eq!(refused.number(), "E4002");
        let place = queue.enter(&ann).await.unwrap();
        assert!(once(queue.enter(&bob)).await.unwrap().is_ok(), "others run at once");
        drop(place);
        // The client of one waiting request leaves, and another one may come.
        waiting.pop();
        assert!(once(queue.enter(&eve)).await.is_none());
        let started = tokio::time::Instant::now();
        assert!(waiting.remove(0).await.is_err());
        assert_eq!(started.elapsed(), PATIENCE);
        drop(waiting);
        running.pop();
        assert!(queue.enter(&eve).await.is_ok(), "a share that became free");
    }
}
