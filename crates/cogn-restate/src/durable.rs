//! A durable run: the journal of the Restate server stores each answer before the run uses it. The run is the
//! runtime's own, restarted from the beginning when a worker dies; the journal returns the recorded answers
//! of its parts.
//!
//! Each step is one `run` of the SDK, whose closure drives the whole run until there is something to record.
//! So two operations of the context are never in flight at once, which the SDK forbids, while parts of a
//! composition still run concurrently. During a model call, the closure also listens for a cancellation.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use cogn::ModuleRun;
use cognitive_contract::{Envelope, ErrorCode, Failure};
use restate_sdk::context::RunFuture as _;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::errors::{HandlerResult, TerminalError};
use restate_sdk::serde::Json;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::review::RunReviewQueue;
use crate::run_journal::RunJournal;
use crate::steps::{KeptEntry, OpenReview, RunStep, WholeStep};

/// The error code of a cancelled invocation.
const CANCELLED: u16 = 409;

/// A signal that is never sent. Waiting for it means waiting for a cancellation.
const NEVER_SENT: &str = "cogn-never-sent";

/// A finished run, in the form of the journal.
pub(crate) struct FinishedRun {
    pub(crate) envelope: Value,
    /// The context that it stored, in order.
    pub(crate) context: Vec<KeptEntry>,
    /// The review that a person must still decide.
    pub(crate) review: Option<OpenReview>,
}

/// A run in progress in this process.
pub(crate) struct DurableRun {
    work: DrivenRun,
    stop: Option<oneshot::Sender<Failure>>,
    journal: Arc<RunJournal>,
    review_queue: Option<Arc<RunReviewQueue>>,
}

/// The runtime's run, and its answer when it has finished.
struct DrivenRun {
    future: Pin<Box<dyn Future<Output = Envelope> + Send>>,
    envelope: Option<Envelope>,
}

impl DrivenRun {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Envelope> {
        if self.envelope.is_none()
            && let Poll::Ready(envelope) = self.future.as_mut().poll(context)
        {
            self.envelope = Some(envelope);
        }
        self.envelope.clone().map_or(Poll::Pending, Poll::Ready)
    }
}

impl DurableRun {
    /// Combines a run with the journal of its host.
    pub(crate) fn new(
        run: ModuleRun,
        journal: Arc<RunJournal>,
        review_queue: Option<Arc<RunReviewQueue>>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            match stopped.await {
                Ok(reason) => reason,
                Err(_) => pending().await,
            }
        };
        let work = DrivenRun { future: Box::pin(run.run_until(stopped)), envelope: None };
        Self { work, stop: Some(stop), journal, review_queue }
    }

    /// Runs to the end. Resumes at the last recorded step if another worker died.
    pub(crate) async fn finish(mut self, ctx: &ContextInternal) -> FinishedRun {
        let mut context = Vec::new();
        loop {
            let run = &mut self;
            let step = ctx.run(move || async move { run.next_step(ctx).await });
            match step.name("step").await {
                Ok(Json(RunStep::Part(part))) => {
                    context.extend(part.context.iter().cloned());
                    self.journal.record_step(part);
                }
                Ok(Json(RunStep::Whole(whole))) => return finished_run(whole, context),
                Err(error) => {
                    let whole = self.end_early(ctx, &error).await;
                    return finished_run(whole, context);
                }
            }
        }
    }

    /// Drives the run until a part or the whole run has answered; the error means that it was cancelled.
    async fn next_step(&mut self, ctx: &ContextInternal) -> HandlerResult<Json<RunStep>> {
        let mut cancelled = pin!(ctx.signal::<Json<Value>>(NEVER_SENT));
        poll_fn(|context| {
            loop {
                if let Poll::Ready(envelope) = self.work.poll(context) {
                    return Poll::Ready(Ok(Json(RunStep::Whole(self.whole_step(&envelope)))));
                }
                // Recorded answers are delivered before new ones.
                if self.journal.give_next() {
                    continue;
                }
                if let Some(part) = self.journal.take_finished() {
                    return Poll::Ready(Ok(Json(RunStep::Part(part))));
                }
                return match cancelled.as_mut().poll(context) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
                    Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
                };
            }
        })
        .await
    }

    /// Cancels the run, which drops its model calls, and records its final envelope.
    async fn end_early(&mut self, ctx: &ContextInternal, error: &TerminalError) -> WholeStep {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(early_end(error));
        }
        let run = self;
        let last = ctx.run(move || async move {
            let envelope = poll_fn(|context| run.work.poll(context)).await;
            Ok(Json(run.whole_step(&envelope)))
        });
        match last.name("ended early").await {
            Ok(Json(whole)) => whole,
            Err(error) => {
                let envelope = serde_json::to_value(early_end(&error).into_envelope()).unwrap_or_default();
                WholeStep { envelope, context: Vec::new(), review: None }
            }
        }
    }

    fn whole_step(&self, envelope: &Envelope) -> WholeStep {
        WholeStep {
            envelope: serde_json::to_value(envelope).unwrap_or_default(),
            context: self.journal.take_entries(),
            review: self.review_queue.as_ref().and_then(|review_queue| review_queue.open_review()),
        }
    }
}

fn finished_run(whole: WholeStep, mut context: Vec<KeptEntry>) -> FinishedRun {
    context.extend(whole.context);
    FinishedRun { envelope: whole.envelope, context, review: whole.review }
}

/// The failure of a run that the server ended.
pub(crate) fn early_end(error: &TerminalError) -> Failure {
    if error.code() == CANCELLED {
        Failure::cancellation("the invocation was cancelled")
    } else {
        let message = format!("the server ended the invocation: {}", error.message());
        Failure::new(ErrorCode::InternalError, message).with_detail("status", json!(error.code()))
    }
}
