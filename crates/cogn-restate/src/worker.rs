//! The state that all invocations of a worker share: the runtime, and how its runs become durable. Configures
//! no provider: the crate `cogn` decides modules, models and limits.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cogn::{ModuleRun, Runtime};
use cognitive_contract::ports::PartJournal;
use cognitive_contract::{Failure, Module};
use cognitive_ports::review::ReviewQueue;
use cognitive_runtime::{Clock, Host, Reviewing};
use restate_sdk::endpoint::ContextInternal;
use serde_json::{Value, json};

use crate::durable::{DurableRun, FinishedRun};
use crate::review::RunReviewQueue;
use crate::run_journal::RunJournal;
use crate::run_request::{DurableRunOptions, GivenBody};
use crate::session_context::SessionContext;
use crate::steps::KeptEntry;

/// A worker: a runtime whose runs are recorded in the journal of a Restate server.
pub struct DurableWorker {
    pub(crate) runtime: Runtime,
}

/// A requested run.
pub(crate) struct WantedRun {
    pub(crate) module: String,
    pub(crate) body: GivenBody,
    pub(crate) wishes: DurableRunOptions,
    /// The invocation id. It identifies the run in logs, audit and envelope, across processes.
    pub(crate) invocation: String,
    pub(crate) session: Option<WantedSession>,
}

/// The session of a run.
pub(crate) struct WantedSession {
    /// The key of the conversation: `SESSION`, or `USER/SESSION`.
    pub(crate) key: String,
    pub(crate) state: Vec<KeptEntry>,
    /// The start of the run, in any process. The expiry of context is relative to this time.
    pub(crate) began: SystemTime,
}

impl DurableWorker {
    /// Creates a worker with this runtime.
    #[must_use]
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }

    /// Returns a module by its name.
    pub(crate) fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.runtime.modules().module(name)
    }

    /// Runs a module, or resumes the run.
    pub(crate) async fn finish(&self, ctx: &ContextInternal, wanted: WantedRun) -> FinishedRun {
        let session = wanted.session.as_ref();
        let context = session.map(|session| Arc::new(SessionContext::new(&session.state)));
        let journal = Arc::new(RunJournal::new(context.clone()));
        let review_queue = wanted.wishes.waits().then(|| self.review_queue(&wanted.invocation));
        let clock = session.map(|session| session.began);
        let run = self.run(wanted).tune(|host: &mut Host| {
            host.journal = Some(Arc::clone(&journal) as Arc<dyn PartJournal>);
            // Workers do not share a database, so context is only stored in sessions.
            host.context = context.map(|context| context as _);
            if let Some(began) = clock {
                host.clock = Clock::from_fn(move || began);
            }
            if let Some(review_queue) = &review_queue {
                let rules = self.runtime.settings().review.clone();
                host.review =
                    Some(Reviewing { rules, review_queue: Arc::clone(review_queue) as Arc<dyn ReviewQueue> });
            }
        });
        DurableRun::new(run, journal, review_queue).finish(ctx).await
    }

    /// A review queue in front of the worker's own that records whether the run waits.
    fn review_queue(&self, invocation: &str) -> Arc<RunReviewQueue> {
        let behind = self.runtime.host().review.as_ref().map(|review| Arc::clone(&review.review_queue));
        Arc::new(RunReviewQueue::new(behind, invocation.to_owned()))
    }

    /// The worker's review queue, which stores decisions beyond the run.
    pub(crate) fn stored_queue(&self) -> Option<Arc<dyn ReviewQueue>> {
        self.runtime.host().review.as_ref().map(|review| Arc::clone(&review.review_queue))
    }

    fn run(&self, wanted: WantedRun) -> ModuleRun {
        let WantedRun { module, body, wishes, invocation, session } = wanted;
        let run = self.runtime.module_or_envelope(&module).options(|options| {
            wishes.apply(options);
            options.trace_id = Some(invocation);
            options.remote = true;
            if let Some(session) = session {
                let (user, _) = session.key.rsplit_once('/').unwrap_or_default();
                options.user = (!user.is_empty()).then(|| user.to_owned());
                options.session = Some(session.key);
            }
        });
        body.give(run)
    }
}

/// Converts a failure to a handler's envelope, with the trace id of the run.
pub(crate) fn failure_json(failure: Failure, invocation: &str) -> Value {
    let mut envelope = failure.for_remote_caller().into_envelope();
    envelope.meta_mut().extra.insert("trace_id".to_owned(), json!(invocation));
    serde_json::to_value(&envelope).unwrap_or_default()
}

/// Converts a time for the journal: microseconds since 1970.
pub(crate) fn micros(moment: SystemTime) -> u64 {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Converts a time from the journal.
pub(crate) fn moment(micros: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros)).unwrap_or(SystemTime::UNIX_EPOCH)
}
