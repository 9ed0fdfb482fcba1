//! One run as a workflow, by its key: made once however often it is asked for, its envelope there for all who want it, and
//! where a person has to look at it, a promise that only a decision keeps.

use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::{ErrorCode, Failure};
use restate_sdk::context::RunFuture as _;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;
use serde_json::{Value, json};

use super::{Service, ServiceBoxFuture, answer, unknown};
use crate::durable::{FinishedRun, early_end};
use crate::review::{SentDecision, WaitingAnswer, decided};
use crate::wishes::{self, GivenBody, NamedBody};
use crate::worker::{DurableWorker, WantedRun, refused};

/// The promise of the envelope.
const ENVELOPE: &str = "envelope";
/// The promise of a decision.
const DECISION: &str = "decision";
/// The promise of what a person has to decide; nothing, if there is nothing to decide. Only of runs that wait.
const REVIEW: &str = "review";

/// The runs of one module, or of those that callers name.
pub(super) struct RunWorkflow {
    pub(super) worker: Arc<DurableWorker>,
    pub(super) module: Option<String>,
}

impl Service for RunWorkflow {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let (worker, module) = (Arc::clone(&self.worker), self.module.clone());
        Box::pin(async move {
            let (body, about) = ctx.input::<Bytes>().await;
            let invocation = about.invocation_id;
            let said = match ctx.handler_name() {
                "run" => {
                    let envelope = match wanted(module, &body, &invocation) {
                        Ok(wanted) => run(&worker, &ctx, wanted).await,
                        Err(failure) => refused(failure, &invocation),
                    };
                    ctx.resolve_promise(ENVELOPE, Json(envelope.clone()));
                    envelope
                }
                "envelope" => match ctx.promise::<Json<Value>>(ENVELOPE).await {
                    Ok(Json(envelope)) => envelope,
                    Err(error) => refused(early_end(&error), &invocation),
                },
                "status" => match status(&ctx).await {
                    Ok(status) => status,
                    Err(error) => refused(early_end(&error), &invocation),
                },
                "review" => match ctx.promise::<Json<Option<WaitingAnswer>>>(REVIEW).await {
                    Ok(Json(waiting)) => shown(waiting),
                    Err(error) => refused(early_end(&error), &invocation),
                },
                "decide" => match decide(&worker, &ctx, &body).await {
                    Ok(Ok(said)) => said,
                    Ok(Err(failure)) => refused(failure, &invocation),
                    Err(error) => refused(early_end(&error), &invocation),
                },
                _ => return unknown(&ctx),
            };
            answer(&ctx, said);
            Ok(())
        })
    }
}

fn wanted(module: Option<String>, body: &[u8], invocation: &str) -> Result<WantedRun, Failure> {
    let (module, body, wishes) = match module {
        Some(module) => {
            let (body, wishes) = wishes::read(body)?;
            (module, body, wishes)
        }
        None => {
            let named = NamedBody::read(body)?;
            let wishes = named.wishes()?;
            (named.module, GivenBody::Json(named.input), wishes)
        }
    };
    Ok(WantedRun { module, body, wishes, invocation: invocation.to_owned(), session: None })
}

/// The run, and the decision of a person where it waits for one.
async fn run(worker: &DurableWorker, ctx: &ContextInternal, wanted: WantedRun) -> Value {
    let (module, invocation, waits) =
        (wanted.module.clone(), wanted.invocation.clone(), wanted.wishes.waits());
    let FinishedRun { envelope, review, .. } = worker.finish(ctx, wanted).await;
    let waiting = review.map(|review| WaitingAnswer { module, review, envelope: envelope.clone() });
    if waits {
        ctx.resolve_promise(REVIEW, Json(waiting.clone()));
    }
    let Some(waiting) = waiting else { return envelope };
    let decision = match ctx.promise::<Json<SentDecision>>(DECISION).await {
        Ok(Json(decision)) => decision,
        Err(error) => return refused(early_end(&error), &invocation),
    };
    if let Some(desk) = worker.kept_desk() {
        let (id, decision) = (&waiting.review.id, decision.as_new());
        // What was decided holds, whether the database of this worker knows of the run or not.
        let _ = ctx.run(|| async move { Ok(desk.decide(id, &decision).is_ok()) }).name("decision kept").await;
    }
    decided(&decision, &waiting.envelope)
}

async fn status(ctx: &ContextInternal) -> Result<Value, TerminalError> {
    if ctx.peek_promise::<Json<Value>>(ENVELOPE).await?.is_some() {
        return Ok(json!({ "state": "done" }));
    }
    let review = ctx.peek_promise::<Json<Option<WaitingAnswer>>>(REVIEW).await?;
    let waits = review.is_some_and(|Json(waiting)| waiting.is_some());
    Ok(json!({ "state": if waits { "waiting" } else { "running" } }))
}

/// What a person has to decide, as soon as that is known.
fn shown(waiting: Option<WaitingAnswer>) -> Value {
    match waiting {
        Some(WaitingAnswer { module, review, envelope }) => json!({
            "state": "waiting", "module": module, "rule": review.rule, "review": review.id, "envelope": envelope,
        }),
        None => json!({ "state": "done" }),
    }
}

/// Keeps the promise of a decision. The first one stands: another one is refused, and the same one again changes nothing.
async fn decide(
    worker: &DurableWorker,
    ctx: &ContextInternal,
    body: &[u8],
) -> Result<Result<Value, Failure>, TerminalError> {
    let review = ctx.peek_promise::<Json<Option<WaitingAnswer>>>(REVIEW).await?;
    let Some(waiting) = review.and_then(Json::into_inner) else {
        let failure = Failure::new(ErrorCode::InvalidInput, "no answer waits for a decision here");
        return Ok(Err(failure.suggest("`review` says when one does, `status` what the run is at")));
    };
    let module = worker.module(&waiting.module).ok();
    let decision = match SentDecision::read(body, &waiting, module.as_deref()) {
        Ok(decision) => decision,
        Err(failure) => return Ok(Err(failure)),
    };
    if ctx.peek_promise::<Json<SentDecision>>(DECISION).await?.is_none() {
        ctx.resolve_promise(DECISION, Json(decision.clone()));
    }
    let Json(stands) = ctx.promise::<Json<SentDecision>>(DECISION).await?;
    if stands != decision {
        let failure = Failure::new(ErrorCode::InvalidInput, "the answer was decided otherwise before");
        return Ok(Err(failure.with_detail("decision", json!(stands))));
    }
    Ok(Ok(json!({ "decided": stands })))
}
