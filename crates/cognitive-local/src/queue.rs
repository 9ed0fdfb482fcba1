//! Requests in the order in which they came, and the threads that work on them. Never runs on the async runtime, whose
//! threads must not compute.
//!
//! First come, first served, and each to its end: an answer has a limit of tokens, so nobody waits longer than those
//! before him take, and nobody starves. Slices of time would let all wait for the last one, and hold the keys and values
//! of every request in memory at once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use cognitive_contract::ports::{Attempt, ModelCall, ModelEnd, ProviderError};
use tokio::sync::mpsc::UnboundedSender;

/// More requests than this do not wait; they are told to come back.
const MAX_WAITING: usize = 256;

/// What a worker tells the one who asked.
#[derive(Debug)]
pub(crate) enum WorkerReport {
    Piece(String),
    Attempt(Attempt),
    End(Result<ModelEnd, ProviderError>),
}

/// One request.
pub(crate) struct Job {
    pub call: ModelCall,
    pub deadline: Option<Instant>,
    /// Nobody waits for the answer any more.
    pub cancelled: Arc<AtomicBool>,
    pub reports: UnboundedSender<WorkerReport>,
}

impl Job {
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Reports something. Whoever no longer listens has cancelled; that is noticed elsewhere.
    pub(crate) fn report(&self, report: WorkerReport) {
        let _ = self.reports.send(report);
    }
}

/// Requests that wait.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Queue {
    /// Puts a request at the end.
    pub(crate) fn push(&self, job: Job) -> Result<(), ProviderError> {
        let mut waiting = self.lock();
        if waiting.jobs.len() >= MAX_WAITING {
            return Err(ProviderError::RateLimited { retry_after: None });
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// Lets the workers go home.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Sends away those who have waited too long or are gone. Whoever works calls it now and then, so no clock is
    /// needed: while nobody works, nobody waits.
    pub(crate) fn sweep(&self) {
        let mut waiting = self.lock();
        waiting.jobs.retain(|job| {
            let is_late = job.is_late();
            if is_late {
                job.report(WorkerReport::End(Err(ProviderError::Timeout)));
            }
            !is_late && !job.is_cancelled()
        });
    }

    /// The next request; `None` when the queue is closed. Waits for either.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if waiting.is_closed {
                return None;
            }
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A list of jobs is whole whatever happened while it was held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a request is answered.
pub(crate) type Work = dyn Fn(&Job, &Queue) -> Result<ModelEnd, ProviderError> + Send + Sync;

/// Starts a worker. A panic while it works ends that request with an error, and no other.
pub(crate) fn start(queue: Arc<Queue>, work: Arc<Work>) -> Result<(), ProviderError> {
    let body = move || {
        while let Some(job) = queue.next() {
            if job.is_cancelled() {
                continue;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&job, &queue)));
            let broken =
                || Err(ProviderError::Unexpected("the embedded model failed unexpectedly".to_owned()));
            job.report(WorkerReport::End(outcome.unwrap_or_else(|_| broken())));
        }
    };
    let started = thread::Builder::new().name("embedded-model".to_owned()).spawn(body);
    let failed = |error| format!("cannot start a thread for the embedded model: {error}");
    started.map(drop).map_err(|error| ProviderError::Unavailable(failed(error)))
}
