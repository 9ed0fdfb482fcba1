//! One run as a workflow with a key. It runs once, however often it is requested, and all callers get the
//! same envelope. If a person must review the answer, a promise waits for the decision.

use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::{ErrorCode, Failure};
use restate_sdk::context::RunFuture as _;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;
use serde_json::{Value, json};

use super::{Service, ServiceBoxFuture, answer, unknown_handler};
use crate::durable::{FinishedRun, early_end};
use crate::review::{SentDecision, WaitingAnswer, apply_decision};
use crate::run_request::{self, GivenBody, NamedBody};
use crate::worker::{DurableWorker, WantedRun, failure_json};

/// The promise of the envelope.
const ENVELOPE: &str = "envelope";
/// The promise of a decision.
const DECISION: &str = "decision";
/// The promise of the waiting answer; null if there is nothing to decide. Only used by runs that wait.
const REVIEW: &str = "review";

/// The runs of one module, or of the modules that callers name.
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
                    let envelope = match requested_run(module, &body, &invocation) {
                        Ok(wanted) => run(&worker, &ctx, wanted).await,
                        Err(failure) => failure_json(failure, &invocation),
                    };
                    ctx.resolve_promise(ENVELOPE, Json(envelope.clone()));
                    envelope
                }
                "envelope" => match ctx.promise::<Json<Value>>(ENVELOPE).await {
                    Ok(Json(envelope)) => envelope,
                    Err(error) => failure_json(early_end(&error), &invocation),
                },
                "status" => match status(&ctx).await {
                    Ok(status) => status,
                    Err(error) => failure_json(early_end(&error), &invocation),
                },
                "review" => match ctx.promise::<Json<Option<WaitingAnswer>>>(REVIEW).await {
                    Ok(Json(waiting)) => waiting_json(waiting),
                    Err(error) => failure_json(early_end(&error), &invocation),
                },
                "decide" => match decide(&worker, &ctx, &body).await {
                    Ok(Ok(said)) => said,
                    Ok(Err(failure)) => failure_json(failure, &invocation),
                    Err(error) => failure_json(early_end(&error), &invocation),
                },
                _ => return unknown_handler(&ctx),
            };
            answer(&ctx, said);
            Ok(())
        })
    }
}

fn requested_run(module: Option<String>, body: &[u8], invocation: &str) -> Result<WantedRun, Failure> {
    let (module, body, wishes) = match module {
        Some(module) => {
            let (body, wishes) = run_request::read(body)?;
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

/// Runs the module, and waits for a person's decision if requested.
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
        Err(error) => return failure_json(early_end(&error), &invocation),
    };
    if let Some(review_queue) = worker.stored_queue() {
        let (id, decision) = (&waiting.review.id, decision.as_new());
        // The decision is valid even if this worker's database does not contain the run.
        let _ = ctx
            .run(|| async move { Ok(review_queue.decide(id, &decision).is_ok()) })
            .name("decision kept")
            .await;
    }
    apply_decision(&decision, &waiting.envelope)
}

async fn status(ctx: &ContextInternal) -> Result<Value, TerminalError> {
    if ctx.peek_promise::<Json<Value>>(ENVELOPE).await?.is_some() {
        return Ok(json!({ "state": "done" }));
    }
    let review = ctx.peek_promise::<Json<Option<WaitingAnswer>>>(REVIEW).await?;
    let waits = review.is_some_and(|Json(waiting)| waiting.is_some());
    Ok(json!({ "state": if waits { "waiting" } else { "running" } }))
}

/// Formats the waiting answer for the reviewer.
fn waiting_json(waiting: Option<WaitingAnswer>) -> Value {
    match waiting {
        Some(WaitingAnswer { module, review, envelope }) => json!({
            "state": "waiting", "module": module, "rule": review.rule, "review": review.id, "envelope": envelope,
        }),
        None => json!({ "state": "done" }),
    }
}

/// Resolves the promise of a decision. The first decision wins: a different one is refused, and repeating it
/// changes nothing.
async fn decide(
    worker: &DurableWorker,
    ctx: &ContextInternal,
    body: &[u8],
) -> Result<Result<Value, Failure>, TerminalError> {
    let review = ctx.peek_promise::<Json<Option<WaitingAnswer>>>(REVIEW).await?;
    let Some(waiting) = review.and_then(Json::into_inner) else {
        let failure = Failure::new(ErrorCode::InvalidInput, "no answer waits for a decision here");
        return Ok(Err(failure.suggest("`review` shows a waiting answer, `status` the progress of the run")));
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
        let failure = Failure::new(ErrorCode::InvalidInput, "the answer already has another decision");
        return Ok(Err(failure.with_detail("decision", json!(stands))));
    }
    Ok(Ok(json!({ "decided": stands })))
}
