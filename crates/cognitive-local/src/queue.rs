//! Requests in the order in which they came, and the threads that work on them. Never runs on the async runtime, whose
//! threads must not compute.
//!
//! A bounded number is worked on at once; each of them has a thread, which the queue starts when it is first needed. All of
//! them read together, so none waits for the end of another. Those who come later wait in a line of bounded length, first
//! come, first served; whoever finds it full is told when to come back.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cognitive_contract::ports::{Attempt, ModelCall, ModelEnd, ProviderError};
use tokio::sync::mpsc::UnboundedSender;

/// The least and the longest time after which somebody is told to come back.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

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

/// How many requests there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    /// Those that are worked on.
    pub at_once: usize,
    /// Those that wait besides.
    pub waiting: usize,
}

/// Requests that wait, and who works.
pub(crate) struct Queue {
    limits: QueueLimits,
    line: Mutex<WorkLine>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkLine {
    jobs: VecDeque<Job>,
    workers: usize,
    /// How many of them have no request yet, those included that are being started or woken.
    idle: usize,
    /// Of each request that is worked on, whether its caller is gone.
    running: Vec<Arc<AtomicBool>>,
    /// How long the last answer took.
    last: Duration,
    is_closed: bool,
}

impl WorkLine {
    /// How many are worked on that somebody waits for. The place of a caller who is gone is free at once, although it takes
    /// its worker a token to notice.
    fn busy(&self) -> usize {
        self.running.iter().filter(|gone| !gone.load(Ordering::Relaxed)).count()
    }
}

impl Queue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        Self { limits, line: Mutex::default(), changed: Condvar::new() }
    }

    /// Puts a request at the end, and starts a worker for it if all are busy and there may be one more.
    pub(crate) fn push(self: &Arc<Self>, job: Job, work: &Arc<Work>) -> Result<(), ProviderError> {
        let room = self.limits.at_once.max(1).saturating_add(self.limits.waiting);
        let is_full = |line: &WorkLine| line.jobs.len() + line.busy() >= room;
        let mut line = self.line();
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
                // Somebody else will take it.
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

    /// Lets the workers go home.
    pub(crate) fn close(&self) {
        self.line().is_closed = true;
        self.changed.notify_all();
    }

    /// Sends away those who have waited too long or are gone. Whoever works calls it now and then, so no clock is
    /// needed: while nobody works, nobody waits.
    pub(crate) fn sweep(&self) {
        self.line().sweep();
    }

    /// The next request; `None` when the queue is closed. Waits for either.
    fn next(&self) -> Option<Job> {
        let mut line = self.line();
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

    /// Takes a worker back from a request, and notes how long the answer took if there was one.
    fn take_back(&self, job: &Job, took: Option<Duration>) {
        let mut line = self.line();
        line.idle += 1;
        line.running.retain(|other| !Arc::ptr_eq(other, &job.cancelled));
        line.last = took.unwrap_or(line.last);
    }

    fn line(&self) -> MutexGuard<'_, WorkLine> {
        // A list of jobs is whole whatever happened while it was held.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
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

/// How a request is answered.
pub(crate) type Work = dyn Fn(&Job, &Queue) -> Result<ModelEnd, ProviderError> + Send + Sync;

/// Starts a worker. A panic while it works ends that request with an error, and no other.
fn start(queue: Arc<Queue>, work: Arc<Work>) -> Result<(), ProviderError> {
    let body = move || {
        while let Some(job) = queue.next() {
            if job.is_cancelled() {
                queue.take_back(&job, None);
                continue;
            }
            let began = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&job, &queue)));
            let broken =
                || Err(ProviderError::Unexpected("the embedded model failed unexpectedly".to_owned()));
            let is_answer = outcome.as_ref().is_ok_and(Result::is_ok);
            // Before the end is told: whoever hears it finds the place free.
            queue.take_back(&job, is_answer.then(|| began.elapsed()));
            job.report(WorkerReport::End(outcome.unwrap_or_else(|_| broken())));
        }
    };
    let started = thread::Builder::new().name("embedded-model".to_owned()).spawn(body);
    let failed = |error| format!("cannot start a thread for the embedded model: {error}");
    started.map(drop).map_err(|error| ProviderError::Unavailable(failed(error)))
}
