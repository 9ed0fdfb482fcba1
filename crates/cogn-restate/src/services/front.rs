//! One door for callers who do not want to know what a module is made of: names the run by the caller's key or by the hash
//! of what was sent, and calls the service, the workflow or the session that makes it.

use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_runtime::receipt::canonical_sha256;
use restate_sdk::context::RequestTarget;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::serde::Json;
use serde_json::{Value, json};

use super::{ANY_RUN, SESSION, Service, ServiceBoxFuture, answer, unknown};
use crate::durable::early_end;
use crate::wishes::NamedBody;
use crate::worker::{DurableWorker, refused};

/// The service.
pub(super) struct Front {
    pub(super) worker: Arc<DurableWorker>,
}

impl Service for Front {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let worker = Arc::clone(&self.worker);
        Box::pin(async move {
            if ctx.handler_name() != "run" {
                return unknown(&ctx);
            }
            let (body, about) = ctx.input::<Bytes>().await;
            let envelope = match route(&worker, &body) {
                Ok(route) => route.follow(&ctx, &about.invocation_id).await,
                Err(failure) => refused(failure, &about.invocation_id),
            };
            answer(&ctx, envelope);
            Ok(())
        })
    }
}

/// Where a run is made.
#[derive(Debug, PartialEq)]
enum RunRoute {
    /// By a workflow of this name, under this key.
    Workflow { name: String, key: String, body: Value },
    /// By the service of the module, once for this key.
    Module { name: String, key: String, body: Value },
    /// In a session, once for the key if there is one.
    Session { session: String, key: Option<String>, body: Value },
}

fn route(worker: &DurableWorker, body: &[u8]) -> Result<RunRoute, Failure> {
    let named = NamedBody::read(body)?;
    let (wishes, module) = (named.wishes()?, worker.module(&named.module)?);
    let whole = || json!({ "module": named.module, "input": named.input, "_options": named.options });
    if let Some(session) = &named.session {
        // The same words twice in a conversation are two turns, unless the caller says otherwise.
        let (session, key) = (session.clone(), named.key.clone());
        return Ok(RunRoute::Session { session, key, body: whole() });
    }
    let sent = json!({ "module": module.digest.module, "input": named.input, "options": named.options });
    let key = named.key.clone().unwrap_or_else(|| canonical_sha256(&sent));
    let name = named.module.clone();
    Ok(match (module.stands_alone(), wishes.waits()) {
        (true, false) => RunRoute::Module { name, key, body: named.input_with_options() },
        (true, true) => {
            RunRoute::Workflow { name: ANY_RUN.to_owned(), key: format!("{name}:{key}"), body: whole() }
        }
        (false, _) => RunRoute::Workflow { name, key, body: named.input_with_options() },
    })
}

impl RunRoute {
    async fn follow(self, ctx: &ContextInternal, invocation: &str) -> Value {
        let (target, key, body) = match self {
            Self::Workflow { name, key, body } => {
                // A run that was begun before is not begun again; its envelope is for all who ask.
                let run = RequestTarget::workflow(&name, &key, "run");
                drop(ctx.send(run, None, None, None, Vec::new(), Json(body), None));
                (RequestTarget::workflow(name, key, "envelope"), None, Value::Null)
            }
            Self::Module { name, key, body } => (RequestTarget::service(name, "run"), Some(key), body),
            Self::Session { session, key, body } => {
                (RequestTarget::object(SESSION, session, "run"), key, body)
            }
        };
        let called = ctx.call::<_, Json<Value>>(target, key, None, None, Vec::new(), Json(body));
        match called.await {
            Ok(Json(envelope)) => envelope,
            Err(error) => refused(early_end(&error), invocation),
        }
    }
}
