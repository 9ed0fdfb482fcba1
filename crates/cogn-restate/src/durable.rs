//! A run whose every answer is in the journal of the Restate server before anything is done with it. The run itself is the
//! one of the runtime, made again from its beginning whenever a worker dies; the journal gives it what parts answered.
//!
//! Each step is one `run` of the SDK whose closure drives the whole run until something is worth recording: so no two
//! operations of the context are ever under way at once, which the SDK does not allow, while parts of a composition still
//! run at the same time. While a model is asked the closure also listens for a cancellation.

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

use crate::review::WaitingDesk;
use crate::run_journal::RunJournal;
use crate::steps::{KeptEntry, OpenReview, RunStep, WholeStep};

/// The code by which the server says that an invocation is cancelled.
const CANCELLED: u16 = 409;

/// A signal that nobody sends. To wait for it is to wait for a cancellation.
const NEVER_SENT: &str = "cogn-never-sent";

/// A run that is over, in the words of the journal.
pub(crate) struct FinishedRun {
    pub(crate) envelope: Value,
    /// Context that it kept, in order.
    pub(crate) context: Vec<KeptEntry>,
    /// The review that a person owes it.
    pub(crate) review: Option<OpenReview>,
}

/// A run as it goes on here.
pub(crate) struct DurableRun {
    work: DrivenRun,
    stop: Option<oneshot::Sender<Failure>>,
    journal: Arc<RunJournal>,
    desk: Option<Arc<WaitingDesk>>,
}

/// The run of the runtime, and its answer once there is one.
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
    /// A run with the journal that its host asks.
    pub(crate) fn new(run: ModuleRun, journal: Arc<RunJournal>, desk: Option<Arc<WaitingDesk>>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            match stopped.await {
                Ok(reason) => reason,
                Err(_) => pending().await,
            }
        };
        let work = DrivenRun { future: Box::pin(run.run_until(stopped)), envelope: None };
        Self { work, stop: Some(stop), journal, desk }
    }

    /// Runs to the end, or to where it was when another worker died and from there to the end.
    pub(crate) async fn finish(mut self, ctx: &ContextInternal) -> FinishedRun {
        let mut context = Vec::new();
        loop {
            let run = &mut self;
            let step = ctx.run(move || async move { run.next_step(ctx).await });
            match step.name("step").await {
                Ok(Json(RunStep::Part(part))) => {
                    context.extend(part.context.iter().cloned());
                    self.journal.recorded(part);
                }
                Ok(Json(RunStep::Whole(whole))) => return finished(whole, context),
                Err(error) => {
                    let whole = self.end_early(ctx, &error).await;
                    return finished(whole, context);
                }
            }
        }
    }

    /// Drives the run until a part has answered or the whole has; the error is that it was cancelled.
    async fn next_step(&mut self, ctx: &ContextInternal) -> HandlerResult<Json<RunStep>> {
        let mut cancelled = pin!(ctx.signal::<Json<Value>>(NEVER_SENT));
        poll_fn(|context| {
            loop {
                if let Poll::Ready(envelope) = self.work.poll(context) {
                    return Poll::Ready(Ok(Json(RunStep::Whole(self.whole(&envelope)))));
                }
                // What is recorded comes before what is new.
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

    /// Ends the run before its time, which drops the calls of its models, and records what it says to that.
    async fn end_early(&mut self, ctx: &ContextInternal, error: &TerminalError) -> WholeStep {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(early_end(error));
        }
        let run = self;
        let last = ctx.run(move || async move {
            let envelope = poll_fn(|context| run.work.poll(context)).await;
            Ok(Json(run.whole(&envelope)))
        });
        match last.name("ended early").await {
            Ok(Json(whole)) => whole,
            Err(error) => {
                let envelope = serde_json::to_value(early_end(&error).into_envelope()).unwrap_or_default();
                WholeStep { envelope, context: Vec::new(), review: None }
            }
        }
    }

    fn whole(&self, envelope: &Envelope) -> WholeStep {
        WholeStep {
            envelope: serde_json::to_value(envelope).unwrap_or_default(),
            context: self.journal.kept(),
            review: self.desk.as_ref().and_then(|desk| desk.entered()),
        }
    }
}

fn finished(whole: WholeStep, mut context: Vec<KeptEntry>) -> FinishedRun {
    context.extend(whole.context);
    FinishedRun { envelope: whole.envelope, context, review: whole.review }
}

/// Why a run ends that the server does not let go on.
pub(crate) fn early_end(error: &TerminalError) -> Failure {
    if error.code() == CANCELLED {
        Failure::cancelled("the invocation was cancelled")
    } else {
        let message = format!("the server ended the invocation: {}", error.message());
        Failure::new(ErrorCode::InternalError, message).with_detail("status", json!(error.code()))
    }
}
