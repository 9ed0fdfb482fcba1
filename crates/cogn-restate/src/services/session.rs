//! A session as a virtual object. Its runs are serialized, and each sees the context stored by earlier ones.
//! The context is the state of the object; a run that fails on the way does not change it.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use restate_sdk::context::RunFuture as _;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;
use serde_json::{Value, json};

use super::{Service, ServiceBoxFuture, answer, unknown_handler};
use crate::durable::early_end;
use crate::run_request::{GivenBody, NamedBody};
use crate::session_context::merged_state;
use crate::steps::KeptEntry;
use crate::worker::{DurableWorker, WantedRun, WantedSession, failure_json, micros, moment};

/// The state key of the context.
const CONTEXT: &str = "context";

/// The object of all sessions.
pub(super) struct SessionObject {
    pub(super) worker: Arc<DurableWorker>,
}

impl Service for SessionObject {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let worker = Arc::clone(&self.worker);
        Box::pin(async move {
            let (body, about) = ctx.input::<Bytes>().await;
            let said = match ctx.handler_name() {
                "run" => run(&worker, &ctx, &body, (about.key, about.invocation_id)).await,
                "context" => match kept_entries(&ctx).await {
                    Ok(entries) => json!({ "context": entries }),
                    Err(error) => failure_json(early_end(&error), &about.invocation_id),
                },
                "forget" => {
                    ctx.clear_all();
                    json!({ "forgotten": about.key })
                }
                _ => return unknown_handler(&ctx),
            };
            answer(&ctx, said);
            Ok(())
        })
    }
}

async fn kept_entries(ctx: &ContextInternal) -> Result<Vec<KeptEntry>, TerminalError> {
    Ok(ctx.get::<Json<Vec<KeptEntry>>>(CONTEXT).await?.map(Json::into_inner).unwrap_or_default())
}

async fn run(
    worker: &DurableWorker,
    ctx: &ContextInternal,
    body: &[u8],
    (key, invocation): (String, String),
) -> Value {
    let read = NamedBody::read(body).and_then(|named| {
        let wishes = named.wishes()?;
        // A session that waits for a person would block all later requests.
        wishes.refuse_waiting()?;
        Ok((named, wishes))
    });
    let (named, wishes) = match read {
        Ok(read) => read,
        Err(failure) => return failure_json(failure, &invocation),
    };
    let began = ctx.run(|| async { Ok(micros(SystemTime::now())) }).name("began").await;
    let (state, began) = match (kept_entries(ctx).await, began) {
        (Ok(state), Ok(began)) => (state, moment(began)),
        (Err(error), _) | (_, Err(error)) => return failure_json(early_end(&error), &invocation),
    };
    let session = WantedSession { key, state: state.clone(), began };
    let body = GivenBody::Json(named.input);
    let wanted = WantedRun { module: named.module, body, wishes, invocation, session: Some(session) };
    let finished = worker.finish(ctx, wanted).await;
    if !finished.context.is_empty() {
        ctx.set(CONTEXT, Json(merged_state(state, &finished.context)));
    }
    finished.envelope
}
