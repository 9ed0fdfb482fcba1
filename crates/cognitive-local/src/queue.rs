//! The request queue and its worker threads. Never runs on the async runtime, whose threads must not compute.
//!
//! A bounded number of requests runs in parallel, each on a thread that the queue starts on first need. All of them
//! read in batches, so none waits for the end of another. Further requests wait in a bounded queue, first come, first
//! served. If it is full, a request gets a rate-limit error with a retry time.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{Attempt, ModelCall, ModelEnd, ProviderError};
use tokio::sync::mpsc::UnboundedSender;

/// The shortest and the longest retry time in a rate-limit error. The estimate is the time of the last answer, which
/// may be far off in both directions.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A message of a worker to the caller.
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
    /// Set if the caller is gone.
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

    /// Sends a report. A closed channel is ignored: the caller has cancelled, which is detected elsewhere.
    pub(crate) fn report(&self, report: WorkerReport) {
        let _ = self.reports.send(report);
    }
}

/// The limits of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    /// The number of parallel requests.
    pub at_once: usize,
    /// The number of waiting requests.
    pub waiting: usize,
}

/// Waiting requests, and the workers.
pub(crate) struct Queue {
    limits: QueueLimits,
    line: Lock<WorkLine>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkLine {
    jobs: VecDeque<Job>,
    workers: usize,
    /// The number of workers without a request, including those that are being started or woken.
    idle: usize,
    /// For each running request, whether its caller is gone.
    running: Vec<Arc<AtomicBool>>,
    /// The duration of the last answer.
    last: Duration,
    is_closed: bool,
}

impl WorkLine {
    /// Returns the number of running requests with a caller. The place of a gone caller is free at once, although its
    /// worker notices only at the next token.
    fn busy_workers(&self) -> usize {
        self.running.iter().filter(|gone| !gone.load(Ordering::Relaxed)).count()
    }
}

impl Queue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        Self { limits, line: Lock::default(), changed: Condvar::new() }
    }

    /// Appends a request. Starts a worker for it if all are busy and the limit allows another one.
    pub(crate) fn push(self: &Arc<Self>, job: Job, work: &Arc<Work>) -> Result<(), ProviderError> {
        let room = self.limits.at_once.max(1).saturating_add(self.limits.waiting);
        let is_full = |line: &WorkLine| line.jobs.len() + line.busy_workers() >= room;
        let mut line = self.line.lock();
        if is_full(&line) {
            line.sweep();
        }
        if is_full(&line) {
            let wait = line.last.clamp(SHORTEST_WAIT, LONGEST_WAIT);
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            return Err(ProviderError::RateLimited { retry_after: Some(Duration::from_secs(seconds)) });
        }
        line.jobs.push_back(job);
        if line.jobs.len() > line.idle && line.workers < self.limits.at_once.max(1) {
            match start(Arc::clone(self), Arc::clone(work)) {
                Ok(()) => (line.workers, line.idle) = (line.workers + 1, line.idle + 1),
                // Another worker will take it.
                Err(_) if line.workers > 0 => {}
                Err(error) => {
                    line.jobs.pop_back();
                    return Err(error);
                }
            }
        }
        drop(line);
        self.changed.notify_one();
        Ok(())
    }

    /// Ends the workers.
    pub(crate) fn close(&self) {
        self.line.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Removes requests that have timed out or are cancelled. Busy workers call this regularly, so no timer is needed:
    /// without busy workers, no request waits.
    pub(crate) fn sweep(&self) {
        self.line.lock().sweep();
    }

    /// Waits for the next request; returns `None` when the queue is closed.
    fn next(&self) -> Option<Job> {
        let mut line = self.line.lock();
        loop {
            if line.is_closed {
                return None;
            }
            if let Some(job) = line.jobs.pop_front() {
                line.idle = line.idle.saturating_sub(1);
                line.running.push(Arc::clone(&job.cancelled));
                return Some(job);
            }
            line = self.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns a worker to the queue, and records the duration of the answer if there was one.
    fn return_worker(&self, job: &Job, took: Option<Duration>) {
        let mut line = self.line.lock();
        line.idle += 1;
        line.running.retain(|other| !Arc::ptr_eq(other, &job.cancelled));
        line.last = took.unwrap_or(line.last);
    }
}

impl WorkLine {
    fn sweep(&mut self) {
        self.jobs.retain(|job| {
            let is_late = job.is_late();
            if is_late {
                job.report(WorkerReport::End(Err(ProviderError::Timeout)));
            }
            !is_late && !job.is_cancelled()
        });
    }
}

/// The function that answers a request.
pub(crate) type Work = dyn Fn(&Job, &Queue) -> Result<ModelEnd, ProviderError> + Send + Sync;

/// Starts a worker. A panic during a request ends only that request, with an error.
fn start(queue: Arc<Queue>, work: Arc<Work>) -> Result<(), ProviderError> {
    let body = move || {
        while let Some(job) = queue.next() {
            if job.is_cancelled() {
                queue.return_worker(&job, None);
                continue;
            }
            let began = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&job, &queue)));
            let broken =
                || Err(ProviderError::Unexpected("the embedded model failed unexpectedly".to_owned()));
            let is_answer = outcome.as_ref().is_ok_and(Result::is_ok);
            // Before the end is reported, so that the place is free when the caller receives it.
            queue.return_worker(&job, is_answer.then(|| began.elapsed()));
            job.report(WorkerReport::End(outcome.unwrap_or_else(|_| broken())));
        }
    };
    let started = thread::Builder::new().name("embedded-model".to_owned()).spawn(body);
    let failed = |error| format!("cannot start a thread for the embedded model: {error}");
    started.map(drop).map_err(|error| ProviderError::Unavailable(failed(error)))
}
