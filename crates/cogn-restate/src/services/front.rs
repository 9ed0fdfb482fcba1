//! A single entry point for callers that do not know the composition of a module. Names the run by the
//! caller's key or by the hash of the request, and calls the responsible service, workflow or session.

use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_runtime::receipt::canonical_sha256;
use restate_sdk::context::RequestTarget;
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::serde::Json;
use serde_json::{Value, json};

use super::{ANY_RUN, SESSION, Service, ServiceBoxFuture, answer, unknown_handler};
use crate::durable::early_end;
use crate::run_request::NamedBody;
use crate::worker::{DurableWorker, failure_json};

/// The service [`FRONT`](super::FRONT).
pub(super) struct Front {
    pub(super) worker: Arc<DurableWorker>,
}

impl Service for Front {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let worker = Arc::clone(&self.worker);
        Box::pin(async move {
            if ctx.handler_name() != "run" {
                return unknown_handler(&ctx);
            }
            let (body, about) = ctx.input::<Bytes>().await;
            let envelope = match route(&worker, &body) {
                Ok(route) => route.follow(&ctx, &about.invocation_id).await,
                Err(failure) => failure_json(failure, &about.invocation_id),
            };
            answer(&ctx, envelope);
            Ok(())
        })
    }
}

/// The target of a request.
#[derive(Debug, PartialEq)]
enum RunRoute {
    /// The workflow with this name, under this key.
    Workflow { name: String, key: String, body: Value },
    /// The service of the module, once per key.
    Module { name: String, key: String, body: Value },
    /// A session, once per key if there is one.
    Session { session: String, key: Option<String>, body: Value },
}

fn route(worker: &DurableWorker, body: &[u8]) -> Result<RunRoute, Failure> {
    let named = NamedBody::read(body)?;
    let (wishes, module) = (named.wishes()?, worker.module(&named.module)?);
    let whole = || json!({ "module": named.module, "input": named.input, "_options": named.options });
    if let Some(session) = &named.session {
        // Equal requests in a session are separate turns, unless the caller sends a key.
        let (session, key) = (session.clone(), named.key.clone());
        return Ok(RunRoute::Session { session, key, body: whole() });
    }
    let sent = json!({ "module": module.digest.module, "input": named.input, "options": named.options });
    let key = named.key.clone().unwrap_or_else(|| canonical_sha256(&sent));
    let name = named.module.clone();
    Ok(match (module.is_standalone(), wishes.waits()) {
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
                // A run that was already started is not started again; all callers get its envelope.
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
            Err(error) => failure_json(early_end(&error), invocation),
        }
    }
}
